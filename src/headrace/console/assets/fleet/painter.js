// The moving layers: trails, trucks, and rings where something has just happened.

const TRAIL_SHADES = 4;
const TURN_MS = 260;
const RING_MS = 2600;
const LABEL_SCALE = 420;
const MANY = 1500;

const CALM = matchMedia("(prefers-reduced-motion: reduce)").matches;
const ARROW = new Path2D("M0 -1.35 L0.95 1.05 L0 0.5 L-0.95 1.05 Z");

export function drawTrails(context, view, ratio, fleet, clock, now, colours, selected) {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  view.enter(context, ratio);
  context.lineJoin = "round";
  context.lineCap = "butt"; // the shades of a trail meet, they do not overlap
  const width = Math.min(Math.max(view.scale / 70, 1.4), 4);
  const most = fleet.trucks.size > MANY ? 6 : 45;
  for (const { truck, x, y, state } of fleet.placed(clock, now)) {
    const chosen = truck.id === selected;
    const line = trailOf(truck, clock, chosen ? 120 : most, fleet.gapMs);
    if (!line.length) continue;
    line.push({ x, y });
    context.strokeStyle = chosen ? colours.accent : colours[state];
    context.lineWidth = (chosen ? 3.2 : width) / view.scale;
    const piece = Math.max(Math.ceil(line.length / TRAIL_SHADES), 1);
    for (let shade = 0; shade < TRAIL_SHADES; shade++) {
      const part = line.slice(shade * piece, (shade + 1) * piece + 1);
      if (part.length < 2) continue;
      context.globalAlpha = ((shade + 1) / TRAIL_SHADES) * (chosen ? 0.95 : 0.65);
      context.beginPath();
      part.forEach((point, at) => (at ? context.lineTo(point.x, point.y) : context.moveTo(point.x, point.y)));
      context.stroke();
    }
  }
  context.globalAlpha = 1;
}

function trailOf(truck, clock, most, gapMs) {
  const end = truck.indexAt(clock);
  const line = [];
  for (let at = end; at >= 0 && line.length < most; at--) {
    const report = truck.reports[at];
    if (at < end && truck.reports[at + 1].t - report.t > gapMs) break;
    line.unshift(report);
  }
  return line;
}

// Draws everybody; gives what stands where, for the pointer and for whoever watches.
export function drawTrucks(context, view, ratio, fleet, clock, now, colours, { selected, hovered, rings }) {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  drawRings(context, view, rings, now, colours);
  const size = Math.min(Math.max(3.4 + Math.log2(view.scale / 20) * 1.15, 3.6), 9);
  const drawn = [];
  for (const one of fleet.placed(clock, now)) {
    const x = view.screenX(one.x);
    const y = view.screenY(one.y);
    if (x < -20 || y < -20 || x > view.width + 20 || y > view.height + 20) continue;
    drawn.push({ id: one.truck.id, x, y, state: one.state });
    const chosen = one.truck.id === selected || one.truck.id === hovered;
    if (chosen) halo(context, x, y, size + 7, colours.accent);
    else if (one.state === "speeding") halo(context, x, y, size * (1.55 + (CALM ? 0 : 0.3 * Math.sin(now / 260))), colours.speeding);
    mark(context, x, y, chosen ? size * 1.25 : size, turned(one, now), one.state, colours);
    if (chosen || view.scale > LABEL_SCALE) label(context, x + size + 6, y, one.truck.id, colours, chosen);
  }
  return drawn;
}

function mark(context, x, y, size, heading, state, colours) {
  context.save();
  context.translate(x, y);
  context.fillStyle = colours[state];
  context.strokeStyle = colours.outline;
  if (state === "driving" || state === "speeding") {
    context.rotate((heading * Math.PI) / 180);
    context.scale(size, size);
    context.lineWidth = 1.1 / size;
    context.fill(ARROW);
    context.stroke(ARROW);
  } else {
    context.beginPath();
    context.arc(0, 0, size * 0.62, 0, 2 * Math.PI);
    context.lineWidth = state === "silent" ? 1.6 : 1.1;
    if (state === "silent") context.strokeStyle = colours.silent;
    else context.fill();
    context.stroke();
  }
  context.restore();
}

// A truck turns to its new direction in a moment, the short way round.
function turned({ truck, heading }, now) {
  const before = truck.facing;
  if (!before) {
    truck.facing = { heading, now };
    return heading;
  }
  const turn = ((heading - before.heading + 540) % 360) - 180;
  const share = 1 - Math.exp((before.now - now) / TURN_MS);
  truck.facing = { heading: before.heading + turn * share, now };
  return truck.facing.heading;
}

function halo(context, x, y, radius, colour) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.globalAlpha = 0.2;
  context.fillStyle = colour;
  context.fill();
  context.globalAlpha = 0.75;
  context.strokeStyle = colour;
  context.lineWidth = 1.2;
  context.stroke();
  context.globalAlpha = 1;
}

function label(context, x, y, text, colours, strong) {
  context.font = `${strong ? 700 : 500} 11px ${colours.font}`;
  context.textBaseline = "middle";
  context.lineWidth = 3.5;
  context.lineJoin = "round";
  context.strokeStyle = colours.halo;
  context.strokeText(text, x, y);
  context.fillStyle = colours.label;
  context.fillText(text, x, y);
}

function drawRings(context, view, rings, now, colours) {
  for (const ring of rings) {
    const age = (now - ring.since) / RING_MS;
    if (age >= 1) continue;
    context.beginPath();
    context.arc(view.screenX(ring.x), view.screenY(ring.y), 5 + 30 * age, 0, 2 * Math.PI);
    context.globalAlpha = 0.8 * (1 - age);
    context.lineWidth = 2;
    context.strokeStyle = colours[ring.colour];
    context.stroke();
  }
  context.globalAlpha = 1;
}
