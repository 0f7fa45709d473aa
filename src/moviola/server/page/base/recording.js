// A recording that a camera has written into several files.

import * as api from "./api.js";
import { t } from "./language.js";
import { openPlayer } from "./opening.js";

/** @typedef {{video_ids: string[], part: number}} Recording */

/** @param {Recording} recording */
export const partOf = ({ video_ids, part }) => t("part {n} of {all} of a recording", { n: part, all: video_ids.length });

/** Play the next file, where there is one.
 * @param {Recording | null} recording @param {AbortSignal} signal */
export async function playNext(recording, signal) {
  const next = recording?.video_ids[recording.part];
  const info = next && await api.video(next, signal).catch(() => null);
  if (info && !signal.aborted) openPlayer([{ video_id: next, start: 0, end: info.duration, version: info.version }]);
}
