// What comes next is loaded ahead: its stream where it begins, its still, and the stills around it.

import * as api from "../base/api.js";
import { h } from "../base/dom.js";
import { isPlayable } from "../base/still.js";

/** @typedef {import("../base/opening.js").Playable} Playable */

const stream = h("video", { preload: "auto" });
stream.muted = true;
let loaded = "";

/** @param {Playable | undefined} moment none: nothing comes next. @param {string} shown the video that is shown
 * @param {(of: import("../base/api.js").VideoDetails) => string} stills address of those around it */
export async function loadAhead(moment, shown, stills) {
  const named = moment ? `${moment.video_id}@${moment.start}` : "";
  if (named === loaded) return;
  loaded = named;
  stream.removeAttribute("src");
  stream.load();
  if (!moment) return;
  new Image().src = api.url.still(moment, moment.start, 960);
  const info = await api.video(moment.video_id).catch(() => null);
  if (!info || named !== loaded) return;
  new Image().src = stills(info);
  if (moment.video_id !== shown && (await isPlayable(moment.video_id)) && named === loaded) stream.src = `${api.url.stream(moment.video_id)}#t=${moment.start}`;
}
