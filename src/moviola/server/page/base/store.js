// State of the page, and settings that are remembered between visits; views draw it.

import { NOTHING } from "./asked.js";
import { nameAsNow } from "./format.js";

/**
 * A value with listeners to its changes.
 *
 * @template T
 */
export class Observable {
  /** @type {Set<(value: T, before: T) => void>} */
  #listeners = new Set();
  /** @type {T} */
  #value;

  /** @param {T} value */
  constructor(value) {
    this.#value = value;
  }

  get value() {
    return this.#value;
  }

  set value(value) {
    const before = this.#value;
    this.#value = value;
    for (const listener of this.#listeners) listener(value, before);
  }

  /** @param {(value: T, before: T) => void} listener called at each change, not now. */
  onChange(listener) {
    this.#listeners.add(listener);
  }
}

/**
 * An observable whose value survives the page, under a name of its own for each library.
 *
 * Where the browser keeps nothing (private windows, full storage) it is an ordinary one.
 *
 * @template T
 * @param {string} name
 * @param {T} initial
 * @returns {Observable<T>}
 */
export function remembered(name, initial) {
  const kept = new Observable(read(name, initial));
  kept.onChange((value) => {
    try {
      localStorage.setItem(name, JSON.stringify(value));
    } catch {
      // Full or forbidden: the value still holds as long as the page does.
    }
  });
  window.addEventListener("storage", (event) => {
    if (event.key === name) kept.value = read(name, initial);
  });
  return kept;
}

/**
 * @template T
 * @param {string} name
 * @param {T} initial
 * @returns {T}
 */
function read(name, initial) {
  try {
    const text = localStorage.getItem(name);
    return text === null ? initial : JSON.parse(text);
  } catch {
    return initial;
  }
}

/**
 * @typedef {import("./api.js").Moment} Moment
 * @typedef {import("./asked.js").Search} Search
 * @typedef {{layout: "grid" | "rows", perRow: number}} Layout
 * @typedef {"search" | "collection" | "library"} View
 */

/** The present search. */
export const currentSearch = new Observable(/** @type {Search} */ (NOTHING));

export const view = new Observable(/** @type {View} */ ("search"));

/** Which videos of an answer are new: those above a version, where a saved search was opened.
 * @type {Observable<{asked: string, since: number}>} */
export const newIn = new Observable({ asked: "", since: Infinity });

/** Whether weak moments are shown, too. */
export const showWeak = new Observable(false);

/** The fields of a question that the page shows.
 * @type {Observable<import("./api.js").Field[]>} */
export const questionFields = new Observable(/** @type {import("./api.js").Field[]} */ ([]));

export const libraryInfo = new Observable(/** @type {import("./api.js").LibraryInfo | null} */ (null));
libraryInfo.onChange((info) => nameAsNow(info?.renamed));

export const layout = remembered("moviola.layout", /** @type {Layout} */ ({ layout: "grid", perRow: 6 }));

/** Change the search: another query begins without marks, which are on the answer to one; where they are all of it, they stay.
 * @param {Partial<import("./asked.js").Query>} part */
export function changeQuery(part) {
  const search = currentSearch.value;
  const { terms, first } = search.query;
  const others = "terms" in part || terms.length || first ? { right: [], wrong: [] } : {};
  currentSearch.value = { ...search, query: { ...search.query, ...others, ...part } };
}

/** @param {Partial<Search>} part */
export function changeSearch(part) {
  currentSearch.value = { ...currentSearch.value, ...part };
}
