// Which videos are looked into and which moments are wanted.

import * as api from "./api.js";
import { fill, h, icon, iconButton, setState } from "./dom.js";
import { percent, title } from "./format.js";
import { language, t } from "./language.js";
import { NOTHING, currentSearch, libraryInfo } from "./store.js";

/** @typedef {import("./store.js").Search} Search */

const TYPING = 400; // ms without a key before a filter counts

/** Ranges of a moment are typed; the API writes them LOW..HIGH.
 * @type {{name: string, label: string, hints: [string, string]}[]} */
const RANGES = [
  { name: "moment_length", label: t("Length of the moment"), hints: ["0:00", t("any")] },
  { name: "where", label: t("Where in the video"), hints: ["0%", "100%"] },
];

/** What a filter is called on its chip. */
const SHORT = /** @type {Record<string, string>} */ ({
  modified: t("changed"), video_length: t("video"), moment_length: t("moment"), where: t("at"), folder: t("in"),
  taken: t("taken"), near: t("near"), camera: t("camera"), tag: t("tagged"),
});

/** Kinds of evidence, as a search names them.
 * @type {Record<string, string>} */
export const EVIDENCE = {
  all: t("everything"), visual: t("what is seen"), subtitles: t("subtitles"), speech: t("recognised speech"),
  said: t("subtitles and speech"), text: t("text in pictures"), named: t("names of videos"),
};

export const filterPanel = h("div", { class: "filters", id: "filters", hidden: true, role: "group", "aria-label": t("Filters") });
export const filterButton = h("button", {
  type: "button", class: "quiet filter-button", "aria-expanded": "false", "aria-controls": "filters",
  onclick: () => toggleFilters(),
}, icon("filter"), t("filters"));

export function toggleFilters() {
  filterPanel.hidden = !filterPanel.hidden;
  filterButton.setAttribute("aria-expanded", String(!filterPanel.hidden));
  if (!filterPanel.hidden) void showFacets().then(() => filterPanel.querySelector("input")?.focus());
}

/**
 * What narrows a search, each with what takes it away.
 *
 * @param {Search} search
 * @returns {{text: string, without: Partial<Search>}[]}
 */
export function activeFilters(search) {
  const found = Object.entries(search.filter).map(([name, value]) => {
    const { [name]: _, ...filter } = search.filter;
    return { text: `${SHORT[name] ?? name} ${value.split("\n").map(inShort).join(", ")}`, without: /** @type {Partial<Search>} */ ({ filter }) };
  });
  for (const video of search.videos)
    found.push({ text: t("only {video}", { video: title(video) }), without: { videos: search.videos.filter((other) => other !== video) } });
  if (search.by !== "all") found.push({ text: t("by {evidence}", { evidence: EVIDENCE[search.by] ?? search.by }), without: { by: "all" } });
  if (search.minScore) found.push({ text: t("score from {score}", { score: percent(search.minScore) }), without: { minScore: 0 } });
  if (!search.refine) found.push({ text: t("coarse"), without: { refine: true } });
  return found;
}

/** A camera without its sign, the end of a long path.
 * @param {string} value */
const inShort = (value) => value.replace(/^=/, "").replace(/^\/.*(\/[^/]+\/[^/]+)$/, "…$1");

/** @type {((part: Partial<Search>) => void)} */
let change = () => {};
/** Each puts what is asked into its own field.
 * @type {((search: Search) => void)[]} */
const fields = [];

/** The fields of each filter, by its name.
 * @type {Map<string, HTMLInputElement[]>} */
const inputs = new Map();

/** Mark the field with which the server cannot do anything, and only that.
 * @param {string} field as the API names it, such as "filter.where". */
export function markProblem(field) {
  for (const [name, own] of inputs)
    for (const input of own) setState(input, "aria-invalid", field === `filter.${name}`);
  wrong = field;
  drawWrong();
}

function drawWrong() {
  for (const { name, element } of facets) element.classList.toggle("wrong", wrong === `filter.${name}`);
}

/** @param {string} name @param {string} value empty takes the filter away. */
function setFilter(name, value) {
  const { [name]: _, ...others } = currentSearch.value.filter;
  isSetting = true;
  change({ filter: value ? { ...others, [name]: value } : others });
  isSetting = false;
}

/** Whether a filter is being set here: others that are still being typed go on. */
let isSetting = false;
/** What forgets each filter that is still being typed, by name.
 * @type {Map<string, (search: Search) => void>} */
const unfinished = new Map();

/** What is typed belongs to the search that it was typed at: not to one that took its place.
 * @param {Search} search @param {Search} before */
function forgetUnfinished(search, before) {
  if (isSetting || (search.filter === before.filter && search !== NOTHING)) return;
  for (const forget of unfinished.values()) forget(search);
  unfinished.clear();
}

/** What is chosen by number of videos; its code is loaded when the filters are opened.
 * @type {import("./choosing/facets.js").Facet[]} */
let facets = [];
let wrong = "";
/** Counted once, until the library changes.
 * @type {Promise<api.Facets> | null} */
