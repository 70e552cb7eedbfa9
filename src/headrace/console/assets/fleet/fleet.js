// The page: a clock, the layers it drives, and the panels around them. Begins where an element has the class `fleet`;
// its data attributes say which topics there are and where the Stream API is.

import { Basemap } from "./basemap.js";
import { Feed } from "./feed.js";
import { listen } from "./gestures.js";
import { Fleet } from "./motion.js";
import { drawTrails, drawTrucks } from "./painter.js";
import { Panels } from "./panels.js";
import { View, latOf, lonOf, worldX, worldY } from "./projection.js";

const DELAY_MS = 350; // the screen is so late that most reports are there when they are due
const OVERLAP_MS = 5000; // the stream begins a little before the end of what was read; what comes twice is known
const NEARLY_NOW_MS = 4000; // a replay that has come so near is live again
const SKEW_MAX_MS = 30_000;
const TRAILS_EVERY_MS = 120;
const PANELS_EVERY_MS = 250;
const URL_EVERY_MS = 1000;
const FORGET_EVERY_MS = 20_000;
const ALERTS_MAX = 400;
const RATIO_MAX = 2;
const FREE = {
  wide: { left: 60, right: 330, top: 40, bottom: 110 },
  closed: { left: 60, right: 90, top: 40, bottom: 110 },
  narrow: { left: 22, right: 40, top: 120, bottom: 130 },
};

