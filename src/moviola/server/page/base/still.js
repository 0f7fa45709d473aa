// A still that moves: the wheel (or a finger) scrubs it through its moment, resting on it plays that, muted.

import * as api from "./api.js";
import { h } from "./dom.js";
import { clock } from "./format.js";

const REST = 700; // ms on a still before it plays
const SETTLED = 350; // ms after the page has scrolled before the wheel may scrub
const NOTCH = 50; // px of wheel for one still
const FLIP = 350; // ms for one still where they are played as stills
const SWIPE = 14; // px of a finger for one still
const FRAME = 16 / 9;
const STRIP_WIDTH = 240;
const WIDEST = 2.1; // shapes from here on, and below 1.5, keep their borders instead of being cropped
const stillMotion = window.matchMedia("(prefers-reduced-motion: reduce)");

let lastScroll = 0;
window.addEventListener("scroll", () => { lastScroll = performance.now(); }, { passive: true, capture: true });

/** The still that plays, if any: never two at once.
 * @type {Still | null} */
let playing = null;

/** Videos that are known to play as they are.
 * @type {Set<string>} */
const playable = new Set();

/** Whether a video plays at once: resting on a still must not have a whole video converted.
 * @param {string} video */
export async function isPlayable(video) {
  if (playable.has(video)) return true;
  const info = await api.video(video).catch(() => null);
  if (info?.playable || info?.stream_ready) playable.add(video);
  return playable.has(video);
}

/** One still of a span of a video. */
export class Still {
  /** @type {HTMLImageElement | null} */
  #strip = null;
  /** @type {HTMLVideoElement | null} */
  #video = null;
  #wheel = 0;
  #engaged = false;
  #rest = 0;
  #flip = 0;

