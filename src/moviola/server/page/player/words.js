// Speech, text and chapters of a video, apart, each following the playback.

import { fill, h, setState } from "../base/dom.js";
import { clock, marked } from "../base/format.js";
import { languageName, t } from "../base/language.js";

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

/** Which list a kind of cues is in: they stand in this order.
 * @param {string} kind */
const listKind = (kind) => (kind === "chapter" ? 2 : kind === "text" ? 1 : 0);

/** Which further track of its language a cue is from, by its title or number; empty for what belongs to the first.
 * @param {Cue} cue */
const furtherTrack = ({ form }) => (["", "forced", "hearing impaired"].includes(form) ? "" : form);

/** Cues of one list: what is said, or written, in one language and track.
 * @param {Cue} cue */
const trackOf = (cue) => `${listKind(cue.kind)} ${cue.language} ${furtherTrack(cue)}`;

/** The name of a list, with its language where there are several.
 * @param {Cue} cue @param {boolean} several */
function nameOf(cue, several) {
  const name = [t("Said"), t("Written"), t("Chapters")][listKind(cue.kind)] ?? "";
  const which = [several && cue.language ? languageName(cue.language) : "", furtherTrack(cue)].filter((one) => one !== "");
  return which.length > 0 ? `${name}: ${which.join(", ")}` : name;
}

/** @param {(time: number) => void} seek */
export function wordsAside(seek) {
  const element = h("div", { class: "player-side" });
  let lists = /** @type {ReturnType<typeof listOf>[]} */ ([]);
  return {
    element,
    /** @param {Cue[]} cues @param {Set<string>} words */
    show(cues, words) {
      const tracks = Object.values(Object.groupBy(cues, trackOf)).filter((track) => track !== undefined);
      tracks.sort((one, other) => trackOf(/** @type {Cue} */ (one[0])) < trackOf(/** @type {Cue} */ (other[0])) ? -1 : 1);
      lists = tracks.map((track) => {
        const several = new Set(cues.filter(({ kind }) => listKind(kind) === listKind(track[0]?.kind ?? "")).map(({ language }) => language)).size > 1;
        const list = listOf(nameOf(/** @type {Cue} */ (track[0]), several), seek);
        list.show(track, words);
        return list;
      });
      fill(element, lists.map((list) => list.element));
      element.hidden = cues.length === 0;
    },
    /** @param {number} time @param {boolean} [jump] */
    follow(time, jump = false) {
      for (const list of lists) list.follow(time, jump);
    },
  };
}