class FleetMap {
  constructor(root, basemap, rules) {
    this.root = root;
    this.rules = rules;
    this.basemap = basemap;
    this.view = new View();
    this.fleet = new Fleet(rules);
    this.alerts = [];
    this.alertIds = new Set();
    this.rings = [];
    this.mode = "live";
    this.paused = false;
    this.speed = 1;
    this.clock = 0;
    this.skews = [];
    this.delays = [];
    this.drawn = [];
    this.selected = null;
    this.hovered = null;
    this.last = {};
    this.back = Number(root.dataset.back) || 300_000; // how much of the log leads to where we begin
    this.panels = new Panels(root, this);
    this.contexts = [...root.querySelectorAll("canvas")].map((canvas) => canvas.getContext("2d"));
    this.feed = new Feed({
      base: root.dataset.base,
      topics: root.dataset.topics.split(",").filter(Boolean),
      take: (record) => this.#take(record),
      tell: (state, sentence) => this.panels.connection(state, sentence),
    });
    this.#fitCanvas();
    new ResizeObserver(() => this.#fitCanvas()).observe(this.panels.map);
    listen(this.panels.map, this.view, {
      onTap: (point, reach) => this.select(this.#near(point, reach)),
      onMove: (point) => this.#hover(point),
      keys: {
        0: () => this.home(),
        " ": () => this.toggle(),
        l: () => this.live(),
        Escape: () => this.select(null),
      },
    });
    this.#readColours();
    new MutationObserver(() => this.#readColours()).observe(document.body, { attributeFilter: ["class"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#readColours());
    this.#begin();
    requestAnimationFrame((now) => this.#frame(now));
  }

  // --- what a person can do

  home() {
    const shape = this.view.width < 700 ? "narrow" : this.panels.isFolded ? "closed" : "wide";
    this.view.fit(this.basemap.places, FREE[shape]);
  }

  select(id) {
    this.selected = id;
    this.last.trails = 0;
    this.panels.card(null);
  }

  show(alert) {
    if (alert.truck_id) this.select(alert.truck_id);
    this.view.x = worldX(alert.lon);
    this.view.y = worldY(alert.lat);
    if (this.view.scale < 220) this.view.scale = 220;
    this.view.version++;
  }

  toggle() {
    if (this.coming) return;
    if (this.mode === "live") {
      this.feed.stop();
      this.mode = "replay";
      this.paused = true;
    } else if (this.paused && !this.feed.abort) this.replay(this.clock);
    else this.paused = !this.paused;
  }

  // What led to now is read first, as in a replay: nobody wants to see an hour fly past.
  async live() {
    this.mode = "live";
    this.paused = false;
    this.speed = 1;
    const now = Date.now();
    if (!(await this.#lead(now))) return;
    this.openedAt = now;
    this.skews = [];
    this.delays = [];
    this.feed.live(Date.now() - now + OVERLAP_MS);
  }

  async replay(from) {
    this.mode = "replay";
    this.paused = false;
    if (await this.#lead(from)) this.clock = from;
  }

  // Read what leads to a moment, and show it when it is complete; false if a person has gone elsewhere meanwhile.
  async #lead(to) {
    const run = (this.run = (this.run ?? 0) + 1);
    const coming = (this.coming = { fleet: new Fleet(this.rules), alerts: [], ids: new Set() });
    await this.feed.replay(to, this.back);
    if (run !== this.run) return false;
    this.fleet = coming.fleet;
    this.alerts = coming.alerts;
    this.alertIds = coming.ids;
    this.rings = [];
    this.coming = null;
    return true;
  }

  // --- records

  #begin() {
    const query = new URLSearchParams(location.search);
    const number = (name) => (query.has(name) && Number.isFinite(Number(query.get(name))) ? Number(query.get(name)) : null);
    if (number("lat") !== null && number("lon") !== null) {
      this.view.x = worldX(number("lon"));
      this.view.y = worldY(number("lat"));
      this.view.scale = number("zoom") ?? 60;
      this.view.version++;
    } else this.home();
    this.selected = query.get("truck");
    if (!this.feed.topics.length) this.panels.connection("empty");
    else if (number("at") !== null) this.replay(number("at"));
    else this.live();
  }

  #take({ topic, t, value }) {
    const into = this.coming ?? { fleet: this.fleet, alerts: this.alerts, ids: this.alertIds };
    if (topic === this.root.dataset.alerts) return this.#takeAlert(into, { ...value, t });
    const report = { ...value, t, ts: Date.parse(value.ts) };
    const taken = into.fleet.add(report, this.coming ? 0 : this.clock, performance.now());
    if (taken && this.mode === "live" && !this.coming) {
      const now = Date.now();
      this.skews.push([now, t - now]);
      // What was there before we came says nothing about the way here.
      if (t > this.openedAt) this.delays.push([now, now - t]);
      if (this.skews.length > 400) this.skews.splice(0, 200);
      if (this.delays.length > 400) this.delays.splice(0, 200);
    }
  }

  #takeAlert(into, alert) {
    if (!alert.alert_id || into.ids.has(alert.alert_id)) return;
    into.ids.add(alert.alert_id);
    let at = into.alerts.length;
    while (at && into.alerts[at - 1].t > alert.t) at--;
    into.alerts.splice(at, 0, alert);
    if (into.alerts.length > ALERTS_MAX) into.ids.delete(into.alerts.shift().alert_id);
  }

  // --- the clock

  #tick(now) {
    const passed = Math.min(now - (this.last.frame ?? now), 1000);
    this.last.frame = now;
    const before = this.clock;
    if (this.coming) return;
    if (this.mode === "live") this.clock = Math.max(this.clock, Date.now() + this.#skew() - DELAY_MS);
    else if (!this.paused && this.feed.abort) {
      this.clock = Math.min(this.clock + passed * this.speed, this.feed.reaches);
      this.feed.ahead(this.clock, this.speed);
      if (this.clock > Date.now() - NEARLY_NOW_MS) this.live();
    }
    if (before && this.clock > before && this.clock - before < 10_000 * this.speed) this.#ringNew(before, now);
  }

  // How much later the fleet's clocks are than the browser's; unknown is none.
  #skew() {
    const now = Date.now();
    const fresh = this.skews.filter(([seen]) => now - seen < 30_000).map(([, skew]) => skew);
    const skew = fresh.length ? Math.max(...fresh) : 0;
    return Math.abs(skew) < SKEW_MAX_MS ? Math.max(skew, -2000) : 0;
  }

  #ringNew(before, now) {
    for (let at = this.alerts.length - 1; at >= 0 && this.alerts[at].t > before; at--) {
      const alert = this.alerts[at];
      if (alert.t <= this.clock)
        this.rings.push({ x: worldX(alert.lon), y: worldY(alert.lat), since: now, colour: alert.kind });
    }
    if (this.rings.length > 60) this.rings.splice(0, 30);
  }

  // Milliseconds from a report's making to its arrival here: the middle of the last ones.
  delay() {
    const now = Date.now();
    const fresh = this.delays.filter(([seen]) => now - seen < 10_000).map(([, delay]) => delay);
    return fresh.length && this.mode === "live" ? Math.max(fresh.sort((a, b) => a - b)[fresh.length >> 1], 0) : null;
  }

  // --- drawing

  #frame(now) {
    if (!this.root.isConnected) return this.feed.stop();
    this.#tick(now);
    const { view, last } = this;
    const [base, trails, trucks] = this.contexts;
    const moved = last.version !== view.version;
    if (moved) {
      this.basemap.draw(base, view, this.ratio, this.colours);
      this.panels.scale(view);
    }
    if (moved || now - (last.trails ?? 0) > TRAILS_EVERY_MS) {
      drawTrails(trails, view, this.ratio, this.fleet, this.clock, now, this.colours, this.selected);
      last.trails = now;
    }
    last.version = view.version;
    this.drawn = drawTrucks(trucks, view, this.ratio, this.fleet, this.clock, now, this.colours, this);
    this.#sometimes(now);
    requestAnimationFrame((next) => this.#frame(next));
  }

  #sometimes(now) {
    const due = (name, every) => now - (this.last[name] ?? -1e9) > every && (this.last[name] = now);
    if (due("panels", PANELS_EVERY_MS)) this.panels.update(now);
    if (due("url", URL_EVERY_MS)) this.#writeUrl();
    if (due("forget", FORGET_EVERY_MS)) this.fleet.forget(this.clock);
  }

