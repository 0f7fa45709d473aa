// Where videos were taken: points on a net of degrees, of which a circle is chosen by drag, or by the arrows.

import { fill, h, svg } from "../base/dom.js";
import { plural, t } from "../base/language.js";

/**
 * @typedef {{latitude: number, longitude: number}} Point
 * @typedef {Point & {videos: number}} Place
 * @typedef {Point & {metres: number}} Circle
 * @typedef {{x: number, y: number}} Pixel
 */

const [WIDTH, HEIGHT] = [360, 210];
const CELL = 16; // pixels: points of one cell are joined
const METRES = 111_195; // of a degree of latitude
const STEPS = [45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01];
const CLOSEST = 40_000; // pixels of a degree
const TAP = 6; // pixels that a finger may move

/** A circle as the filter has it, 52.52,13.4,5km; null where the text has another form.
 * @param {string} text @returns {Circle | null} */
export function circleOf(text) {
  const [, north, east, far = "1", unit] = /^([-+\d.]+), *([-+\d.]+)(?:, *([\d.]+) *(km|m)?)?$/.exec(text.trim()) ?? [];
  return north ? { latitude: Number(north), longitude: Number(east), metres: Number(far) * (unit === "m" ? 1 : 1000) } : null;
}

/** @param {number} metres */
const distance = (metres) => (metres < 1000 ? `${Math.round(metres)}m` : `${Number((metres / 1000).toPrecision(3))}km`);

/** @param {Circle} circle */
export const textOf = ({ latitude, longitude, metres }) => `${Number(latitude.toFixed(4))},${Number(longitude.toFixed(4))},${distance(metres)}`;

/** @param {number} value @param {string} sides names of what is above and below 0 */
const degrees = (value, sides) => `${Number(Math.abs(value).toFixed(2))}° ${value < 0 ? sides[1] : sides[0]}`;

/** @param {Point} point */
const placeName = ({ latitude, longitude }) => `${degrees(latitude, "NS")}, ${degrees(longitude, "EW")}`;

