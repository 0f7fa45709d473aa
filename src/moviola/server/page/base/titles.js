// Titles of videos in narrow places: what distinguishes them stays in sight.

import { h } from "./dom.js";
import { title } from "./format.js";

const TAIL = 9; // characters at the end that are never cut off

/** The title of a video, with its folder where another one that is shown has the same title.
 * @param {string} video @param {Iterable<string>} shown ids of all */
function nameAmong(video, shown) {
  const name = title(video);
  const isShared = [...shown].some((other) => other !== video && title(other) === name);
  const folder = video.split("/").at(-2);
  return isShared && folder ? `${folder}/${name}` : name;
}

/** A title that is cut in its middle where there is no room: many begin alike and differ at the end.
 * @param {string} video @param {Iterable<string>} [shown] ids of the videos beside it */
export function titleSpan(video, shown = []) {
  const letters = [...nameAmong(video, shown)];
  const cut = letters.length > 2 * TAIL ? letters.length - TAIL : letters.length;
  const tail = letters.slice(cut).join("");
  return h("span", { class: "title", title: video, dir: "auto" },
    h("span", { class: "title-head" }, letters.slice(0, cut).join("")), tail && h("span", { class: "title-tail" }, tail));
}