  /**
   * @param {{video_id: string, start: number, end: number, version?: string}} span
   * @param {{time?: number, priority?: boolean}} [options] what it shows at first; the middle unless said.
   */
  constructor(span, { time, priority = false } = {}) {
    this.span = span;
    this.first = time ?? (span.start + span.end) / 2;
    this.count = Math.round(Math.min(Math.max(span.end - span.start, 8), 20));
    /** Which still of the strip is shown; -1 for none. */
    this.at = -1;
    this.image = h("img", { alt: "", draggable: "false", decoding: "async", loading: priority ? "eager" : "lazy", src: api.url.still(span, this.first) });
    this.position = h("span", { class: "position", hidden: true });
    this.element = h("span", { class: "still" }, this.image, this.position);
    this.image.addEventListener("load", () => this.#fit());
    this.image.addEventListener("error", () => this.element.classList.add("missing"));
    this.#listen();
  }

  /** Seconds of the picture that is shown. */
  get time() {
    if (this.#video) return this.#video.currentTime;
    if (this.at < 0) return this.first;
    return this.span.start + ((this.at + 0.5) / this.count) * (this.span.end - this.span.start);
  }

  #fit() {
    const shape = this.image.naturalWidth / this.image.naturalHeight;
    const whole = shape < 1.5 || shape > WIDEST;
    this.element.classList.toggle("whole", whole);
    this.element.style.backgroundImage = whole ? `url("${this.image.src}")` : "";
  }

  #listen() {
    const element = this.element;
    element.addEventListener("wheel", (event) => this.#onWheel(event), { passive: false });
    element.addEventListener("pointermove", (event) => {
      if (!(event.movementX || event.movementY)) return;
      this.#engaged = true;
      if (event.pointerType === "mouse" && this.at < 0) this.#rested();
    });
    element.addEventListener("pointerleave", () => this.reset());
    let touched = 0;
    element.addEventListener("touchstart", (event) => { touched = event.touches[0]?.clientX ?? 0; this.#load(); }, { passive: true });
    element.addEventListener("touchmove", (event) => {
      const moved = Math.trunc(((event.touches[0]?.clientX ?? 0) - touched) / SWIPE);
      if (moved) { touched += moved * SWIPE; this.scrub(moved); }
    }, { passive: true });
  }

  /** The wheel scrubs once the pointer was moved here; while the page scrolls by, it goes on scrolling.
   * @param {WheelEvent} event */
  #onWheel(event) {
    const now = performance.now();
    if (now - lastScroll < SETTLED) this.#engaged = false;
    if (event.ctrlKey || !this.#engaged) return;
    const delta = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY;
    event.preventDefault();
    this.#wheel += event.deltaMode ? delta * 30 : delta;
    const stills = Math.trunc(this.#wheel / NOTCH);
    if (stills) { this.#wheel -= stills * NOTCH; this.scrub(stills); }
  }

  #load() {
    if (this.#strip) return;
    const strip = h("img", { class: "strip", alt: "", hidden: true, draggable: "false", src: api.url.strip(this.span, this.count, STRIP_WIDTH) });
    strip.addEventListener("load", () => { this.#shape(strip); this.#draw(); });
    this.#strip = strip;
    this.element.insertBefore(strip, this.position);
  }

  /** Lay one still of the strip over the picture, cropped or bordered like it.
   * @param {HTMLImageElement} strip */
  #shape(strip) {
    const shape = strip.naturalWidth / this.count / strip.naturalHeight;
    const whole = this.element.classList.contains("whole");
    const byHeight = whole ? shape < FRAME : shape > FRAME;
    const width = byHeight ? shape / FRAME : 1;
    strip.style.setProperty("--tile", String(width));
    strip.style.setProperty("--tile-height", String(byHeight ? 1 : FRAME / shape));
    strip.style.setProperty("--count", String(this.count));
  }

  /** Move by a number of stills.
   * @param {number} stills */
  scrub(stills) {
    this.stop();
    const from = this.at < 0 ? (stills > 0 ? -1 : this.count) : this.at;
    this.at = Math.min(Math.max(from + stills, 0), this.count - 1);
    this.#load();
    this.#draw();
    this.#rested();
  }

  #draw() {
    if (this.at < 0 || !this.#strip) return;
    const ready = this.#strip.complete && this.#strip.naturalWidth > 0;
    this.#strip.hidden = !ready;
    this.#strip.style.setProperty("--at", String(this.at));
    this.#mark((this.at + 0.5) / this.count);
  }

  /** @param {number} share of the moment that has passed */
  #mark(share) {
    this.position.hidden = false;
    this.position.style.setProperty("--share", String(Math.min(Math.max(share, 0), 1)));
    this.position.dataset.time = clock(this.time, this.span.end - this.span.start < 20 ? 1 : 0);
  }

  /** Play soon, unless something happens first; those who want stillness get it. */
  #rested() {
    clearTimeout(this.#rest);
    if (!stillMotion.matches) this.#rest = window.setTimeout(() => this.play(), REST);
  }

  /** Play the moment in place, muted, again and again; as stills where the video would have to be converted. */
  play() {
    if (playing === this) return;
    playing?.stop();
    playing = this;
    void isPlayable(this.span.video_id).then((playable) => {
      if (playing !== this) return;
      if (playable) this.#playVideo();
      else this.#playStills();
    });
  }

  #playVideo() {
    const { start, end } = this.span;
    const from = this.at < 0 ? start : this.time;
    const video = h("video", { playsinline: true, tabindex: "-1", "aria-hidden": "true", src: `${api.url.stream(this.span.video_id)}#t=${from}` });
    video.muted = true;
    video.addEventListener("playing", () => video.classList.add("moving"), { once: true });
    video.addEventListener("timeupdate", () => {
      if (video.currentTime >= end || video.ended) { video.currentTime = start; void video.play().catch(() => {}); }
      this.#mark((video.currentTime - start) / (end - start));
    });
    video.addEventListener("error", () => this.stop());
    this.#video = video;
    this.element.insertBefore(video, this.position);
    video.play().catch(() => this.stop());
  }

  #playStills() {
    this.#load();
    this.#flip = window.setInterval(() => {
      this.at = (this.at + 1) % this.count;
      this.#draw();
    }, FLIP);
  }

  /** Stop playing; the picture that was scrubbed to stays. */
  stop() {
    clearTimeout(this.#rest);
    clearInterval(this.#flip);
    if (playing === this) playing = null;
    const video = this.#video;
    if (!video) return;
    this.#video = null;
    video.pause();
    video.removeAttribute("src");
    video.load();
    video.remove();
    if (this.at < 0) this.position.hidden = true;
  }

  toggle() {
    if (playing === this) this.stop();
    else this.play();
  }

  /** Back to how it was. */
  reset() {
    this.at = -1;
    this.#wheel = 0;
    this.#engaged = false;
    this.stop();
    this.position.hidden = true;
    if (this.#strip) this.#strip.hidden = true;
  }
}
