// Searches that are kept in the library, with what has come in since they were opened last.

import * as api from "../base/api.js";
import { askedBy, describe, isEmpty, marksIn, parametersOf, searchOf } from "../base/asked.js";
import { h, icon, iconButton, refill } from "../base/dom.js";
import { activeFilters } from "./filters.js";
import { reasonOf } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { latest } from "../base/latest.js";
import { notify } from "../base/notices.js";
import { areSeveral } from "../base/rights.js";
import { Observable, currentSearch, libraryInfo, newIn, remembered } from "../base/store.js";

/** @typedef {import("../base/asked.js").Asked} Asked */

const COUNTED = 100; // moments of which new ones are counted
const AGAIN = 20_000; // ms until it is seen whether videos have come in

/** The newest video that was there when a search was opened last, by the search's name: of this browser, for those who
 * may only read; the library has that of all who may change it. */
let known = new Observable(/** @type {Record<string, number>} */ ({}));

/** @param {string} library */
export function rememberKnown(library) {
  known = remembered(`moviola.saved-known:${library}`, /** @type {Record<string, number>} */ ({}));
}

/** Number of the video that came in last. */
async function newestVideo() {
  const { videos } = await api.videos({ offset: 0, limit: 1, state: "", text: "", sort: "added", descending: true });
  return Math.max(0, ...videos.map(({ number }) => number));
}

/** @param {string} name @param {number} newest */
function noteOpened(name, newest) {
  known.value = { ...known.value, [name]: newest };
  if (libraryInfo.value?.writable) api.openSearch(name, newest).catch(() => {}); // it is new once more, then
}

/** A question as a text, equal to that of another one which asks the same.
 * @param {Asked} asked */
const contentOf = (asked) => JSON.stringify(askedBy(searchOf(asked)), (_, value) => (value instanceof Object && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value));

/** A name that no other search has: one of the same words may differ in its gap, or in a path that is shown in short.
 * @param {string} words @param {Asked} wanted */
async function nameFor(words, wanted) {
  const taken = new Map((await api.kept("search")).map((entry) => [entry.name, contentOf(/** @type {Asked} */ (entry.value))]));
  let name = words;
  for (let number = 2; (taken.get(name) ?? contentOf(wanted)) !== contentOf(wanted); number += 1) name = `${words} (${number})`;
  return name;
}

async function save() {
  const search = currentSearch.value;
  const wanted = askedBy(search);
  const words = [describe(search), marksIn(search.query), ...activeFilters(search).map((filter) => filter.text)];
  try {
    const name = await nameFor([...new Set(words)].filter(Boolean).join(", "), wanted);
    const kept = /** @type {Asked} */ ((await api.keep("search", name, wanted)).value);
    if (contentOf(kept) !== contentOf(wanted) && currentSearch.value === search) currentSearch.value = searchOf(kept); // its pictures have other names
    noteOpened(name, await newestVideo());
    notify(t("The search is saved: it stands on the first page, with what is new"));
  } catch (error) {
    notify(reasonOf(error));
  }
}

/** @returns {HTMLElement | null} */
export function saveButton() {
  if (!libraryInfo.value?.writable || isEmpty(currentSearch.value)) return null;
  return h("button", { type: "button", class: "quiet save-search", onclick: () => void save() }, icon("keep"), t("save this search"));
}

/** Moments of a search in videos that came in since it was opened.
 * @param {Asked} asked @param {number} since */
async function countNew(asked, since) {
  const found = await api.search({ ...asked, refine: false, top_k: COUNTED }, new AbortController().signal);
  return found.moments.filter((moment) => moment.band === "strong" && moment.number > since).length;
}

/** The newest video, and up to which one searches were checked, and opened, by name. Several libraries know nothing of it
 * that would hold for all: nothing counts as new.
 * @returns {Promise<[number, Record<string, number>, Record<string, number>]>} */
const whatIsNew = async () => (areSeveral() ? [0, {}, {}] : Promise.all([newestVideo(), api.alerted(), api.openedSearches()]));

/** The saved searches; drawn when they are known.
 * @returns {HTMLElement} */
export function savedSection() {
  const chips = h("div", { class: "chips" });
  const section = h("section", { class: "saved-searches", "aria-label": t("Saved searches"), hidden: true }, h("h2", {}, t("Saved searches")), chips);
  let shown = "";
  const last = latest();
  const show = async () => {
    const found = await last(Promise.all([api.kept("search"), whatIsNew()]));
    if (!found) return;
    const [entries, [newest, alerted, opened]] = found;
    const since = libraryInfo.value?.writable ? opened : { ...opened, ...known.value };
    const state = JSON.stringify([entries, newest, since]);
    if (state === shown) return;
    shown = state;
    section.hidden = entries.length === 0;
    refill(chips, entries.map((entry) => savedChip(entry.name, /** @type {Asked} */ (entry.value), { newest, since: since[entry.name] ?? alerted[entry.name] ?? 0 }, () => void show())));
  };
  const again = window.setInterval(() => {
    if (!section.isConnected) clearInterval(again);
    else if (document.visibilityState === "visible") show().catch(() => {}); // the server is away, which the page says
  }, AGAIN);
  show().catch(() => {});
  return section;
}

/** @param {string} name @param {Asked} asked @param {{newest: number, since: number}} versions @param {() => void} changed */
function savedChip(name, asked, { newest, since }, changed) {
  const fresh = h("span", { class: "number" });
  if (newest > since) void countNew(asked, since).then((number) => { fresh.textContent = number ? plural(number, "{n} new", "{n} new") : ""; }, () => {});
  const open = () => {
    newIn.value = { asked: String(parametersOf(searchOf(asked))), since: newest > since ? since : Infinity };
    if (!areSeveral()) noteOpened(name, newest);
  };
  const undo = () => void api.keep("search", name, asked, 0).then(changed, (error) => notify(reasonOf(error)));
  const remove = () => void api.unkeep("search", name).then(() => {
    changed();
    notify(t("“{name}” is deleted", { name }), { label: t("Undo"), run: undo });
  }, (error) => notify(reasonOf(error)));
  return h("span", { class: "chip" }, h("a", { class: "chip-name", dir: "auto", href: `#/search?${parametersOf(searchOf(asked))}`, onclick: open }, name), fresh,
    libraryInfo.value?.writable && iconButton("close", t("Forget the search “{name}”", { name }), remove));
}