  #writeUrl() {
    const { view } = this;
    const query = new URLSearchParams();
    query.set("lat", latOf(view.y).toFixed(3));
    query.set("lon", lonOf(view.x).toFixed(3));
    query.set("zoom", view.scale.toFixed(0));
    if (this.selected) query.set("truck", this.selected);
    if (this.mode === "replay") query.set("at", String(Math.round(this.clock / 1000) * 1000));
    const url = `${location.pathname}?${query}`;
    if (url !== this.url) history.replaceState(history.state, "", (this.url = url));
  }

  #fitCanvas() {
    const { clientWidth: width, clientHeight: height } = this.panels.map;
    this.ratio = Math.min(devicePixelRatio || 1, RATIO_MAX);
    for (const { canvas } of this.contexts) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
    this.view.resize(width, height);
  }

  #readColours() {
    const style = getComputedStyle(this.root);
    const names = [...COLOURS, ...this.rules.kinds];
    this.colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--map-${name}`).trim()]));
    this.colours.font = style.fontFamily;
    this.view.version++;
  }

  #near(point, reach) {
    let best = null;
    let least = reach;
    for (const one of this.drawn) {
      const far = Math.hypot(one.x - point.x, one.y - point.y);
      if (far < least) [best, least] = [one.id, far];
    }
    return best;
  }

  #hover(point) {
    this.hovered = point && this.#near(point, 14);
    this.panels.map.style.cursor = this.hovered ? "pointer" : "";
  }
}

const COLOURS = [
  "sea", "shore", "land", "town", "river", "border", "coast", "casing", "road", "fence", "fenceLine", "label", "halo",
  "country", "outline", "accent", "driving", "speeding", "standing", "silent",
];

async function begin(root) {
  const near = (name) => fetch(new URL(name, import.meta.url)).then((answer) => answer.json());
  const [map, places] = await Promise.all([near("basemap.json"), near("places.json")]);
  window.fleetMap = new FleetMap(root, new Basemap(map, places), places);
}

// The element comes after this file, and again when the topics have changed.
function look() {
  const root = document.querySelector(".fleet:not([data-begun])");
  if (!root) return;
  root.dataset.begun = "yes";
  begin(root);
}
look();
setInterval(look, 100);
