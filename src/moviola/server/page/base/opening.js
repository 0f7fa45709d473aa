// Which moment is open in the player, and which come before and after it.

import { Observable } from "./store.js";
import { markSeen } from "./seen.js";

/**
 * @typedef {{video_id: string, start: number, end: number, version?: string, score?: number,
 *   band?: import("./api.js").Band, id?: string, why?: {words: string[]}[]}} Playable
 *   `id` is that of the collection.
 * @typedef {{moments: Playable[], index: number, goOn: boolean}} Opened
 *   `goOn`: whether the next one plays when one has ended.
 */

export const opened = new Observable(/** @type {Opened | null} */ (null));

/**
 * @param {Playable[]} moments
 * @param {number} [index]
 * @param {boolean} [goOn]
 */
export function openPlayer(moments, index = 0, goOn = false) {
  const moment = moments[index];
  if (!moment) return;
  markSeen(moment);
  opened.value = { moments, index, goOn };
}

/** The next one, or one before.
 * @param {number} by
 * @returns {boolean} whether there is one. */
export function step(by) {
  const now = opened.value;
  if (!now?.moments[now.index + by]) return false;
  openPlayer(now.moments, now.index + by, now.goOn);
  return true;
}

export function closePlayer() {
  opened.value = null;
}

/** Show what the file of a video holds; the code for it is loaded when that is first wanted.
 * @param {string} video */
export async function openAccount(video) {
  const part = await import("./account.js").catch(() => null); // the server is away, which the page says
  await part?.showAccount(video);
}
