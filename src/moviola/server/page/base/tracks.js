// Speech and text of a video, by language, which can be corrected.

import * as api from "./api.js";
import { h } from "./dom.js";
import { language, languageName, plural, t } from "./language.js";
import { libraryInfo } from "./store.js";

/** Languages to choose from, besides that which a track has. */
const LANGUAGES = (
  "af am ar az be bg bn bs ca cs cy da de el en es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk km kn ko lo lt lv mk ml mn mr ms my nb ne nl " +
  "nn pa pl ps pt ro ru si sk sl so sq sr sv sw ta te th tl tr uk ur uz vi xh yue zh zu"
).split(" ");

/** @type {Record<string, string>} */
const KINDS = { subtitle: t("Subtitles"), speech: t("Recognised speech"), text: t("Text in pictures") };

/** @param {string} tag */
const nameOf = (tag) => (tag ? languageName(tag) : t("unknown language"));

/** One line a track, with a field for its language where the library can be changed.
 * @param {string} video @param {api.Track[]} tracks @param {(tracks: api.Track[], error?: unknown, at?: number) => void} changed
 * called with the tracks as they are then, what failed, and which field had the focus @returns {HTMLElement[]} */
export function trackLines(video, tracks, changed) {
  const lines = tracks.filter(({ kind }) => kind in KINDS).map((track) => {
    const said = [h("span", {}, KINDS[track.kind], ": "), plural(track.cues, "{n} line", "{n} lines")];
    if (!libraryInfo.value?.can_ingest) return h("li", {}, ...said, ", ", nameOf(track.language));
    const tags = [...new Set([track.language, ...LANGUAGES])].toSorted((a, b) => nameOf(a).localeCompare(nameOf(b), language));
    const field = h("select", { "aria-label": t("Language of {what}", { what: KINDS[track.kind] ?? "" }), onchange: () => void correct(track, field.value) },
      tags.map((tag) => h("option", { value: tag, selected: tag === track.language, disabled: tag === "" }, nameOf(tag))));
    return h("li", {}, ...said, " ", field);
  });

  /** Nothing else is corrected until it is known what there is then: an answer that comes late would hide it.
   * @param {api.Track} track @param {string} right */
  async function correct(track, right) {
    const fields = lines.flatMap((line) => [...line.querySelectorAll("select")]);
    const at = fields.findIndex((field) => field === document.activeElement);
    for (const field of fields) field.disabled = true;
    try {
      await api.sayLanguage(video, track, right);
      changed((await api.video(video)).tracks, null, at);
    } catch (error) {
      changed(tracks, error, at);
    }
  }
  return lines;
}
