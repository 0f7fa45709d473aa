// Where the moment lies: close by, with stills and ends that can be moved, and in the whole video, with the
// score curve, shots and cues.

import { url } from "../base/api.js";
import { fill, h, svg } from "../base/dom.js";
import { clock } from "../base/format.js";
import { t } from "../base/language.js";

/** @typedef {{start: number, end: number}} Span */
/** @typedef {{duration: number, shape: number, span: Span, others: (Span & {score: number})[], shots: import("../base/api.js").Shot[],
 *   cues: import("../base/api.js").Cue[], curve: import("../base/api.js").Curve | null, video_id: string, version?: string | undefined, trims: boolean}} Shown */

const LEAST = 0.1; // seconds between the ends
const AROUND = 0.8; // so much of the moment's length is shown before and after it
const ROOM = 5; // least number of seconds
const CURVE = 100; // height of the curve in its own units

/** Two tracks under a video. */
export class Timeline {
  /** @type {Shown | null} */
  #shown = null;
  /** Seconds at both ends of the track close by. */
  #near = { start: 0, end: 1 };
  /** @type {"start" | "end" | null} */
  #dragged = null;

  /**
   * @param {(time: number) => void} onSeek
   * @param {(span: Span, done: boolean) => void} onTrim called while an end is moved, and when it is let go.
   */
  constructor(onSeek, onTrim) {
    this.onSeek = onSeek;
    this.onTrim = onTrim;
    this.strip = h("img", { alt: "", class: "near-stills", draggable: "false" });
    this.before = h("span", { class: "outside before" });
    this.after = h("span", { class: "outside after" });
    this.start = this.#handle("start");
    this.end = this.#handle("end");
    this.nearHead = h("span", { class: "head" });
    this.wholeHead = h("span", { class: "head" });
    this.near = h("div", { class: "near" }, this.strip, this.before, this.after, this.nearHead, this.start, this.end);
    this.whole = h("div", { class: "whole-video" });
    this.scale = h("div", { class: "scale", "aria-hidden": "true" });
    this.element = h("div", { class: "timeline" }, this.near, this.scale, this.whole);
    this.#seekBy(this.near, () => this.#near);
    this.#seekBy(this.whole, () => ({ start: 0, end: this.#shown?.duration ?? 1 }));
  }

