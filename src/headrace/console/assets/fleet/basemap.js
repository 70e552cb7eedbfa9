// The ground: land, borders, waters and towns from basemap.json, and on it what the fleet knows, from places.json.

import { unitsPerKm, worldX, worldY } from "./projection.js";

const CITY_SCALE = 42;
const NAMES_UNTIL = 130;
/* Pixels per degree: towns get names from the first on, countries lose theirs at the second. */

export class Basemap {
  constructor(map, places) {
    this.places = places.places.map((place) => ({ ...place, x: worldX(place.lon), y: worldY(place.lat) }));
    this.hubKm = places.hub_km;
    const arcs = map.arcs.map((arc) => unpack(arc, map.unit));
    const borders = new Set(map.borders);
    this.land = new Path2D();
    for (const country of map.countries) for (const ring of country.rings) trace(this.land, joined(ring, arcs), true);
    this.borders = pathOf(arcs.filter((_, number) => borders.has(number)), false);
    this.coast = pathOf(arcs.filter((_, number) => !borders.has(number)), false);
    const layer = (lines, closed) => pathOf(lines.map((line) => unpack(line, map.unit)), closed);
    this.lakes = layer(map.lakes, true);
    this.rivers = layer(map.rivers, false);
    this.towns = layer(map.towns, true);
    this.corridors = pathOf(
      places.corridors.map((one) => one.way.map(([lat, lon]) => [worldX(lon), worldY(lat)])),
      false,
    );
    this.countries = map.countries
      .filter((country) => country.label)
      .map(({ name, label: [lon, lat, size] }) => ({ name, size, x: worldX(lon), y: worldY(lat) }));
  }

  draw(context, view, ratio, colours) {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colours.sea;
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    view.enter(context, ratio);
    context.lineJoin = context.lineCap = "round";
    const pen = (path, colour, width) => {
      context.strokeStyle = colour;
      context.lineWidth = width / view.scale;
      context.stroke(path);
    };
    pen(this.coast, colours.shore, 7);
    context.fillStyle = colours.land;
    context.fill(this.land, "evenodd");
    context.fillStyle = colours.town;
    context.fill(this.towns);
    pen(this.rivers, colours.river, view.scale > 80 ? 1.4 : 0.8);
    context.fillStyle = colours.sea;
    context.fill(this.lakes);
    pen(this.borders, colours.border, 1);
    pen(this.coast, colours.coast, 0.8);
    const road = Math.min(1.6 + view.scale / 160, 7);
    pen(this.corridors, colours.casing, road + 2);
    pen(this.corridors, colours.road, road);
    this.#fences(context, view, colours);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#names(context, view, colours);
  }

  // The yards of hubs, as wide as they are.
  #fences(context, view, colours) {
    for (const hub of this.places.filter((place) => place.hub)) {
      const radius = Math.max(this.hubKm * unitsPerKm(hub.lat), 4.5 / view.scale);
      context.beginPath();
      context.arc(hub.x, hub.y, radius, 0, 2 * Math.PI);
      context.fillStyle = colours.fence;
      context.fill();
      context.setLineDash(view.scale > 100 ? [6 / view.scale, 5 / view.scale] : []);
      context.strokeStyle = colours.fenceLine;
      context.lineWidth = 1.2 / view.scale;
      context.stroke();
      context.setLineDash([]);
    }
  }

  #names(context, view, colours) {
    const taken = [];
    const isFree = (box) =>
      taken.every((other) => box[0] > other[2] || box[2] < other[0] || box[1] > other[3] || box[3] < other[1]);
    context.textBaseline = "middle";
    context.lineJoin = "round";
    for (const place of [...this.places].sort((one, other) => other.hub - one.hub)) {
      const [x, y] = [view.screenX(place.x), view.screenY(place.y)];
      if (x < -80 || y < -20 || x > view.width + 80 || y > view.height + 20) continue;
      if (!place.hub && view.scale < CITY_SCALE) continue;
      context.font = `${place.hub ? 600 : 400} ${place.hub ? 12 : 11}px ${colours.font}`;
      const wide = context.measureText(place.name).width;
      const box = [x - 4, y - 9, x + wide + 14, y + 9];
      if (!isFree(box)) continue;
      taken.push(box);
      context.beginPath();
      context.arc(x, y, place.hub ? 2.6 : 1.8, 0, 2 * Math.PI);
      context.fillStyle = place.hub ? colours.fenceLine : colours.label;
      context.fill();
      context.strokeStyle = colours.halo;
      context.lineWidth = 3;
      context.strokeText(place.name, x + 8, y);
      context.fillStyle = colours.label;
      context.fillText(place.name, x + 8, y);
    }
    if (view.scale > NAMES_UNTIL) return;
    context.textAlign = "center";
    context.font = `500 10px ${colours.font}`;
    context.letterSpacing = "3px";
    context.fillStyle = colours.country;
    for (const country of this.countries) {
      const [x, y] = [view.screenX(country.x), view.screenY(country.y)];
      const half = context.measureText(country.name.toUpperCase()).width / 2;
      const box = [x - half, y - 7, x + half, y + 7];
      if (country.size * view.scale < 1.1 * half) continue;
      if (!isFree(box)) continue;
      taken.push(box);
      context.fillText(country.name.toUpperCase(), x, y);
    }
    context.letterSpacing = "0px";
    context.textAlign = "start";
  }
}

// A line is its first point and the steps from there, in units.
function unpack(numbers, unit) {
  const line = [];
  let x = 0;
  let y = 0;
  for (let at = 0; at < numbers.length; at += 2) {
    x += numbers[at];
    y += numbers[at + 1];
    line.push([worldX(x * unit), worldY(y * unit)]);
  }
  return line;
}

// A ring of arcs, ~n being arc n backwards.
function joined(ring, arcs) {
  return ring.flatMap((arc) => (arc >= 0 ? arcs[arc] : [...arcs[~arc]].reverse()));
}

function trace(path, line, closed) {
  line.forEach(([x, y], at) => (at ? path.lineTo(x, y) : path.moveTo(x, y)));
  if (closed) path.closePath();
}

function pathOf(lines, closed) {
  const path = new Path2D();
  for (const line of lines) trace(path, line, closed);
  return path;
}
