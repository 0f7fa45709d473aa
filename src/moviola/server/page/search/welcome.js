// What stands where the results will be, before the first search.

import * as api from "../base/api.js";
import { isEmpty, parametersOf, searchOf } from "../base/asked.js";
import { h } from "../base/dom.js";
import { clock, long, title } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { openPlayer } from "../base/opening.js";
import { savedSection } from "./saved.js";
import { Observable, currentSearch, libraryInfo, remembered } from "../base/store.js";
import { Still } from "../base/still.js";
import { titleSpan } from "../base/titles.js";

const SHOWN = 12;
const KEPT = 8;
const LOOKED_AT = 4; // videos that are looked into for examples
const EXAMPLES = 8;
const OF_A_KIND = 3; // examples that are seen, and that are said: the others are names
const FEW_WORDS = /^\S+(\s\S+){2,6}$/u;
const WORDS = /^\p{L}+(\s\p{L}+){0,3}$/u;

/** What was looked for lately, newest first, as hashes that repeat it. */
let recent = new Observable(/** @type {{text: string, hash: string}[]} */ ([]));

/** @param {string} library */
export function rememberRecent(library) {
  recent = remembered(`moviola.recent:${library}`, /** @type {{text: string, hash: string}[]} */ ([]));
}

/** @param {string} text @param {string} hash */
export function addRecent(text, hash) {
  const isPart = (/** @type {{text: string}} */ other) => text.startsWith(other.text);
  recent.value = [{ text, hash }, ...recent.value.filter((other) => !isPart(other))].slice(0, KEPT);
}

/** @type {Promise<{total: number, videos: api.Video[]}> | null} */
let some = null;

export function drawWelcome() {
  const info = libraryInfo.value;
  if (info && info.videos === 0) return noVideos();
  const shelf = h("ul", { class: "grid shelf" });
  some ??= api.videos({ offset: 0, limit: SHOWN, state: "ready", text: "" });
  some.then(({ videos }) => shelf.append(...videos.map(videoCard)), () => { some = null; });
  const said = info ? `${plural(info.videos, "{n} video", "{n} videos")}, ${long(info.seconds)}` : "";
  const tries = h("div", { class: "chips" });
  const examples = h("section", { "aria-labelledby": "try-title", hidden: true }, h("h2", { id: "try-title" }, t("Try")), tries);
  some.then(({ videos }) => examplesOf(videos)).then((texts) => {
    tries.append(...texts.map(searchChip));
    examples.hidden = texts.length === 0;
  }, () => {});
  return h("div", { class: "welcome" }, savedSection(), recentSearches(), examples,
    h("section", { "aria-labelledby": "shelf-title" },
      h("h2", { id: "shelf-title" }, t("In this library"), h("span", { class: "muted" }, said)), shelf));
}

function recentSearches() {
  if (!recent.value.length) return null;
  const links = recent.value.map(({ text, hash }) => h("a", { class: "chip", href: hash }, h("span", { class: "chip-name" }, text)));
  return h("section", { "aria-labelledby": "recent-title" }, h("h2", { id: "recent-title" }, t("Recent searches")), h("div", { class: "chips" }, links));
}

/** What could be asked of this library: what was taught, what it shows, what is said in it, what its videos are called.
 * @param {api.Video[]} videos @returns {Promise<string[]>} */
async function examplesOf(videos) {
  const [taught, shown, ...cues] = await Promise.all([api.concepts(), api.examples(), ...videos.slice(0, LOOKED_AT).map((video) => api.cues(video.video_id))]);
  const said = cues.flatMap((own) => own.find((cue) => FEW_WORDS.test(cue.text))?.text.replace(/[.!?,;:]+$/, "") ?? []);
  const named = videos.map((video) => title(video.video_id).replace(/[_-]+/g, " ")).filter((name) => WORDS.test(name));
  return [...new Set([...taught.map((one) => `@${one.name}`), ...shown.slice(0, OF_A_KIND), ...said.slice(0, OF_A_KIND), ...named])].slice(0, EXAMPLES);
}

/** @param {string} text */
const searchChip = (text) => h("a", { class: "chip", href: `#/search?${parametersOf(searchOf({ query: text }))}` }, h("span", { class: "chip-name", dir: "auto" }, text));

export function noVideos() {
  return h("div", { class: "empty" }, h("h2", {}, t("This library is empty")),
    h("p", {}, t("Bring in a folder of videos: in the view of the library, or with a command."), " ", h("a", { href: "#/library" }, t("Library")), " · ", h("code", {}, "moviola index FOLDER")));
}

/** @param {api.Video} video */
function videoCard(video) {
  const third = Math.min(video.duration / 3, 60);
  const whole = { video_id: video.video_id, start: 0, end: video.duration, version: video.version };
  const still = new Still(whole, { time: third, priority: true });
  const onclick = () => { still.reset(); openPlayer([whole]); };
  return h("li", { class: "moment" },
    h("div", { class: "frame" }, h("button", { type: "button", class: "opener", onclick, "aria-label": t("Play {name}", { name: title(video.video_id) }) }, still.element)),
    h("div", { class: "caption" }, titleSpan(video.video_id), h("span", { class: "time" }, clock(video.duration))));
}

/** After an ingest there is more to show. */
export function forgetWelcome() {
  some = null;
  if (isEmpty(currentSearch.value)) currentSearch.value = { ...currentSearch.value };
}
