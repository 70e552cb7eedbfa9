// Hands on the map: mouse, fingers, wheel and keys.

const KEY_PAN = 90;
const CLICK_PX = 5;

export function listen(element, view, { onTap, onMove, keys }) {
  const down = new Map(); // the fingers on it
  let moved = 0;
  let last = null;

  const spread = () => {
    const [one, other] = [...down.values()];
    return {
      x: (one.x + other.x) / 2,
      y: (one.y + other.y) / 2,
      far: Math.hypot(one.x - other.x, one.y - other.y),
    };
  };
  const at = (event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    element.setPointerCapture(event.pointerId);
    down.set(event.pointerId, at(event));
    if (down.size === 1) moved = 0;
    last = down.size === 2 ? spread() : null;
  });
  element.addEventListener("pointermove", (event) => {
    const here = at(event);
    const before = down.get(event.pointerId);
    if (!before) return onMove(here);
    down.set(event.pointerId, here);
    moved += Math.hypot(here.x - before.x, here.y - before.y);
    if (down.size === 1) {
      if (moved > CLICK_PX) view.pan(here.x - before.x, here.y - before.y);
    } else if (down.size === 2 && last) {
      const now = spread();
      view.pan(now.x - last.x, now.y - last.y);
      if (last.far > 0) view.zoom(now.far / last.far, now.x, now.y);
      last = now;
    }
  });
  const up = (event) => {
    if (down.size === 1 && down.has(event.pointerId) && moved <= CLICK_PX && event.type === "pointerup")
      onTap(at(event), event.pointerType === "touch" ? 26 : 14);
    down.delete(event.pointerId);
    last = null;
  };
  element.addEventListener("pointerup", up);
  element.addEventListener("pointercancel", up);
  element.addEventListener("pointerleave", () => onMove(null));
  element.addEventListener("dblclick", (event) => view.zoom(2, at(event).x, at(event).y));
  element.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const step = event.deltaMode ? event.deltaY * 30 : event.deltaY;
      view.zoom(Math.exp(-step / (event.ctrlKey ? 120 : 480)), at(event).x, at(event).y);
    },
    { passive: false },
  );
  const table = {
    ArrowLeft: () => view.pan(KEY_PAN, 0),
    ArrowRight: () => view.pan(-KEY_PAN, 0),
    ArrowUp: () => view.pan(0, KEY_PAN),
    ArrowDown: () => view.pan(0, -KEY_PAN),
    "+": () => view.zoom(1.4),
    "=": () => view.zoom(1.4),
    "-": () => view.zoom(1 / 1.4),
    ...keys,
  };
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !table[event.key]) return;
    event.preventDefault();
    table[event.key]();
  });
}
