// Where things stand: longitude and latitude on Mercator's plane, and the part of the plane that is seen.
// World units are degrees of longitude; y grows to the south, as on a screen.

const RADIANS = Math.PI / 180;
const LIMITS = { least: 8, most: 9000 };
/* Pixels per world unit: from half the continent down to a town. */

export const worldX = (lon) => lon;
export const worldY = (lat) => -Math.log(Math.tan(Math.PI / 4 + (lat * RADIANS) / 2)) / RADIANS;
export const lonOf = (x) => x;
export const latOf = (y) => (2 * Math.atan(Math.exp(-y * RADIANS)) - Math.PI / 2) / RADIANS;

// How many world units a kilometre is at a latitude.
export const unitsPerKm = (lat) => 1 / (111.195 * Math.cos(lat * RADIANS));

export class View {
  constructor() {
    this.x = 8;
    this.y = worldY(49);
    this.scale = 30;
    this.width = this.height = 1;
    this.version = 0; // grows with every change, so that layers know when to draw again
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.version++;
  }

  screenX(x) {
    return (x - this.x) * this.scale + this.width / 2;
  }

  screenY(y) {
    return (y - this.y) * this.scale + this.height / 2;
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.version++;
  }

  // Come closer by a factor; what is under the point stays under it.
  zoom(factor, atX = this.width / 2, atY = this.height / 2) {
    const scale = Math.min(Math.max(this.scale * factor, LIMITS.least), LIMITS.most);
    this.x += (atX - this.width / 2) * (1 / this.scale - 1 / scale);
    this.y += (atY - this.height / 2) * (1 / this.scale - 1 / scale);
    this.scale = scale;
    this.version++;
  }

  // See all of these places in what the panels leave free; `free` has pixels from each edge.
  fit(points, free) {
    if (!points.length) return;
    const xs = points.map((point) => worldX(point.lon));
    const ys = points.map((point) => worldY(point.lat));
    const [west, east] = [Math.min(...xs), Math.max(...xs)];
    const [north, south] = [Math.min(...ys), Math.max(...ys)];
    const wide = Math.max(this.width - free.left - free.right, 40);
    const high = Math.max(this.height - free.top - free.bottom, 40);
    const scale = Math.min(wide / Math.max(east - west, 0.5), high / Math.max(south - north, 0.5));
    this.scale = Math.min(Math.max(scale, LIMITS.least), LIMITS.most);
    this.x = (west + east) / 2 - (free.left - free.right) / 2 / this.scale;
    this.y = (north + south) / 2 - (free.top - free.bottom) / 2 / this.scale;
    this.version++;
  }

  // A canvas context that takes world units; lines there are as wide as their width divided by the scale.
  enter(context, ratio) {
    const k = this.scale * ratio;
    context.setTransform(k, 0, 0, k, (this.width / 2) * ratio - this.x * k, (this.height / 2) * ratio - this.y * k);
  }
}
