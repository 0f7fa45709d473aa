// The text in place of results before the first search.

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
const LOOKED_AT = 48; // newest videos among which the most varied ones are chosen
const KEPT = 8;
const EXAMPLES = 8;

/** What was looked for lately, newest first, as hashes that repeat it. */
let recent = new Observable(/** @type {{text: string, hash: string}[]} */ ([]));

/** @param {string} library */
export function rememberRecent(library) {
  recent = remembered(`moviola.recent:${library}`, /** @type {{text: string, hash: string}[]} */ ([]));
  met = remembered(`moviola.newest-met:${library}`, 0);
  metBefore = met.value;
}

/** The newest video that the first page has shown here, and what that was when this page was opened.
 * @type {Observable<number>} */
let met = new Observable(0);
let metBefore = 0;

/** @param {string} text @param {string} hash */
export function addRecent(text, hash) {
  const isPart = (/** @type {{text: string}} */ other) => text.startsWith(other.text);
  recent.value = [{ text, hash }, ...recent.value.filter((other) => !isPart(other))].slice(0, KEPT);
}

/** The newest videos, the last one first.
 * @type {Promise<api.Video[]> | null} */
let newest = null;

/** The most varied of them: one of each folder in turn, in the order in which they came in.
 * @param {api.Video[]} videos */
export function varied(videos) {
  /** @type {Map<string, api.Video[]>} */
  const folders = Map.groupBy(videos, ({ path }) => path.replace(/[^\\/]*$/, ""));
  const turns = [...folders.values()].flatMap((own) => own.map((video, turn) => ({ video, turn })));
  const chosen = new Set(turns.toSorted((a, b) => a.turn - b.turn).slice(0, SHOWN).map(({ video }) => video));
  return videos.filter((video) => chosen.has(video));
}

export function drawWelcome() {
  const info = libraryInfo.value;
  if (info && info.videos === 0) return noVideos();
  const shelf = h("ul", { class: "grid shelf" });
  const said = h("span", { class: "muted" }, info ? `${plural(info.videos, "{n} video", "{n} videos")}, ${long(info.seconds)}` : "");
  newest ??= api.videos({ offset: 0, limit: LOOKED_AT, state: "", text: "", sort: "added", descending: true }).then(({ videos }) => videos.filter((one) => one.state !== "refused"));
  newest.then((videos) => {
    shelf.append(...varied(videos).map(videoCard));
    const came = metBefore ? videos.filter(isNew).length : 0;
    if (came) said.after(h("span", { class: "number" }, came < LOOKED_AT ? plural(came, "{n} new", "{n} new") : t("many new")));
    met.value = Math.max(met.value, ...videos.map(({ number }) => number));
  }, () => { newest = null; });
  const tries = h("div", { class: "chips" });
  const examples = h("section", { "aria-labelledby": "try-title", hidden: true }, h("h2", { id: "try-title" }, t("Try")), tries);
  examplesOf().then((texts) => {
    tries.append(...texts.map(searchChip));
    examples.hidden = texts.length === 0;
  }, () => {});
  return h("div", { class: "welcome" }, savedSection(), recentSearches(), examples,
    h("section", { "aria-labelledby": "shelf-title" }, h("h2", { id: "shelf-title" }, t("Newest videos"), said), shelf));
}

/** Whether a video came in after this browser had last shown the first page.
 * @param {api.Video} video */
const isNew = (video) => metBefore > 0 && video.number > metBefore;

function recentSearches() {
  if (!recent.value.length) return null;
  const links = recent.value.map(({ text, hash }) => h("a", { class: "chip", href: hash }, h("span", { class: "chip-name", dir: "auto" }, text)));
  return h("section", { "aria-labelledby": "recent-title" }, h("h2", { id: "recent-title" }, t("Recent searches")), h("div", { class: "chips" }, links));
}

/** What could be asked of this library: what was taught, and what its pictures show.
 * @returns {Promise<string[]>} */
async function examplesOf() {
  const [taught, shown] = await Promise.all([api.concepts(), api.examples()]);
  return [...new Set([...taught.map((one) => `@${one.name}`), ...shown])].slice(0, EXAMPLES);
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
    h("div", { class: "caption" }, titleSpan(video.video_id), isNew(video) ? h("span", { class: "number" }, t("just in")) : null, h("span", { class: "time" }, clock(video.duration))));
}

/** After an ingest there is more to show. */
export function forgetWelcome() {
  newest = null;
  if (isEmpty(currentSearch.value)) currentSearch.value = { ...currentSearch.value };
}
