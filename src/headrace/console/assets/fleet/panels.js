// Counters, alerts, the chosen truck, and the bar that goes back in time.

import { unitsPerKm, latOf } from "./projection.js";

const FEED_SHOWN = 40;
const RANGES = [
  ["15 min", 900_000],
  ["1 h", 3_600_000],
  ["6 h", 21_600_000],
  ["24 h", 86_400_000],
  ["all", Infinity],
];
const SPEEDS = [1, 5, 20, 60];
const STATES = ["driving", "speeding", "standing", "silent"];
const COMPASS = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
const SENTENCES = {
  opening: "Connecting …",
  reading: "Reading the log …",
  empty: "There are no trucks here yet.",
  quiet: "No truck has reported lately. Each appears here with its next report.",
};
const QUIET_MS = 3_000; // what was reported lately takes a moment to come

const WORDS = {
  speeding: (detail) => detail,
  idle: (detail) => detail,
  silent: (detail) => detail,
  geofence_enter: (detail) => (detail === "corridors" ? "is back on the corridors" : `arrives at ${detail}`),
  geofence_leave: (detail) => (detail === "corridors" ? "leaves the corridors" : `leaves ${detail}`),
};

const FRAME = `
  <div class="fleet-map" tabindex="0" role="application"
    aria-label="Map of the fleet. Arrow keys move it, plus and minus zoom, 0 shows everybody, space stops the clock, L goes live.">
    <canvas></canvas><canvas></canvas><canvas></canvas>
  </div>
  <section class="fleet-counters" aria-label="Counters">
    <div class="fleet-figures">
      <div><b data-show="trucks">0</b><span>trucks</span></div>
      <div><b data-show="rate">0</b><span>reports/s</span></div>
      <div><b data-show="alerts">0</b><span>alerts</span></div>
      <div><b data-show="delay">–</b><span>delay</span></div>
    </div>
    <ul class="fleet-states">
      ${STATES.map((state) => `<li><i class="is-${state}"></i>${state}<b data-state="${state}">0</b></li>`).join("")}
    </ul>
  </section>
  <aside class="fleet-alerts" aria-label="Alerts">
    <button type="button" class="fleet-fold" aria-expanded="true"><span>Alerts</span><b data-show="alerts">0</b></button>
    <ol></ol>
    <p class="fleet-none"></p>
  </aside>
  <section class="fleet-card" aria-label="Chosen truck" hidden></section>
  <div class="fleet-zoom">
    <button type="button" data-do="in" aria-label="Come closer">+</button>
    <button type="button" data-do="out" aria-label="Go farther">−</button>
    <button type="button" data-do="home" aria-label="Show everybody">⤢</button>
  </div>
  <div class="fleet-scale" aria-hidden="true"><i></i><span></span></div>
  <p class="fleet-notice" role="status"></p>
  <section class="fleet-bar" aria-label="Replay">
    <button type="button" data-do="toggle" class="fleet-play" aria-label="Stop the clock"></button>
    <time class="fleet-clock">–</time>
    <input class="fleet-slider" type="range" min="0" max="1000" value="1000" step="1"
      aria-label="Time: the log is read again from here">
    <select data-do="range" aria-label="How far the slider goes back">
      ${RANGES.map(([name], at) => `<option value="${at}" ${at === 1 ? "selected" : ""}>${name}</option>`).join("")}
    </select>
    <select data-do="speed" aria-label="Speed of the replay">
      ${SPEEDS.map((speed) => `<option value="${speed}">×${speed}</option>`).join("")}
    </select>
    <button type="button" data-do="live" class="fleet-live">Live</button>
  </section>`;

export class Panels {
  constructor(root, page) {
    root.innerHTML = FRAME;
    this.root = root;
    this.page = page;
    this.map = root.querySelector(".fleet-map");
    this.slider = root.querySelector(".fleet-slider");
    this.first = Number(root.dataset.first) || Date.now();
    this.range = RANGES[1][1];
    this.dragging = false;
    this.shownAlert = "";
    this.#listen();
  }

  get isFolded() {
    return this.#find(".fleet-alerts").classList.contains("is-closed");
  }

