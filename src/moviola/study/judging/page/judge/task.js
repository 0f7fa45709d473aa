// Everything the judging page asks of the server, and the rater's name.

import { getJson, postJson } from "../base/api.js";
import { Observable, remembered } from "../base/store.js";

/**
 * @typedef {{pair_id: string, video_id: string, start: number, end: number, level: number | null,
 *   passed: boolean}} Moment
 * @typedef {{query_id: string, query: string, moments: Moment[]}} Batch
 * @typedef {{queries: number, moments: number, raters: number, names: string[],
 *   levels: {level: number, meaning: string}[],
 *   export_formats: {name: string, title: string, suffix: string}[]}} Info
 * @typedef {{query_id: string, query: string, moments: number, agreed: number, discarded: number,
 *   set_aside: number, open: number, answers: number}} QueryRow
 * @typedef {{name: string, judged: number, passed: number, distance: number | null,
 *   kappa: number | null}} RaterRow
 * @typedef {{queries: QueryRow[], raters: RaterRow[], kappa: number | null, weighted_kappa: number | null,
 *   levels: number[], low_high: number[][]}} Progress
 */

const API = "api/judging";

/** The rater's name; empty before sign-in. */
export const rater = remembered("moviola.rater", "");

/** The task to judge; null before that is known. */
export const info = new Observable(/** @type {Info | null} */ (null));

/** @returns {Promise<Info>} */
export const readInfo = () => getJson(API);

/** @param {string} name @returns {Promise<string>} the name to go on with */
export const signIn = async (name) => (await postJson(`${API}/sign-in`, { rater: name })).rater;

/** @returns {Promise<{batch: Batch | null, open: number}>} */
export const nextBatch = () => postJson(`${API}/next`, { rater: rater.value });

/** @param {string} pair @param {number | null} level @returns {Promise<unknown>} */
export const answer = (pair, level) => postJson(`${API}/answers`, { rater: rater.value, pair_id: pair, level });

/** @param {string} pair @returns {Promise<unknown>} */
export const undo = (pair) => postJson(`${API}/undo`, { rater: rater.value, pair_id: pair });

/** @returns {Promise<Progress>} */
export const readProgress = () => getJson(`${API}/progress`);

/** A guideline's first word, which names its level, and the rest.
 * @param {string} meaning @returns {[string, string]} */
export function parts(meaning) {
  const place = meaning.search(/[:.]/);
  const rest = meaning.slice(place + 1).trim();
  return [meaning.slice(0, place), rest.charAt(0).toUpperCase() + rest.slice(1)];
}

/** @param {string} form */
export const exportUrl = (form) => `${API}/export?form=${encodeURIComponent(form)}`;
