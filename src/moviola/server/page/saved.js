// Searches that are kept in the library, with what has come in since they were opened here.

import * as api from "./api.js";
import { h, icon, iconButton, refill } from "./dom.js";
import { activeFilters } from "./filters.js";
import { reasonOf } from "./format.js";
import { plural, t } from "./language.js";
import { describe, parametersOf } from "./links.js";
import { notify } from "./notices.js";
import { GAP, NOTHING, Observable, currentSearch, isEmpty, libraryInfo, queryOf, remembered } from "./store.js";

/** @typedef {import("./store.js").Search} Search */
/** @typedef {{text: string, then: string[], gap: number, without: string[], filter: Record<string, string>, by: string}} SavedSearch */

const COUNTED = 100; // moments of which new ones are counted
const NO_LIMIT = 1e7; // the longest gap that the library keeps, which stands for any

/** The newest video that was there when a search was opened last, by the search's name. */
let known = new Observable(/** @type {Record<string, number>} */ ({}));

/** @param {string} library */
export function rememberKnown(library) {
  known = remembered(`moviola.saved-known:${library}`, /** @type {Record<string, number>} */ ({}));
}

/** Steps that say something.
 * @param {Search} search */
const stepsOf = (search) => search.then.filter((step) => step.text.trim());

/** Whether the library can keep all of a search: pictures, marks, single videos, a least score, coarse moments and
 * steps with gaps of their own it does not.
 * @param {Search} search */
const canBeSaved = (search) =>
  Boolean(search.text.trim()) && ![search.likes, search.videos, search.right, search.wrong].some((some) => some.length)
  && !search.minScore && search.refine && new Set(stepsOf(search).map((step) => step.gap)).size <= 1;

/** @param {SavedSearch} saved @returns {Search} */
function searchOfSaved({ text, then, gap, without, filter, by }) {
  return { ...NOTHING, text, then: then.map((words) => ({ text: words, gap: gap < NO_LIMIT ? gap : null })), not: without, filter, by };
}

/** Number of the video that came in last. */
async function newestVideo() {
  const { videos } = await api.videos({ offset: 0, limit: 1, state: "", text: "", sort: "added", descending: true });
  return Number(videos[0]?.version ?? 0);
}

/** What a search asks, equal to that of another one which asks the same.
 * @param {SavedSearch} saved */
const contentOf = ({ text, then, gap, without, filter, by }) => JSON.stringify([text, then, gap, without, Object.entries(filter).sort(), by]);

/** A name that no other search has: one of the same words may differ in its gap, or in a path that is shown in short.
 * @param {string} words @param {SavedSearch} wanted */
async function nameOf(words, wanted) {
  const taken = new Map((await api.kept("search")).map((entry) => [entry.name, contentOf(/** @type {SavedSearch} */ (entry.value))]));
  let name = words;
  for (let number = 2; (taken.get(name) ?? contentOf(wanted)) !== contentOf(wanted); number += 1) name = `${words} (${number})`;
  return name;
}

async function save() {
  const search = currentSearch.value;
  const steps = stepsOf(search);
  const gap = steps.length ? steps[0]?.gap ?? NO_LIMIT : GAP;
  const without = search.not.map((text) => text.trim()).filter(Boolean);
  const wanted = { text: search.text.trim(), then: steps.map((step) => step.text.trim()), gap, without, filter: search.filter, by: search.by };
  try {
    const name = await nameOf([describe(search), ...activeFilters(search).map((filter) => filter.text)].join(", "), wanted);
    await api.keep("search", name, wanted);
    known.value = { ...known.value, [name]: await newestVideo() };
    notify(t("The search is saved: it stands on the first page, with what is new"));
  } catch (error) {
    notify(reasonOf(error));
  }
}

/** @returns {HTMLElement | null} */
export function saveButton() {
  if (!libraryInfo.value?.writable || isEmpty(currentSearch.value) || !canBeSaved(currentSearch.value)) return null;
  return h("button", { type: "button", class: "quiet save-search", onclick: () => void save() }, icon("keep"), t("save this search"));
}

/** Moments of a search in videos that came in since it was opened.
 * @param {Search} search @param {number} since */
async function countNew(search, since) {
  const { filter, by } = search;
  const found = await api.search({ query: queryOf(search), filter, by, refine: false, min_score: 0, top_k: COUNTED }, new AbortController().signal);
  return found.moments.filter((moment) => moment.strong && Number(moment.version) > since).length;
}

/** The saved searches; drawn when they are known.
 * @returns {HTMLElement} */
export function savedSection() {
  const chips = h("div", { class: "chips" });
  const section = h("section", { class: "saved-searches", "aria-label": t("Saved searches"), hidden: true }, h("h2", {}, t("Saved searches")), chips);
  const show = async () => {
    const [entries, newest, alerted] = await Promise.all([api.kept("search"), newestVideo(), api.alerted()]);
    section.hidden = entries.length === 0;
    refill(chips, entries.map((entry) => savedChip(entry.name, /** @type {SavedSearch} */ (entry.value), { newest, since: known.value[entry.name] ?? alerted[entry.name] ?? 0 }, () => void show())));
  };
  show().catch(() => {});
  return section;
}

/** @param {string} name @param {SavedSearch} value @param {{newest: number, since: number}} versions @param {() => void} changed */
function savedChip(name, value, { newest, since }, changed) {
  const search = searchOfSaved(value);
  const fresh = h("span", { class: "number" });
  if (newest > since) void countNew(search, since).then((number) => { fresh.textContent = number ? plural(number, "{n} new", "{n} new") : ""; }, () => {});
  const open = () => { known.value = { ...known.value, [name]: newest }; };
  const undo = () => void api.keep("search", name, value, 0).then(changed, (error) => notify(reasonOf(error)));
  const remove = () => void api.unkeep("search", name).then(() => {
    changed();
    notify(t("“{name}” is deleted", { name }), { label: t("Undo"), run: undo });
  }, (error) => notify(reasonOf(error)));
  return h("span", { class: "chip" }, h("a", { class: "chip-name", dir: "auto", href: `#/search?${parametersOf(search)}`, onclick: open }, name), fresh,
    libraryInfo.value?.writable && iconButton("close", t("Forget the search “{name}”", { name }), remove));
}