/** @param {(circle: Circle | null) => void} choose */
export function placeMap(choose) {
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "map", role: "listbox", tabindex: 0, "aria-label": t("Places where videos were taken") });
  const said = h("span", { class: "bars-said" });
  /** @type {Place[]} */
  let places = [];
  /** @type {Circle | null} */
  let circle = null;
  /** @type {(Place & Pixel)[]} */
  let joined = [];
  let active = 0;
  let at = { latitude: 0, longitude: 0, scale: 1 };
  /** @type {Pixel | null} */
  let from = null;

  const squeeze = () => Math.max(0.05, Math.cos((at.latitude * Math.PI) / 180));
  /** @param {Point} point */
  const onMap = ({ latitude, longitude }) => ({ x: WIDTH / 2 + (longitude - at.longitude) * squeeze() * at.scale, y: HEIGHT / 2 + (at.latitude - latitude) * at.scale });
  /** @param {number} x @param {number} y @returns {Point} */
  const onEarth = (x, y) => ({
    latitude: Math.min(90, Math.max(-90, at.latitude - (y - HEIGHT / 2) / at.scale)),
    longitude: Math.min(180, Math.max(-180, at.longitude + (x - WIDTH / 2) / squeeze() / at.scale)),
  });
  /** @param {number} pixels */
  const metres = (pixels) => (pixels / at.scale) * METRES;
  /** @param {Pixel} one @param {Pixel} other */
  const between = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);

  const fit = () => {
    const [north, east] = [places.map((one) => one.latitude), places.map((one) => one.longitude)];
    const [low, high, left, right] = [Math.min(...north), Math.max(...north), Math.min(...east), Math.max(...east)];
    at = { latitude: (low + high) / 2, longitude: (left + right) / 2, scale: 1 };
    at.scale = Math.min((WIDTH - 50) / ((right - left) * squeeze()), (HEIGHT - 40) / (high - low), CLOSEST / 8);
  };

  /** Points that would lie on each other, as one. */
  const join = () => {
    const cells = new Map();
    for (const { videos, ...place } of places) {
      const here = onMap(place);
      if (here.x < 0 || here.y < 0 || here.x > WIDTH || here.y > HEIGHT) continue;
      const key = `${Math.floor(here.x / CELL)},${Math.floor(here.y / CELL)}`;
      const cell = cells.get(key) ?? { videos: 0, latitude: 0, longitude: 0, x: 0, y: 0 };
      cell.videos += videos;
      for (const [name, value] of Object.entries({ ...place, ...here })) cell[name] += ((value - cell[name]) * videos) / cell.videos;
      cells.set(key, cell);
    }
    joined = [...cells.values()].sort((a, b) => a.x - b.x);
    active = Math.min(active, Math.max(joined.length - 1, 0));
  };

  /** Lines of degrees with their names. */
  const net = () => {
    const step = STEPS.find((one) => one * at.scale < HEIGHT / 2.5) ?? 0.005;
    const [first, last] = [onEarth(0, HEIGHT), onEarth(WIDTH, 0)];
    const parts = [];
    for (let north = Math.ceil(first.latitude / step) * step; north <= last.latitude; north += step) {
      const { y } = onMap({ latitude: north, longitude: 0 });
      parts.push(svg("path", { d: `M0 ${y}H${WIDTH}` }), svg("text", { x: 3, y: y - 3 }, new Text(degrees(north, "NS"))));
    }
    for (let east = Math.ceil(first.longitude / step / 2) * step * 2; east <= last.longitude; east += 2 * step) {
      const { x } = onMap({ latitude: 0, longitude: east });
      parts.push(svg("path", { d: `M${x} 0V${HEIGHT}` }), svg("text", { x: x + 3, y: HEIGHT - 4 }, new Text(degrees(east, "EW"))));
    }
    return svg("g", { class: "net", "aria-hidden": "true" }, ...parts);
  };

  const draw = () => {
    join();
    const ring = circle && { ...onMap(circle), r: (circle.metres / METRES) * at.scale };
    const text = (/** @type {Place} */ one) => `${placeName(one)}: ${plural(one.videos, "{n} video", "{n} videos")}`;
    fill(drawing, net(), ring && svg("circle", { class: "ring", "aria-hidden": "true", cx: ring.x, cy: ring.y, r: Math.max(3, ring.r) }),
      joined.map((one, i) => svg("circle", {
        role: "option", id: `place-${i}`, "aria-label": text(one), "aria-selected": String(ring !== null && between(one, ring) <= ring.r),
        cx: one.x, cy: one.y, r: Math.min(11, 4.5 + 1.3 * Math.log2(one.videos)), class: i === active ? "active" : "",
      })));
    if (joined.length) drawing.setAttribute("aria-activedescendant", `place-${active}`);
    const now = document.activeElement === drawing && joined[active];
    said.textContent = circle ? `${placeName(circle)}, ${distance(circle.metres)}` : now ? text(now) : "";
  };

  /** @param {Point} centre @param {number} far metres */
  const take = (centre, far) => { circle = { ...centre, metres: Math.max(far, 100) }; draw(); };
  /** The active point with all that is joined in it. */
  const pick = () => {
    const one = joined[active];
    if (!one) return;
    take({ latitude: one.latitude, longitude: one.longitude }, metres(CELL));
    choose(circle);
  };
  /** @param {number} by */
  const zoom = (by) => {
    const { latitude, longitude } = circle ?? joined[active] ?? at;
    at = { latitude, longitude, scale: Math.min(at.scale * by, CLOSEST) };
    draw();
  };

  /** @param {PointerEvent} event */
  const pixel = (event) => {
    const box = drawing.getBoundingClientRect();
    const scale = WIDTH / box.width;
    return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
  };
  /** @param {PointerEvent} event @returns {number} pixels since the pointer went down */
  const drag = (event) => {
    const far = from ? between(pixel(event), from) : 0;
    if (from && far > TAP) take(onEarth(from.x, from.y), metres(far));
    return far;
  };
  drawing.addEventListener("pointerdown", (event) => { from = pixel(event); drawing.setPointerCapture(event.pointerId); });
  drawing.addEventListener("pointermove", drag);
  drawing.addEventListener("pointercancel", () => { from = null; });
  drawing.addEventListener("pointerup", (event) => {
    const [start, far] = [from, drag(event)];
    from = null;
    if (!start) return;
    if (far > TAP) return choose(circle);
    const away = joined.map((one) => between(one, start));
    active = Math.max(0, away.indexOf(Math.min(...away)));
    pick();
  });
  for (const kind of ["focus", "blur"]) drawing.addEventListener(kind, draw);
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const grow = { "+": 1.5, "-": 1 / 1.5 }[event.key];
    if (step) { active = (active + step + joined.length) % Math.max(joined.length, 1); draw(); }
    else if (event.key === "Enter" || event.key === " ") pick();
    else if (event.key === "Delete") choose(null);
    else if (grow && circle) { take(circle, circle.metres * grow); choose(circle); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  /** @param {string} sign @param {string} label @param {() => void} onclick */
  const button = (sign, label, onclick) => h("button", { type: "button", class: "quiet", "aria-label": label, onclick }, sign);
  return {
    element: h("div", {}, drawing, h("div", { class: "levels" }, button("+", t("Nearer"), () => zoom(2)), button("−", t("Farther"), () => zoom(0.5)), button("⤢", t("All places"), () => { fit(); draw(); }), said)),
    /** @param {Place[]} now @param {Circle | null} circle_ */
    draw(now, circle_) {
      circle = circle_;
      if (now !== places) { places = now; fit(); }
      if (places.length) draw();
    },
  };
}
