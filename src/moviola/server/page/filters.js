// Which videos are looked into and which moments are wanted.

import { fill, h, icon, iconButton } from "./dom.js";
import { title } from "./format.js";
import { NOTHING, currentSearch, libraryInfo } from "./store.js";

/** @typedef {import("./store.js").Search} Search */

const TYPING = 400; // ms without a key before a filter counts

/** Ranges of the API are written LOW..HIGH.
 * @type {{name: string, label: string, short: string, kind: "text" | "date", hints: [string, string]}[]} */
const RANGES = [
  { name: "modified", label: "File changed", short: "changed", kind: "date", hints: ["from", "to"] },
  { name: "video_length", label: "Length of the video", short: "video", kind: "text", hints: ["0:00", "any"] },
  { name: "moment_length", label: "Length of the moment", short: "moment", kind: "text", hints: ["0:00", "any"] },
  { name: "where", label: "Where in the video", short: "at", kind: "text", hints: ["0%", "100%"] },
];

/** @type {Record<string, string>} */
const EVIDENCE = {
  all: "everything", visual: "what is seen", subtitles: "subtitles", speech: "recognised speech",
  said: "whatever is said", text: "text in pictures",
};

/** What the library calls a kind of cue, and how a search is asked to go by it. */
const BY = /** @type {Record<string, string>} */ ({ subtitle: "subtitles" });

export const filterPanel = h("div", { class: "filters", id: "filters", hidden: true, role: "group", "aria-label": "Filters" });
export const filterButton = h("button", {
  type: "button", class: "quiet filter-button", "aria-expanded": "false", "aria-controls": "filters",
  onclick: () => toggleFilters(),
}, icon("filter"), "filters");

export function toggleFilters() {
  filterPanel.hidden = !filterPanel.hidden;
  filterButton.setAttribute("aria-expanded", String(!filterPanel.hidden));
  if (!filterPanel.hidden) filterPanel.querySelector("input")?.focus();
}

/**
 * What narrows a search, each with what takes it away.
 *
 * @param {Search} search
 * @returns {{text: string, without: Partial<Search>}[]}
 */
export function activeFilters(search) {
  const found = Object.entries(search.filter).map(([name, value]) => {
    const short = RANGES.find((range) => range.name === name)?.short ?? "in";
    const { [name]: _, ...filter } = search.filter;
    return { text: `${short} ${value}`, without: /** @type {Partial<Search>} */ ({ filter }) };
  });
  for (const video of search.videos)
    found.push({ text: `only ${title(video)}`, without: { videos: search.videos.filter((other) => other !== video) } });
  if (search.by !== "all") found.push({ text: `by ${EVIDENCE[search.by]}`, without: { by: "all" } });
  if (search.minScore) found.push({ text: `score from ${Math.round(100 * search.minScore)}`, without: { minScore: 0 } });
  if (!search.refine) found.push({ text: "coarse", without: { refine: true } });
  return found;
}

/** @type {((part: Partial<Search>) => void)} */
let change = () => {};
/** Each puts what is asked into its own field.
 * @type {((search: Search) => void)[]} */
const fields = [];

let typing = 0;
/** The fields of each filter, by its name.
 * @type {Map<string, HTMLInputElement[]>} */
const inputs = new Map();

/** Mark the field with which the server cannot do anything, and only that.
 * @param {string} field as the API names it, such as "filter.where". */
export function markProblem(field) {
  for (const [name, own] of inputs)
    for (const input of own) input.toggleAttribute("aria-invalid", field === `filter.${name}`);
}

/** Half a folder or half a time is no filter yet: it counts when the typing rests.
 * @param {string} name @param {string} value empty takes the filter away. */
function setFilter(name, value) {
  clearTimeout(typing);
  typing = window.setTimeout(() => {
    const { [name]: _, ...others } = currentSearch.value.filter;
    change({ filter: value ? { ...others, [name]: value } : others });
  }, TYPING);
}

