// Trucks between their reports. Time here is the log's: the timestamps of records.
//
// A clock asks where everybody is. Before the newest report the way between two is known; after it a truck is believed
// to go on as it said. When a report corrects that belief the truck glides to the right place, it does not jump.

import { unitsPerKm, worldX, worldY } from "./projection.js";

const RADIANS = Math.PI / 180;
const STANDING_KMH = 3;
const GLIDE_MS = 700;
const KEPT_MS = 1_200_000;
const REPORTS_MAX = 120;
const RATE_WINDOW_MS = 10_000;
const TIMES_MAX = 20_000;

export class Fleet {
  constructor(rules) {
    this.rules = rules;
    this.clear();
  }

  clear() {
    this.trucks = new Map();
    this.times = [];
    this.pace = 1; // how fast the fleet's own time runs against the log's: a generator may hurry
    this.paces = [];
  }

  // Reports that lie farther apart are no way that was driven: a device was off, or another drive began.
  get gapMs() {
    return (3 * this.rules.silent_ms) / this.pace;
  }

  // Take a report in; `clock` and `now` say what is on the screen at this moment. Whether it was one.
  add(report, clock, now) {
    if (!isReport(report)) return false;
    let truck = this.trucks.get(report.truck_id);
    if (!truck) this.trucks.set(report.truck_id, (truck = new Truck(report.truck_id)));
    const before = truck.reports.length && clock ? this.place(truck, clock, now) : null;
    const last = truck.reports.at(-1);
    if (!truck.take(report)) return false;
    this.times.push(report.t);
    if (this.times.length > TIMES_MAX) this.times.splice(0, TIMES_MAX / 2);
    if (last) this.#learnPace(last, report);
    if (before) truck.glideFrom(before, this.place(truck, clock, now), now);
    return true;
  }

  #learnPace(last, report) {
    if (report.t - last.t < 200 || report.ts <= last.ts) return;
    this.paces.push((report.ts - last.ts) / (report.t - last.t));
    if (this.paces.length < 25) return;
    this.pace = this.paces.sort((one, other) => one - other)[12];
    this.paces = [];
  }

  // Where a truck is drawn, which way it looks, and what it is doing.
  place(truck, clock, now) {
    const at = truck.indexAt(clock);
    if (at < 0) return null;
    const here = truck.reports[at];
    const next = truck.reports[at + 1];
    const age = clock - here.t;
    let { x, y } = here;
    let moving = here.speed >= STANDING_KMH;
    if (next && next.t - here.t <= this.gapMs) {
      const share = age / Math.max(next.t - here.t, 1);
      x += (next.x - x) * share;
      y += (next.y - y) * share;
      moving = moving || next.speed >= STANDING_KMH;
    } else if (moving) {
      const hours = Math.min(age * this.pace, 2 * this.rules.every_ms) / 3_600_000;
      const units = here.speed * hours * unitsPerKm(here.lat);
      x += units * Math.sin(here.heading * RADIANS);
      y -= units * Math.cos(here.heading * RADIANS);
    }
    const left = Math.exp((truck.glide.since - now) / GLIDE_MS);
    if (left > 0.01) {
      x += truck.glide.x * left;
      y += truck.glide.y * left;
    }
    const silent = age * this.pace > this.rules.silent_ms;
    const state = silent ? "silent" : !moving ? "standing" : here.speed > this.rules.limit_kmh ? "speeding" : "driving";
    return { x, y, heading: here.heading, speed: here.speed, state, report: here, age };
  }

  // Everybody who was seen by then.
  *placed(clock, now) {
    for (const truck of this.trucks.values()) {
      const place = this.place(truck, clock, now);
      if (place) yield { truck, ...place };
    }
  }

  // Reports a second up to the clock.
  rate(clock) {
    let count = 0;
    for (let at = this.times.length - 1; at >= 0; at--) {
      if (this.times[at] <= clock && this.times[at] > clock - RATE_WINDOW_MS) count++;
    }
    return (count * 1000) / RATE_WINDOW_MS;
  }

  forget(before) {
    for (const truck of this.trucks.values()) truck.forget(before - KEPT_MS);
  }
}

class Truck {
  constructor(id) {
    this.id = id;
    this.reports = []; // by time
    this.glide = { x: 0, y: 0, since: -1e9 };
    this.facing = null; // as drawn last
  }

  // Whether it is news: devices stutter, and a stream that resumed may repeat.
  take(report) {
    const known = this.reports;
    let at = known.length;
    while (at && known[at - 1].t > report.t) at--;
    if (known.slice(-4).some((one) => one.seq === report.seq && one.ts === report.ts)) return false;
    known.splice(at, 0, {
      t: report.t,
      ts: report.ts,
      seq: report.seq,
      lat: report.lat,
      lon: report.lon,
      x: worldX(report.lon),
      y: worldY(report.lat),
      speed: report.speed_kmh,
      heading: report.heading,
    });
    if (known.length > REPORTS_MAX) known.shift();
    return true;
  }

  // The newest report that is not after the clock; -1 if there is none.
  indexAt(clock) {
    let at = this.reports.length - 1;
    while (at >= 0 && this.reports[at].t > clock) at--;
    return at;
  }

  glideFrom(before, after, now) {
    if (after) this.glide = { x: before.x - after.x, y: before.y - after.y, since: now };
  }

  forget(before) {
    let at = 0;
    while (at < this.reports.length - 1 && this.reports[at].t < before) at++;
    if (at) this.reports.splice(0, at);
  }
}

// Devices break; what they send then is no report.
function isReport(one) {
  return (
    typeof one.truck_id === "string" &&
    within(one.lat, -85, 85) &&
    within(one.lon, -180, 180) &&
    within(one.speed_kmh, 0, 200) &&
    within(one.heading, -360, 720) &&
    Number.isInteger(one.seq) &&
    one.ts > 1_577_836_800_000
  );
}

function within(number, least, most) {
  return typeof number === "number" && number >= least && number <= most;
}