  /** @param {"start" | "end"} side */
  #handle(side) {
    const label = side === "start" ? t("Start of the moment") : t("End of the moment");
    const handle = h("span", { class: `handle ${side}`, role: "slider", tabindex: "0", "aria-label": label });
    handle.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      handle.setPointerCapture(event.pointerId);
      this.#dragged = side;
    });
    handle.addEventListener("pointermove", (event) => {
      if (this.#dragged === side) this.#moveEnd(side, this.#timeAt(event, this.near, this.#near), false);
    });
    const letGo = () => {
      if (this.#dragged !== side) return;
      this.#dragged = null;
      if (this.#shown) this.onTrim(this.#shown.span, true);
      this.#drawNear();
    };
    handle.addEventListener("pointerup", letGo);
    handle.addEventListener("pointercancel", letGo);
    handle.addEventListener("keydown", (event) => this.#onKey(event, side));
    return handle;
  }

  /** @param {KeyboardEvent} event @param {"start" | "end"} side */
  #onKey(event, side) {
    const by = { ArrowLeft: -0.1, ArrowDown: -0.1, ArrowRight: 0.1, ArrowUp: 0.1, PageDown: -1, PageUp: 1 }[event.key];
    if (by === undefined || !this.#shown) return;
    event.preventDefault();
    event.stopPropagation();
    this.#moveEnd(side, this.#shown.span[side] + (event.shiftKey ? 10 * by : by), true);
  }

  /** @param {"start" | "end"} side @param {number} time @param {boolean} done */
  #moveEnd(side, time, done) {
    const shown = this.#shown;
    if (!shown) return;
    const { start, end } = shown.span;
    const span = side === "start"
      ? { start: Math.min(Math.max(time, 0), end - LEAST), end }
      : { start, end: Math.max(Math.min(time, shown.duration), start + LEAST) };
    shown.span = { start: tenth(span.start), end: tenth(span.end) };
    this.#placeSpan();
    this.onTrim(shown.span, done);
  }

  /** @param {HTMLElement} track @param {() => Span} range */
  #seekBy(track, range) {
    let held = false;
    const seek = (/** @type {PointerEvent} */ event) => this.onSeek(this.#timeAt(event, track, range()));
    track.addEventListener("pointerdown", (event) => { held = true; track.setPointerCapture(event.pointerId); seek(event); });
    track.addEventListener("pointermove", (event) => { if (held) seek(event); });
    for (const end of ["pointerup", "pointercancel"]) track.addEventListener(end, () => { held = false; });
  }

  /** @param {PointerEvent} event @param {HTMLElement} track @param {Span} range */
  #timeAt(event, track, { start, end }) {
    const box = track.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    return start + share * (end - start);
  }

  /** @param {Shown} shown */
  show(shown) {
    this.#shown = shown;
    this.#drawNear();
    this.#drawWhole();
  }

  /** @param {Span} span */
  trim(span) {
    if (!this.#shown) return;
    this.#shown.span = span;
    if (span.start < this.#near.start || span.end > this.#near.end) this.#drawNear();
    else this.#placeSpan();
  }

  #drawNear() {
    const shown = this.#shown;
    if (!shown) return;
    const { span, duration } = shown;
    this.#near = around(span, duration);
    const address = url.strip({ ...shown, ...this.#near }, this.#tiles(shown.shape), 160);
    if (this.strip.getAttribute("src") !== address) this.strip.src = address;
    this.start.hidden = this.end.hidden = !shown.trims;
    this.#placeSpan();
    const steps = 5;
    fill(this.scale, Array.from({ length: steps }, (_, i) => {
      const time = this.#near.start + (i / (steps - 1)) * (this.#near.end - this.#near.start);
      return h("span", {}, clock(time, this.#near.end - this.#near.start < 15 ? 1 : 0));
    }));
  }

  /** @param {number} shape of the pictures */
  #tiles(shape) {
    const height = this.near.clientHeight || 64;
    return Math.min(Math.max(Math.round((this.near.clientWidth || 800) / (height * shape)), 3), 24);
  }

  /** Address of the stills around another moment, as they would be shown.
   * @param {Span & {video_id: string, version?: string}} moment @param {number} duration @param {number} shape */
  stillsOf(moment, duration, shape) {
    return url.strip({ ...moment, ...around(moment, duration) }, this.#tiles(shape), 160);
  }

  #placeSpan() {
    const shown = this.#shown;
    if (!shown) return;
    const { start, end } = this.#near;
    const share = (/** @type {number} */ time) => Math.min(Math.max((time - start) / (end - start), 0), 1);
    this.near.style.setProperty("--start", String(share(shown.span.start)));
    this.near.style.setProperty("--end", String(share(shown.span.end)));
    for (const side of /** @type {const} */ (["start", "end"])) {
      const time = shown.span[side];
      setAll(this[side], { "aria-valuemin": 0, "aria-valuemax": Math.round(shown.duration), "aria-valuenow": tenth(time), "aria-valuetext": clock(time, 1) });
    }
    const mark = this.whole.querySelector(".span");
    if (mark) setAll(mark, { x: shown.span.start, width: Math.max(shown.span.end - shown.span.start, shown.duration / 400) });
  }

  #drawWhole() {
    const shown = this.#shown;
    if (!shown) return;
    const { duration, span, others, shots, cues, curve } = shown;
    const least = duration / 400;
    const rect = (/** @type {string} */ name, /** @type {Span} */ { start, end }, y = 0, height = CURVE) =>
      svg("rect", { class: name, x: start, y, width: Math.max(end - start, least), height });
    const drawing = svg("svg", { viewBox: `0 0 ${duration} ${CURVE}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      rect("span", span),
      ...(curve ? curvePaths(curve, duration) : []),
      ...shots.slice(1).map((shot) => svg("path", { class: "shot", d: `M${shot.start} ${CURVE - 10}V${CURVE}` })),
      ...others.map((other) => otherBar(rect("other", other, CURVE - 5, 5), other.score)),
      ...cues.map((cue) => rect("cue", cue, 0, 5)));
    fill(this.whole, drawing, this.wholeHead);
  }

  /** @param {number} time of the picture that is shown */
  at(time) {
    const { start, end } = this.#near;
    const share = (time - start) / (end - start);
    this.nearHead.hidden = share < 0 || share > 1;
    this.nearHead.style.setProperty("--share", String(share));
    this.wholeHead.style.setProperty("--share", String(time / (this.#shown?.duration || 1)));
  }
}

/** The span that is shown enlarged.
 * @param {Span} span @param {number} duration @returns {Span} */
function around(span, duration) {
  const room = Math.max((span.end - span.start) * AROUND, ROOM);
  return { start: Math.max(span.start - room, 0), end: Math.min(span.end + room, duration) };
}

/** What else was found in this video, the better the plainer.
 * @param {SVGElement} bar @param {number} score */
function otherBar(bar, score) {
  bar.setAttribute("opacity", String(0.1 + 0.8 * score));
  return bar;
}

/** @param {import("../base/api.js").Curve} curve @param {number} duration @returns {SVGElement[]} */
function curvePaths({ times, scores }, duration) {
  if (times.length === 0) return [];
  const high = Math.max(...scores, 0.001);
  const points = times.map((time, i) => `${time.toFixed(2)} ${(CURVE - 4 - ((scores[i] ?? 0) / high) * (CURVE - 16)).toFixed(1)}`);
  const line = `M0 ${points[0]?.split(" ")[1]}L${points.join("L")}L${duration} ${points.at(-1)?.split(" ")[1]}`;
  return [svg("path", { class: "curve-area", d: `${line}V${CURVE}H0Z` }), svg("path", { class: "curve", d: line })];
}

/** @param {number} seconds */
const tenth = (seconds) => Math.round(seconds * 10) / 10;

/** @param {Element} element @param {Record<string, string | number>} attributes */
function setAll(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}
