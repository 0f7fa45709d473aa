// What is said and what is written in a video, and its chapters, apart, each following the playback.

import { fill, h, setState } from "../base/dom.js";
import { clock, marked } from "../base/format.js";
import { t } from "../base/language.js";

/** @typedef {import("../base/api.js").Cue} Cue */

const LISTED = 300; // cues of a list at once, around the one that is near

/** @param {string} name @param {(time: number) => void} seek */
function listOf(name, seek) {
  const list = h("ol", { class: "cues" });
  const element = h("section", { "aria-label": name }, h("h3", {}, name), list);
  let [all, sought, first] = [/** @type {Cue[]} */ ([]), /** @type {Set<string>} */ (new Set()), 0];
  const draw = (/** @type {number} */ from) => {
    first = from;
    fill(list, all.slice(from, from + LISTED).map(({ start, text }) => h("li", {}, h("button", { type: "button", onclick: () => seek(start) },
      h("span", { class: "time" }, clock(start)), h("span", { dir: "auto" }, marked(text, sought))))));
  };
  return {
    element,
    /** @param {Cue[]} cues by time @param {Set<string>} words to be marked */
    show(cues, words) {
      [all, sought] = [cues, words];
      element.hidden = cues.length === 0;
      draw(0);
    },
    /** Mark what is there now, and keep it in sight, unless the list is being read.
     * @param {number} time @param {boolean} jump whether in any case */
    follow(time, jump) {
      const near = Math.max(all.findLastIndex((cue) => cue.start <= time + 0.5), 0);
      const read = !jump && list.matches(":hover, :focus-within");
      if (!read && (near < first || near >= first + LISTED)) draw(Math.max(near - LISTED / 2, 0));
      [...list.children].forEach((line, i) => {
        const cue = all[first + i];
        if (line.firstElementChild) setState(line.firstElementChild, "aria-current", cue !== undefined && time >= cue.start && time < cue.end);
      });
      const line = list.children[near - first];
      if (line instanceof HTMLElement && !read) list.scrollTop = line.offsetTop - list.clientHeight / 2;
    },
  };
}

/** @param {(time: number) => void} seek */
export function wordsAside(seek) {
  const [said, written, chapters] = [listOf(t("Said"), seek), listOf(t("Written"), seek), listOf(t("Chapters"), seek)];
  const element = h("div", { class: "player-side" }, said.element, written.element, chapters.element);
  return {
    element,
    /** @param {Cue[]} cues @param {Set<string>} words */
    show(cues, words) {
      const [text, titles] = ["text", "chapter"].map((kind) => cues.filter((cue) => cue.kind === kind));
      said.show(cues.filter((cue) => cue.kind !== "text" && cue.kind !== "chapter"), words);
      written.show(text ?? [], words);
      chapters.show(titles ?? [], words);
      element.hidden = cues.length === 0;
    },
    /** @param {number} time @param {boolean} [jump] */
    follow(time, jump = false) {
      for (const list of [said, written, chapters]) list.follow(time, jump);
    },
  };
}