let counted = null;

async function showFacets() {
  if (filterPanel.hidden) return;
  const counts = await (counted ??= api.facets()).catch(() => { counted = null; });
  if (!counts) return; // the server is away, which the page says
  const { allFacets } = await import("./choosing/facets.js");
  if (!facets.length) {
    facets = allFacets(setFilter);
    filterPanel.firstElementChild?.prepend(...facets.map(({ element }) => element));
    drawWrong();
  }
  for (const facet of facets) facet.draw(counts, currentSearch.value.filter[facet.name] ?? "");
  fill(evidence, evidenceOptions(counts.evidence));
  evidence.value = currentSearch.value.by;
}

/** @param {HTMLInputElement | HTMLSelectElement} input @param {(search: Search) => string} value */
function follow(input, value) {
  fields.push((search) => { if (document.activeElement !== input) input.value = value(search); });
}

/** @param {(typeof RANGES)[number]} range */
function rangeField({ name, label, hints }) {
  let typing = 0;
  const parts = (/** @type {Search} */ search) => (search.filter[name] ?? "").split("..");
  const forget = (/** @type {Search} */ search) => {
    clearTimeout(typing);
    [low.value = "", high.value = ""] = parts(search);
  };
  // Half a time is no filter yet: it counts when the typing rests, also if it goes on in another field.
  const set = () => {
    const value = low.value || high.value ? `${low.value}..${high.value}` : "";
    clearTimeout(typing);
    unfinished.set(name, forget);
    typing = window.setTimeout(() => { unfinished.delete(name); setFilter(name, value); }, TYPING);
  };
  /** @param {"from" | "to"} end @param {string} hint */
  const bound = (end, hint) => h("input", { type: "text", placeholder: hint, "aria-label": `${label}, ${end === "from" ? t("from") : t("to")}`, "aria-describedby": "failure", oninput: set });
  const [low, high] = [bound("from", hints[0]), bound("to", hints[1])];
  inputs.set(name, [low, high]);
  follow(low, (search) => parts(search)[0] ?? "");
  follow(high, (search) => parts(search)[1] ?? "");
  return h("fieldset", {}, h("legend", {}, label), h("div", { class: "range" }, low, h("span", {}, "–"), high));
}

const evidence = h("select", { onchange: () => change({ by: evidence.value }) });

/** @param {api.Facets["evidence"]} counted kinds that the library has. */
function evidenceOptions(counted) {
  const has = (/** @type {string} */ kind) => counted.some(({ by }) => by === kind);
  const options = counted.map(({ by, videos }) => h("option", { value: by }, `${EVIDENCE[by]} (${videos.toLocaleString(language)})`));
  const said = has("subtitles") && has("speech") ? h("option", { value: "said" }, EVIDENCE.said) : null;
  return [h("option", { value: "all" }, EVIDENCE.all), ...options, said];
}

function evidenceField() {
  fill(evidence, evidenceOptions([])); // until they are counted
  follow(evidence, (search) => search.by);
  return h("label", { class: "field" }, h("span", {}, t("Found by")), evidence);
}

function scoreField() {
  const input = h("input", { type: "range", min: "0", max: "0.95", step: "0.05", oninput: () => change({ minScore: Number(input.value) }) });
  const name = h("span");
  fields.push((search) => { input.value = String(search.minScore); fill(name, t("Score at least {score}", { score: percent(search.minScore) })); });
  return h("label", { class: "field" }, name, input);
}

function refineField() {
  const input = h("input", { type: "checkbox", onchange: () => change({ refine: input.checked }) });
  fields.push((search) => { input.checked = search.refine; });
  return h("label", { class: "field check" }, input, h("span", {}, t("Refined ends (slower)")));
}

function drawPanel() {
  fields.length = 0;
  counted = null;
  fill(filterPanel, h("div", { class: "filter-grid" },
    facets.map(({ element }) => element), RANGES.map(rangeField), evidenceField(), scoreField(), refineField()));
  for (const field of fields) field(currentSearch.value);
  void showFacets();
}

/** @param {(part: Partial<Search>) => void} changed called with what is asked otherwise. */
export function showFilters(changed) {
  change = changed;
  libraryInfo.onChange(drawPanel);
  currentSearch.onChange(forgetUnfinished);
  currentSearch.onChange((search) => { for (const field of fields) field(search); void showFacets(); });
  drawPanel();
}

/** The filters that hold, as chips that can be taken away.
 * @param {Search} search */
export function filterChips(search) {
  const found = activeFilters(search);
  const chips = found.map(({ text, without }) =>
    h("span", { class: "chip" }, h("span", { class: "chip-name", dir: "auto" }, text), iconButton("close", t("Without “{text}”", { text }), () => change(without))));
  const { filter, videos, by, minScore, refine } = NOTHING;
  const all = h("button", { type: "button", class: "quiet", onclick: () => change({ filter, videos, by, minScore, refine }) }, t("no filters"));
  return found.length > 1 ? [...chips, all] : chips;
}
