// Which moments were opened before, so that new ones stand out.

import { Observable, remembered } from "./store.js";

const MOST = 2000;

let seen = new Observable(/** @type {string[]} */ ([]));

/** @param {string} library */
export function rememberSeen(library) {
  seen = remembered(`moviola.seen:${library}`, /** @type {string[]} */ ([]));
}

/** Ends move a little from query to query: the second of the middle says which moment it is.
 * @param {{video_id: string, start: number, end: number}} span */
const key = ({ video_id, start, end }) => `${video_id}@${Math.round((start + end) / 2)}`;

/** @param {{video_id: string, start: number, end: number}} span */
export const isSeen = (span) => seen.value.includes(key(span));

/** @param {{video_id: string, start: number, end: number}} span */
export function markSeen(span) {
  if (!isSeen(span)) seen.value = [...seen.value, key(span)].slice(-MOST);
}