  #find(selector) {
    return this.root.querySelector(selector);
  }

  #listen() {
    const { page, root } = this;
    const work = {
      in: () => page.view.zoom(1.6),
      out: () => page.view.zoom(1 / 1.6),
      home: () => page.home(),
      toggle: () => page.toggle(),
      live: () => page.live(),
    };
    for (const button of root.querySelectorAll("button[data-do]"))
      button.addEventListener("click", work[button.dataset.do]);
    this.#find("[data-do=range]").addEventListener("change", (event) => (this.range = RANGES[event.target.value][1]));
    this.#find("[data-do=speed]").addEventListener("change", (event) => {
      page.speed = Number(event.target.value);
      if (page.mode === "live" && page.speed > 1) page.replay(this.#span()[0]);
    });
    this.slider.addEventListener("input", () => {
      this.dragging = true;
      this.#showClock(this.#sliderTime());
    });
    this.slider.addEventListener("keydown", (event) => {
      if (event.key !== "l" || event.ctrlKey || event.metaKey || event.altKey) return;
      // What was being chosen with the arrow keys is not wanted any more.
      this.dragging = false;
      page.live();
    });
    this.slider.addEventListener("change", () => {
      this.dragging = false;
      const [, end] = this.#span();
      const at = this.#sliderTime();
      if (at >= end - 5000) page.live();
      else page.replay(at);
    });
    const fold = this.#find(".fleet-fold");
    fold.addEventListener("click", () => {
      const closed = fold.parentElement.classList.toggle("is-closed");
      fold.setAttribute("aria-expanded", String(!closed));
    });
    if (root.clientWidth < 700) fold.click();
  }

  // --- time

  #span() {
    const end = Date.now();
    return [Math.max(this.first, end - this.range, 0), end];
  }

  #sliderTime() {
    const [begin, end] = this.#span();
    return begin + ((end - begin) * this.slider.value) / 1000;
  }

  #showClock(ms) {
    const clock = this.#find(".fleet-clock");
    const time = new Date(ms);
    clock.dateTime = time.toISOString();
    clock.textContent = time.toLocaleTimeString([], { hour12: false });
    clock.title = time.toLocaleString();
  }

  // --- what changes

  connection(state, sentence = "") {
    this.root.dataset.connection = state;
    this.toldAt = performance.now();
    const notice = this.#find(".fleet-notice");
    notice.textContent = sentence || SENTENCES[state] || "";
    if (state === "empty") notice.append(...this.#firstSteps());
  }

  // What fills this map: programs that are told this cluster's address. The demo has a cluster of its own.
  #firstSteps() {
    const made = (name, ...inside) => {
      const element = document.createElement(name);
      element.append(...inside);
      return element;
    };
    const generator = `headrace python examples/trucks/generator.py ${this.#given}`;
    return [
      made("span", "Send some on their way, and have a pipeline look for alerts:"),
      made("code", generator),
      made("code", this.#pipeline),
      made("small", made("code", "headrace demo"), " does not fill this map: it opens one of its own."),
    ];
  }

  get #given() {
    return `--bootstrap-server ${this.root.dataset.bootstrap}`;
  }

  get #pipeline() {
    return `headrace pipeline run examples/trucks/fleet.toml ${this.#given}`;
  }

  update(now) {
    const { page } = this;
    if (!page.clock) return;
    this.#hint(now);
    if (!this.dragging) {
      const [begin, end] = this.#span();
      this.slider.value = page.mode === "live" ? 1000 : (1000 * (page.clock - begin)) / (end - begin);
      this.#showClock(page.clock);
    }
    this.root.dataset.mode = page.mode;
    this.root.dataset.paused = page.paused ? "yes" : "no";
    this.#find(".fleet-play").setAttribute("aria-label", page.paused ? "Let the clock go on" : "Stop the clock");
    this.#find("[data-do=speed]").value = String(page.speed);
    this.#count(now);
    this.#feed();
    this.#choose(now);
  }

  // Topics without a report look like a map that does not work.
  #hint(now) {
    if (this.root.dataset.connection !== "live") return;
    const isQuiet = !this.page.fleet.trucks.size && now - this.toldAt > QUIET_MS;
    this.#find(".fleet-notice").textContent = isQuiet ? SENTENCES.quiet : "";
  }

  #count(now) {
    const { page } = this;
    const states = Object.fromEntries(STATES.map((state) => [state, 0]));
    let trucks = 0;
    for (const one of page.fleet.placed(page.clock, now)) {
      states[one.state]++;
      trucks++;
    }
    const rate = page.fleet.rate(page.clock);
    const delay = page.delay();
    const alerts = page.alerts.filter((alert) => alert.t <= page.clock).length;
    const shown = {
      trucks: trucks.toLocaleString(),
      rate: rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString(),
      alerts: alerts.toLocaleString(),
      delay: delay === null ? "–" : delay < 1000 ? `${Math.round(delay)} ms` : `${(delay / 1000).toFixed(1)} s`,
    };
    for (const element of this.root.querySelectorAll("[data-show]")) element.textContent = shown[element.dataset.show];
    for (const state of STATES) this.#find(`[data-state=${state}]`).textContent = states[state].toLocaleString();
  }

  #feed() {
    const { page } = this;
    const visible = page.alerts.filter((alert) => alert.t <= page.clock).slice(-FEED_SHOWN).reverse();
    const mark = `${visible.length}/${visible[0]?.alert_id}`;
    if (mark === this.shownAlert) return;
    this.shownAlert = mark;
    this.#find(".fleet-alerts ol").replaceChildren(...visible.map((alert) => this.#alert(alert)));
    const none = this.root.dataset.alerts
      ? "Nothing has happened in the last minutes."
      : `No pipeline looks for events: ${this.#pipeline}`;
    this.#find(".fleet-none").textContent = visible.length ? "" : none;
  }

  #alert(alert) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.addEventListener("click", () => this.page.show(alert));
    const dot = document.createElement("i");
    dot.style.background = `var(--map-${alert.kind})`;
    const who = document.createElement("b");
    who.textContent = alert.truck_id;
    const what = document.createElement("span");
    what.textContent = (WORDS[alert.kind] ?? ((detail) => `${alert.kind} ${detail}`))(alert.detail);
    const when = document.createElement("time");
    when.textContent = new Date(alert.at).toLocaleTimeString([], { hour12: false });
    button.append(dot, who, when, what);
    item.append(button);
    return item;
  }

  // --- one truck

  #choose(now) {
    const { page } = this;
    const truck = page.selected && page.fleet.trucks.get(page.selected);
    const place = truck && page.fleet.place(truck, page.clock, now);
    this.card(place ? { id: truck.id, ...place } : null);
  }

  card(one) {
    const card = this.#find(".fleet-card");
    card.hidden = !one;
    if (!one) return;
    const { report } = one;
    if (card.dataset.truck !== one.id) {
      card.dataset.truck = one.id;
      card.innerHTML = `<header><i></i><b></b><em></em><button type="button" aria-label="Close">×</button></header>
        <dl><dt>Speed</dt><dd data-of="speed"></dd><dt>Heading</dt><dd data-of="heading"></dd><dt>Near</dt>
        <dd data-of="near"></dd><dt>Last report</dt><dd data-of="age"></dd><dt>Position</dt><dd data-of="position"></dd></dl>
        <a>Its records</a>`;
      card.querySelector("button").addEventListener("click", () => this.page.select(null));
      const query = new URLSearchParams({ from: "live", filter: `key == ${JSON.stringify(one.id)}` });
      card.querySelector("a").href = `${this.root.dataset.topicUrl}?${query}`;
      card.querySelector("b").textContent = one.id;
    }
    card.querySelector("i").className = `is-${one.state}`;
    card.querySelector("em").textContent = one.state;
    const texts = {
      speed: `${one.speed.toFixed(0)} km/h`,
      heading: `${COMPASS[Math.round(one.heading / 45) % 8]} ${one.heading.toFixed(0)}°`,
      near: nearest(this.page.basemap.places, report),
      age: `${Math.max(one.age / 1000, 0).toFixed(0)} s ago, no. ${report.seq}`,
      position: `${report.lat.toFixed(3)}, ${report.lon.toFixed(3)}`,
    };
    for (const [name, text] of Object.entries(texts)) card.querySelector(`[data-of=${name}]`).textContent = text;
  }

  // A ruler of a round length.
  scale(view) {
    const pixelsPerKm = unitsPerKm(latOf(view.y)) * view.scale;
    const most = 110 / pixelsPerKm;
    const power = 10 ** Math.floor(Math.log10(most));
    const km = power * (most >= 5 * power ? 5 : most >= 2 * power ? 2 : 1);
    this.#find(".fleet-scale i").style.width = `${km * pixelsPerKm}px`;
    this.#find(".fleet-scale span").textContent = `${km} km`;
  }
}

function nearest(places, { lat, lon }) {
  const shrink = Math.cos((lat * Math.PI) / 180);
  const far = (place) => Math.hypot(place.lat - lat, (place.lon - lon) * shrink) * 111.195;
  const best = places.reduce((one, other) => (far(one) < far(other) ? one : other));
  return `${best.name}, ${far(best).toFixed(0)} km`;
}
