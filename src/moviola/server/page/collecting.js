// The collection: moments that were put aside, in order, with notes. It stays in this browser.

import { notify } from "./notices.js";
import { Observable, remembered } from "./store.js";

/** @typedef {{id: string, video_id: string, start: number, end: number, score: number | null, query: string, note: string}} Item */

/** @type {Observable<Item[]>} */
export let collection = new Observable(/** @type {Item[]} */ ([]));

/** What the exported files are called.
 * @type {Observable<string>} */
export let collectionTitle = new Observable("");

/** @param {string} library */
export function rememberCollection(library) {
  collection = remembered(`moviola.collection:${library}`, /** @type {Item[]} */ ([]));
  collectionTitle = remembered(`moviola.collection-title:${library}`, "");
}

/** @typedef {{video_id: string, start: number, end: number, score?: number}} Span */

/** @param {Span} span */
function find(span) {
  const close = (/** @type {number} */ a, /** @type {number} */ b) => Math.abs(a - b) < 0.05;
  return collection.value.find((item) => item.video_id === span.video_id && close(item.start, span.start) && close(item.end, span.end));
}

/** @param {Span} span */
export const isCollected = (span) => find(span) !== undefined;

/** Put a moment in, or take it out if it is in.
 * @param {Span} span @param {string} [query] what it was found by */
export function collect(span, query = "") {
  const inside = find(span);
  if (inside) return discard(inside.id);
  const { video_id, start, end, score = null } = span;
  collection.value = [...collection.value, { id: crypto.randomUUID?.() ?? String(Math.random()), video_id, start, end, score, query, note: "" }];
  notify("In the collection");
}

/** @param {string} id */
export function discard(id) {
  const before = collection.value;
  collection.value = before.filter((item) => item.id !== id);
  notify("Taken out of the collection", { label: "Undo", run: () => { collection.value = before; } });
}

export function discardAll() {
  const before = collection.value;
  collection.value = [];
  notify("The collection is empty", { label: "Undo", run: () => { collection.value = before; } });
}

/** @param {string} id @param {Partial<Item>} change */
export function changeItem(id, change) {
  collection.value = collection.value.map((item) => (item.id === id ? { ...item, ...change } : item));
}

/** Move an item to a place.
 * @param {string} id @param {number} to */
export function moveItem(id, to) {
  const item = collection.value.find((other) => other.id === id);
  if (!item || to < 0 || to >= collection.value.length) return;
  const others = collection.value.filter((other) => other.id !== id);
  collection.value = [...others.slice(0, to), item, ...others.slice(to)];
}
