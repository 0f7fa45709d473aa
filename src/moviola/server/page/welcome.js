// What stands where the results will be, before anything was asked.

import * as api from "./api.js";
import { h } from "./dom.js";
import { clock, count, long, title } from "./format.js";
import { openPlayer } from "./opening.js";
import { Observable, asked, libraryInfo, remembered } from "./store.js";
import { Still } from "./still.js";

const SHOWN = 12;
const KEPT = 8;

/** What was looked for lately, newest first, as hashes that repeat it.
 * @type {Observable<{text: string, hash: string}[]>} */
export let recent = new Observable(/** @type {{text: string, hash: string}[]} */ ([]));

/** @param {string} library */
export function rememberRecent(library) {
  recent = remembered(`moviola.recent:${library}`, /** @type {{text: string, hash: string}[]} */ ([]));
}

/** @param {string} text @param {string} hash */
export function addRecent(text, hash) {
  recent.value = [{ text, hash }, ...recent.value.filter((other) => other.text !== text)].slice(0, KEPT);
}

/** @type {Promise<{total: number, videos: api.Video[]}> | null} */
let some = null;

export function drawWelcome() {
  const info = libraryInfo.value;
  if (info && info.videos === 0) return noVideos();
  const shelf = h("ul", { class: "grid shelf" });
  some ??= api.videos({ offset: 0, limit: SHOWN, state: "ready", text: "" });
  some.then(({ videos }) => shelf.append(...videos.map(videoCard)), () => { some = null; });
  const said = info ? `${count(info.videos, "video")}, ${long(info.seconds)}` : "";
  return h("div", { class: "welcome" }, recentSearches(),
    h("section", { "aria-labelledby": "shelf-title" },
      h("h2", { id: "shelf-title" }, "In this library", h("span", { class: "muted" }, said)), shelf));
}

function recentSearches() {
  if (!recent.value.length) return null;
  const links = recent.value.map(({ text, hash }) => h("a", { class: "chip", href: hash }, h("span", { class: "chip-name" }, text)));
  return h("section", { "aria-labelledby": "recent-title" }, h("h2", { id: "recent-title" }, "Lately"), h("div", { class: "chips" }, links));
}

function noVideos() {
  return h("div", { class: "empty" }, h("h2", {}, "This library is empty"),
    h("p", {}, "Bring in a folder of videos: in the ", h("a", { href: "#/library" }, "library view"), ", or with ", h("code", {}, "moviola index FOLDER"), "."));
}

/** @param {api.Video} video */
function videoCard(video) {
  const third = Math.min(video.duration / 3, 60);
  const whole = { video_id: video.video_id, start: 0, end: video.duration, version: video.version };
  const still = new Still(whole, { time: third, priority: true });
  const onclick = () => { still.reset(); openPlayer([whole]); };
  return h("li", { class: "moment" },
    h("div", { class: "frame" }, h("button", { type: "button", class: "opener", onclick, "aria-label": `Play ${title(video.video_id)}` }, still.element)),
    h("div", { class: "caption" }, h("span", { class: "title" }, title(video.video_id)), h("span", { class: "time" }, clock(video.duration))));
}

/** After an ingest there is more to show. */
export function forgetWelcome() {
  some = null;
  if (!asked.value.text) asked.value = { ...asked.value };
}
