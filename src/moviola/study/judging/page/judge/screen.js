// The screen: one moment in a loop; the one that is likely to come next waits behind it.

import { url } from "../base/api.js";
import { h, icon } from "../base/dom.js";
import { t } from "../base/language.js";

/** @typedef {import("./task.js").Moment} Moment */

const stillMotion = window.matchMedia("(prefers-reduced-motion: reduce)");

/** A video element that stays within one moment. */
class Loop {
  /** @param {Moment} moment @param {() => void} onChange @param {() => void} onBroken */
  constructor(moment, onChange, onBroken) {
    this.moment = moment;
    this.start = moment.start;
    this.end = moment.end;
    this.onBroken = onBroken;
    /** Whether it should play. */
    this.wanted = false;
    this.element = h("video", { playsinline: true, tabindex: "-1", preload: "auto", "aria-label": t("The moment") });
    this.element.muted = true;
    for (const event of ["play", "pause", "volumechange"]) this.element.addEventListener(event, onChange);
    this.element.addEventListener("error", () => this.#takeClip());
    this.element.addEventListener("ended", () => { this.again(); });
    this.#load(url.stream(moment.video_id));
  }

  /** @param {string} address */
  #load(address) {
    const { start, element } = this;
    element.src = start > 0 ? `${address}#t=${start}` : address;
    element.addEventListener("loadedmetadata", () => { if (Math.abs(element.currentTime - start) > 0.05) element.currentTime = start; }, { once: true });
  }

  /** Some videos are no files that browsers play: of these, the moment is cut out. */
  #takeClip() {
    if (this.start === 0 && this.end === this.moment.end - this.moment.start) return this.onBroken();
    const { video_id, start, end } = this.moment;
    this.start = 0;
    this.end = end - start;
    this.#load(url.clip(video_id, start, end));
    if (!this.element.paused || this.wanted) void this.play();
  }

  async play() {
    this.wanted = true;
    try {
      await this.element.play();
    } catch {
      // It was paused or taken away before it began, or the browser waits for a click.
    }
  }

  pause() {
    this.wanted = false;
    this.element.pause();
  }

  again() {
    this.element.currentTime = this.start;
    if (this.wanted) void this.play();
  }

  /** Where it is in the moment, from 0 to 1; back to the start where that is over. */
  follow() {
    const { currentTime, seeking } = this.element;
    if (!seeking && (currentTime >= this.end - 0.03 || currentTime < this.start - 0.5)) this.again();
    return Math.min(Math.max((currentTime - this.start) / (this.end - this.start), 0), 1);
  }

  close() {
    this.pause();
    this.element.removeAttribute("src");
    this.element.load();
    this.element.remove();
  }
}

/** Shows one moment after the other. */
export class Screen {
  /** @type {Loop | null} */
  #now = null;
  /** @type {Loop | null} */
  #next = null;
  #muted = true;

  constructor() {
    this.position = h("div", { class: "loop-position", "aria-hidden": "true" });
    this.stage = h("div", { class: "loop-stage", onclick: () => this.toggle() });
    this.failure = h("p", { class: "loop-failure", role: "alert", hidden: true }, t("This moment cannot be played here. Skip it with S."));
    this.toggleButton = h("button", { type: "button", class: "icon-button", onclick: () => this.toggle() });
    this.soundButton = h("button", { type: "button", class: "icon-button", onclick: () => this.mute() });
    this.element = h("div", { class: "loop" }, this.stage, this.position, this.failure);
    this.tools = h("div", { class: "loop-tools" }, this.toggleButton,
      h("button", { type: "button", class: "icon-button", title: t("From its beginning (R)"), "aria-label": t("From its beginning (R)"), onclick: () => this.again() }, icon("loop")),
      this.soundButton);
    this.#drawTools();
  }

  /** @param {Moment} moment */
  #make(moment) {
    /** @type {Loop} */
    const loop = new Loop(moment, () => this.#drawTools(), () => { if (this.#now === loop) this.failure.hidden = false; });
    return loop;
  }

  /** @param {Moment} moment @param {Moment | undefined} next what is likely to come then. */
  show(moment, next) {
    if (this.#now?.moment.pair_id !== moment.pair_id) {
      const waiting = this.#next?.moment.pair_id === moment.pair_id ? this.#next : null;
      if (!waiting) this.#next?.close();
      this.#next = null;
      this.#now?.close();
      this.failure.hidden = true;
      this.#now = waiting ?? this.#make(moment);
      this.stage.replaceChildren(this.#now.element);
      this.#now.element.muted = this.#muted;
      if (!stillMotion.matches) void this.#now.play();
      if (this.#now.element.error) this.failure.hidden = false;
    }
    if (next && next.pair_id !== moment.pair_id && this.#next?.moment.pair_id !== next.pair_id) {
      this.#next?.close();
      this.#next = this.#make(next);
    }
    this.#drawTools();
    requestAnimationFrame(() => this.#follow());
  }

  close() {
    this.#now?.close();
    this.#next?.close();
    this.#now = this.#next = null;
  }

  toggle() {
    if (!this.#now) return;
    if (this.#now.element.paused) void this.#now.play();
    else this.#now.pause();
  }

  again() {
    if (!this.#now) return;
    this.#now.again();
    void this.#now.play();
  }

  mute() {
    this.#muted = !this.#muted;
    if (this.#now) this.#now.element.muted = this.#muted;
    this.#drawTools();
  }

  #following = false;

  #follow() {
    if (this.#following || !this.#now) return;
    this.#following = true;
    const step = () => {
      if (!this.#now || !this.#now.element.isConnected) {
        this.#following = false;
        return;
      }
      this.position.style.setProperty("--share", String(this.#now.follow()));
      requestAnimationFrame(step);
    };
    step();
  }

  #drawTools() {
    const paused = this.#now?.element.paused ?? true;
    set(this.toggleButton, paused ? "play" : "pause", paused ? t("Play (space)") : t("Pause (space)"));
    set(this.soundButton, this.#muted ? "muted" : "sound", this.#muted ? t("Sound on (M)") : t("Sound off (M)"));
  }
}

/**
 * @param {HTMLButtonElement} button
 * @param {import("../base/dom.js").IconName} name
 * @param {string} label
 */
function set(button, name, label) {
  if (button.title === label) return;
  button.title = label;
  button.setAttribute("aria-label", label);
  button.replaceChildren(icon(name));
}
