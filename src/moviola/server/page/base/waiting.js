// What takes longer than a moment: how far it is, and when it will be done.

import { h } from "./dom.js";
import { long, share as shareOf } from "./format.js";
import { t } from "./language.js";

/** @typedef {{share: number | null, seconds_left: number | null}} WorkProgress as the server says it. */

/** A bar, which moves to and fro where nobody knows how far it is.
 * @param {number | null} share @param {string} label */
export const progressBar = (share, label) => h("progress", { max: "1", "aria-label": label, ...(share && { value: share }) });

/** "43 %, about 2 minutes left", or as much of that as is known.
 * @param {WorkProgress} progress */
export function saidProgress({ share, seconds_left }) {
  const left = seconds_left === null ? "" : t("about {time} left", { time: long(Math.max(seconds_left, 1)) });
  return [share === null ? "" : shareOf(share), left].filter(Boolean).join(", ");
}
