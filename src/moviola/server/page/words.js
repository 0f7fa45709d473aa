// What is said and what is written in a video, apart, each following the playback.

import { fill, h } from "./dom.js";
import { clock, marked } from "./format.js";
import { t } from "./language.js";

/** @typedef {import("./api.js").Cue} Cue */

const LISTED = 300; // cues of a list at once, around the one that is near

/** Cues of one kind under a heading. */
class Words {
  #list = h("ol", { class: "cues" });
  /** @type {Cue[]} */
  #cues = [];
  #first = 0;
  /** @type {Set<string>} */
  #sought = new Set();

  /** @param {string} name @param {(time: number) => void} seek */
  constructor(name, seek) {
    this.seek = seek;
    this.element = h("section", { "aria-label": name }, h("h3", {}, name), this.#list);
  }

  /** @param {Cue[]} cues by time @param {Set<string>} sought words to be marked */
  show(cues, sought) {
    this.#cues = cues;
    this.#sought = sought;
    this.element.hidden = cues.length === 0;
    this.#draw(0);
  }

  /** @param {number} first */
  #draw(first) {
    this.#first = first;
    fill(this.#list, this.#cues.slice(first, first + LISTED).map(({ start, text }) => h("li", {},
      h("button", { type: "button", onclick: () => this.seek(start) }, h("span", { class: "time" }, clock(start)), h("span", { dir: "auto" }, marked(text, this.#sought))))));
  }

  /** Mark what is there now, and keep it in sight, unless the list is being read.
   * @param {number} time @param {boolean} jump whether in any case */
  follow(time, jump) {
    let near = this.#cues.findLastIndex((cue) => cue.start <= time + 0.5);
    if (near < 0) near = 0;
    const reads = !jump && this.#list.matches(":hover, :focus-within");
    if (!reads && (near < this.#first || near >= this.#first + LISTED)) this.#draw(Math.max(near - LISTED / 2, 0));
    [...this.#list.children].forEach((line, i) => {
      const cue = this.#cues[this.#first + i];
      line.firstElementChild?.toggleAttribute("aria-current", cue !== undefined && time >= cue.start && time < cue.end);
    });
    const line = this.#list.children[near - this.#first];
    if (line instanceof HTMLElement && !reads) this.#list.scrollTop = line.offsetTop - this.#list.clientHeight / 2;
  }
}

/** @param {(time: number) => void} seek */
export function wordsAside(seek) {
  const [said, written] = [new Words(t("Said"), seek), new Words(t("Written"), seek)];
  const element = h("div", { class: "player-side" }, said.element, written.element);
  return {
    element,
    /** @param {Cue[]} cues @param {Set<string>} sought */
    show(cues, sought) {
      said.show(cues.filter((cue) => cue.kind !== "text"), sought);
      written.show(cues.filter((cue) => cue.kind === "text"), sought);
      element.hidden = cues.length === 0;
    },
    /** @param {number} time @param {boolean} [jump] */
    follow(time, jump = false) {
      for (const words of [said, written]) words.follow(time, jump);
    },
  };
}
