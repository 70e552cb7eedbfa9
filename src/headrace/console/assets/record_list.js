// The list of records: appends without drawing the rest anew, opens a record where it stands.
export default {
  template: `
    <div class="hr-records" role="table" aria-label="Records">
      <div class="hr-record-head" role="row">
        <span role="columnheader">Time</span><span role="columnheader">Partition</span>
        <span role="columnheader">Offset</span><span role="columnheader">Key</span>
        <span role="columnheader">Value</span>
      </div>
      <div v-for="row in rows" :key="row.id" class="hr-record" :class="{ 'hr-open': row.id in open, 'hr-new': row.fresh }">
        <button class="hr-record-line" role="row" :aria-expanded="row.id in open" @click="toggle(row)">
          <span class="hr-record-time" role="cell">{{ time(row.t) }}</span>
          <span class="hr-record-partition" role="cell">{{ row.p }}</span>
          <span class="hr-record-offset" role="cell">{{ row.o }}</span>
          <span class="hr-record-key" role="cell" :class="'hr-kind-' + row.kk">{{ shown(row.k, row.kk) }}</span>
          <span class="hr-record-value" role="cell" :class="'hr-kind-' + row.vk">{{ shown(row.v, row.vk) }}</span>
        </button>
        <div v-if="row.id in open" class="hr-record-detail">
          <div v-if="!open[row.id]" class="hr-bar" style="width: 60%"></div>
          <template v-else>
            <div class="hr-record-tools">
              <div class="hr-choice" role="group" aria-label="Show as">
                <button v-for="kind in ['json', 'text', 'hex']" :key="kind" :aria-pressed="open[row.id].as === kind"
                  @click="$emit('expand', { p: row.p, o: row.o, as: kind })">{{ kind }}</button>
              </div>
              <span class="hr-note">{{ open[row.id].size }}</span>
              <span class="hr-note">{{ full(row.t) }}</span>
              <span style="flex: 1"></span>
              <a class="hr-link" :href="open[row.id].href">Link</a>
              <button class="hr-link" @click="copy(open[row.id].value, $event)">Copy value</button>
            </div>
            <div class="hr-record-parts">
              <div v-if="open[row.id].key !== null"><h3>Key</h3><pre class="hr-pre">{{ open[row.id].key }}</pre></div>
              <div v-if="open[row.id].headers.length"><h3>Headers</h3>
                <dl class="hr-headers"><template v-for="header in open[row.id].headers">
                  <dt>{{ header[0] }}</dt><dd>{{ header[1] }}</dd></template></dl></div>
              <div><h3>Value</h3><pre class="hr-pre hr-value">{{ open[row.id].value }}</pre></div>
            </div>
          </template>
        </div>
      </div>
    </div>`,
  props: { most: Number },
  emits: ["expand"],
  data: () => ({ rows: [], open: {} }),
  methods: {
    fill(rows) {
      this.rows = rows;
      this.open = {};
    },
    more(rows) {
      this.rows = this.rows.concat(rows);
    },
    prepend(rows) {
      for (const row of rows) row.fresh = true;
      this.rows = rows.concat(this.rows).slice(0, this.most);
    },
    detail(id, detail) {
      detail.href = window.path_prefix + detail.href;
      if (id in this.open) this.open[id] = detail;
    },
    toggle(row) {
      if (row.id in this.open) {
        delete this.open[row.id];
      } else {
        this.open[row.id] = null;
        this.$emit("expand", { p: row.p, o: row.o, as: "" });
      }
    },
    shown(text, kind) {
      return kind === "null" ? "null" : kind === "empty" ? "empty" : text;
    },
    time(ms) {
      if (ms < 0) return "–";
      const at = new Date(ms);
      const two = (number) => String(number).padStart(2, "0");
      const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
      const today = new Date().toDateString() === at.toDateString();
      const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
      return today ? clock : `${day} ${clock.slice(0, 8)}`; // an opened record tells the rest
    },
    full(ms) {
      return ms < 0 ? "" : new Date(ms).toLocaleString() + " · " + new Date(ms).toISOString();
    },
    copy(text, event) {
      hrCopy(text, event.currentTarget);
    },
  },
};
