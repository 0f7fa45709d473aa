// What is on the page and what is remembered between visits; views draw what stands here.

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
 * @typedef {{kind: "moment", video_id: string, time: number} | {kind: "picture", id: string, name: string}} Likeness
 * @typedef {{text: string, gap: number | null}} Step
 * @typedef {{video_id: string, start: number, end: number}} Marked
 * @typedef {{text: string, weight: number, likes: Likeness[], then: Step[], not: string[],
 *   filter: Record<string, string>, videos: string[], by: string, refine: boolean, minScore: number,
 *   right: Marked[], wrong: Marked[]}} Search
 * @typedef {{layout: "grid" | "rows", perRow: number}} Layout
 * @typedef {"search" | "collection" | "library"} View
 */

export const GAP = 60;

/** @type {Readonly<Search>} */
export const NOTHING = Object.freeze({
  text: "", weight: 1, likes: [], then: [], not: [], filter: {}, videos: [], by: "all", refine: true, minScore: 0,
  right: [], wrong: [],
});

/** What is asked. */
export const currentSearch = new Observable(/** @type {Search} */ (NOTHING));

export const view = new Observable(/** @type {View} */ ("search"));

/** Whether weak moments are shown, too. */
export const showWeak = new Observable(false);

export const libraryInfo = new Observable(/** @type {import("./api.js").LibraryInfo | null} */ (null));

export const layout = remembered("moviola.layout", /** @type {Layout} */ ({ layout: "grid", perRow: 6 }));

/** Whether there is something to look for.
 * @param {Search} search */
export function isEmpty(search) {
  return !search.text.trim() && search.likes.length === 0;
}

/**
 * A search in the words of the API.
 *
 * @param {Search} search
 * @returns {import("./api.js").Query}
 */
export function queryOf(search) {
  const words = search.text.trim() ? [{ text: search.text.trim(), weight: search.likes.length ? search.weight : 1 }] : [];
  const likes = search.likes.map((like) =>
    like.kind === "moment" ? { video_id: like.video_id, time: like.time } : { picture: like.id },
  );
  const then = search.then
    .filter((step) => step.text.trim())
    .map((step) => ({ terms: [{ text: step.text.trim() }], gap: step.gap }));
  const without = search.not.map((text) => text.trim()).filter(Boolean);
  const { right, wrong } = search;
  return {
    terms: [...words, ...likes], ...(then.length && { then }), ...(without.length && { without }),
    ...(right.length && { right }), ...(wrong.length && { wrong }),
  };
}

/**
 * All words that are looked for, lower case, for marking them where they are said.
 *
 * @param {Search} search
 * @returns {Set<string>}
 */
export function wordsOf(search) {
  const texts = [search.text, ...search.then.map((step) => step.text)];
  return new Set(texts.join(" ").toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []);
}