/** @param {HTMLInputElement | HTMLSelectElement} input @param {(search: Search) => string} value */
function follow(input, value) {
  fields.push((search) => { if (document.activeElement !== input) input.value = value(search); });
}

/** @param {(typeof RANGES)[number]} range */
function rangeField({ name, label, kind, hints }) {
  const set = () => setFilter(name, low.value || high.value ? `${low.value}..${high.value}` : "");
  /** @param {"from" | "to"} end @param {string} hint */
  const bound = (end, hint) => h("input", { type: kind, placeholder: hint, "aria-label": `${label}, ${end}`, "aria-describedby": "failure", oninput: set });
  const [low, high] = [bound("from", hints[0]), bound("to", hints[1])];
  inputs.set(name, [low, high]);
  follow(low, (search) => (search.filter[name] ?? "").split("..")[0] ?? "");
  follow(high, (search) => (search.filter[name] ?? "").split("..")[1] ?? "");
  return h("fieldset", {}, h("legend", {}, label), h("div", { class: "range" }, low, h("span", {}, "–"), high));
}

function folderField() {
  const input = h("input", { type: "text", placeholder: "a folder, or */beach/*.mov", "aria-describedby": "failure", oninput: () => setFilter("folder", input.value.trim()) });
  inputs.set("folder", [input]);
  follow(input, (search) => search.filter.folder ?? "");
  return h("label", { class: "field" }, h("span", {}, "Folder"), input);
}

/** @param {string[]} kinds of evidence that the library has. */
function evidenceField(kinds) {
  const heard = kinds.includes("subtitle") && kinds.includes("speech") ? ["said"] : [];
  const select = h("select", { onchange: () => change({ by: select.value }) },
    ["all", ...kinds.map((kind) => BY[kind] ?? kind), ...heard].map((kind) => h("option", { value: kind }, EVIDENCE[kind] ?? kind)));
  follow(select, (search) => search.by);
  return h("label", { class: "field" }, h("span", {}, "Found by"), select);
}

function scoreField() {
  const input = h("input", { type: "range", min: "0", max: "0.95", step: "0.05", oninput: () => change({ minScore: Number(input.value) }) });
  const name = h("span");
  fields.push((search) => { input.value = String(search.minScore); fill(name, `Score at least ${Math.round(100 * search.minScore)}`); });
  return h("label", { class: "field" }, name, input);
}

function refineField() {
  const input = h("input", { type: "checkbox", onchange: () => change({ refine: input.checked }) });
  fields.push((search) => { input.checked = search.refine; });
  return h("label", { class: "field check" }, input, h("span", {}, "Refined ends (slower)"));
}

function drawPanel() {
  fields.length = 0;
  fill(filterPanel, h("div", { class: "filter-grid" },
    folderField(), RANGES.map(rangeField), evidenceField(libraryInfo.value?.evidence ?? ["visual"]), scoreField(), refineField()));
  for (const field of fields) field(currentSearch.value);
}

/** @param {(part: Partial<Search>) => void} changed called with what is asked otherwise. */
export function showFilters(changed) {
  change = changed;
  libraryInfo.onChange(drawPanel);
  currentSearch.onChange((search) => { for (const field of fields) field(search); });
  drawPanel();
}

/** The filters that hold, as chips that can be taken away.
 * @param {Search} search */
export function filterChips(search) {
  const found = activeFilters(search);
  const chips = found.map(({ text, without }) =>
    h("span", { class: "chip" }, h("span", { class: "chip-name" }, text), iconButton("close", `Without “${text}”`, () => change(without))));
  const { filter, videos, by, minScore, refine } = NOTHING;
  const all = h("button", { type: "button", class: "quiet", onclick: () => change({ filter, videos, by, minScore, refine }) }, "no filters");
  return found.length > 1 ? [...chips, all] : chips;
}
