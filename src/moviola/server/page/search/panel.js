// The fields of the filters and of how an answer is found, drawn when they are first opened.

import * as api from "../base/api.js";
import { NOTHING } from "../base/asked.js";
import { fill, h, setState } from "../base/dom.js";
import { CHOICES, EVIDENCE, bandFrom, filterFields, filterPanel, leastScore, problemField } from "./filters.js";
import { BANDS } from "../base/bands.js";
import { percent } from "../base/format.js";
import { language, t } from "../base/language.js";
import { latest } from "../base/latest.js";
import { changeSearch, currentSearch, libraryInfo, questionFields } from "../base/store.js";
import { allFacets } from "./facets.js";

/** @typedef {import("../base/store.js").Search} Search */
/** @typedef {api.Field} Field */

const TYPING = 400; // ms without a key before a filter counts

/** Forms of filters that are written FROM..TO, with what stands in their empty fields.
 * @type {Record<string, [string, string]>} */
const RANGES = { seconds: ["0:00", t("any")], positions: ["0%", "100%"], times: ["", ""] };

/** Filters that are chosen by the numbers of their videos: facets.js. */
const CHOSEN = ["folder", "taken", "near", "video_length", "camera", "tag"];

/** Each puts what is asked into its own field.
 * @type {((search: Search) => void)[]} */
const fields = [];

/** The fields of each filter, by its name.
 * @type {Map<string, (HTMLInputElement | HTMLSelectElement)[]>} */
const inputs = new Map();

/** Mark the field with which the server cannot do anything, and only that. */
function markProblem() {
  const field = problemField.value;
  for (const [name, own] of inputs)
    for (const input of own) setState(input, "aria-invalid", field === `filter.${name}`);
  for (const { name, element } of facets) element.classList.toggle("wrong", field === `filter.${name}`);
}

/** @param {string} name @param {string} value empty takes the filter away. */
function setFilter(name, value) {
  const { [name]: _, ...others } = currentSearch.value.filter;
  isSetting = true;
  changeSearch({ filter: value ? { ...others, [name]: value } : others });
  isSetting = false;
}

/** Whether a filter is being set here: others that are still being typed go on. */
let isSetting = false;
/** What forgets each filter that is still being typed, by name.
 * @type {Map<string, (search: Search) => void>} */
const unfinished = new Map();

/** Typed words belong to the search that they were typed at: not to one that took its place.
 * @param {Search} search @param {Search} before */
function forgetUnfinished(search, before) {
  if (isSetting || (search.filter === before.filter && search !== NOTHING)) return;
  for (const forget of unfinished.values()) forget(search);
  unfinished.clear();
}

/** Values to choose from, by number of videos.
 * @type {import("./facets.js").Facet[]} */
let facets = [];
/** Counted once, until the library changes.
 * @type {Promise<api.Facets> | null} */
let counted = null;

const newest = latest();

/** Show what videos there are to choose from, where the panel is open. */
export async function showFacets() {
  if (filterPanel.hidden) return;
  const counts = await newest((counted ??= api.facets()).catch(() => { counted = null; }));
  if (!counts) return; // the server is away, which the page says, or they are counted again
  if (!facets.length) {
    facets = allFacets(setFilter);
    filterFields.firstElementChild?.prepend(...facets.map(({ element }) => element));
    markProblem();
  }
  for (const facet of facets) facet.draw(counts, currentSearch.value.filter[facet.name] ?? "");
  fill(evidence, evidenceOptions(counts.evidence));
  evidence.value = currentSearch.value.by;
}

/** @param {HTMLInputElement | HTMLSelectElement} input @param {(search: Search) => string} value */
function follow(input, value) {
  fields.push((search) => { if (document.activeElement !== input) input.value = value(search); });
}

/** A filter of few values.
 * @param {Field} field */
function choiceField({ name, label, choices }) {
  const titled = t(label || name);
  const input = h("select", { "aria-label": titled, onchange: () => setFilter(name, input.value) },
    h("option", { value: "" }, t("any")), choices.map((value) => h("option", { value }, CHOICES[value] ?? value)));
  inputs.set(name, [input]);
  follow(input, (search) => search.filter[name] ?? "");
  return h("fieldset", {}, h("legend", {}, titled), input);
}

/** A filter that is typed: in two fields where it is written FROM..TO.
 * @param {Field} field */
function filterField({ name, form, label, example }) {
  const hints = RANGES[form];
  let typing = 0;
  /** @returns {string[]} */
  const parts = (/** @type {Search} */ search) => {
    const value = search.filter[name] ?? "";
    return !hints ? [value] : value.includes("..") ? value.split("..") : [value, value];
  };
  const forget = (/** @type {Search} */ search) => {
    clearTimeout(typing);
    parts(search).forEach((part, i) => { const input = own[i]; if (input) input.value = part; });
  };
  // Half a time is no filter yet: it counts when the typing rests, also if it goes on in another field.
  const set = () => {
    const value = own.some((input) => input.value) ? own.map((input) => input.value).join("..") : "";
    clearTimeout(typing);
    unfinished.set(name, forget);
    typing = window.setTimeout(() => { unfinished.delete(name); setFilter(name, value); }, TYPING);
  };
  const titled = t(label || name);
  /** @param {string} hint @param {number} end */
  const bound = (hint, end) => h("input", {
    type: "text", placeholder: hint || String(example ?? "").split("..")[end] || "", "aria-describedby": "failure", oninput: set,
    "aria-label": hints ? `${titled}, ${end === 0 ? t("from") : t("to")}` : titled,
  });
  const own = (hints ?? [""]).map(bound);
  inputs.set(name, own);
  own.forEach((input, i) => follow(input, (search) => parts(search)[i] ?? ""));
  return h("fieldset", {}, h("legend", {}, titled), h("div", { class: "range" }, own.flatMap((input, i) => (i ? [h("span", {}, "–"), input] : [input]))));
}

const evidence = h("select", { onchange: () => changeSearch({ by: evidence.value }) });

/** @param {api.Facets["evidence"]} counted kinds that the library has. */
function evidenceOptions(counted) {
  const has = (/** @type {string} */ kind) => counted.some(({ by }) => by === kind);
  const options = counted.map(({ by, videos }) => h("option", { value: by }, `${EVIDENCE[by]} (${videos.toLocaleString(language)})`));
  const said = has("subtitles") && has("speech") ? h("option", { value: "said" }, EVIDENCE.said) : null;
  return [h("option", { value: "all" }, EVIDENCE.all), ...options, said];
}

/** What a search has of an option, and what changes that.
 * @param {Field} field */
const option = ({ name, default: usual }) => ({
  of: (/** @type {Search} */ search) => /** @type {any} */ (search)[name] ?? usual,
  set: (/** @type {unknown} */ value) => changeSearch({ [name]: value }),
});

/** Fields of options, by their form.
 * @type {Record<string, (field: Field) => HTMLElement>} */
const OPTIONS = {
  choice: (field) => {
    const { of, set } = option(field);
    const input = field.name === "by" ? evidence : h("select", { onchange: () => set(input.value) }, field.choices.map((value) => h("option", { value }, value)));
    if (input === evidence) fill(evidence, evidenceOptions([])); // until they are counted
    follow(input, of);
    return h("label", { class: "field" }, h("span", {}, t(field.label)), input);
  },
  score: (field) => {
    const { set } = option(field);
    const input = h("select", { onchange: () => set(input.value in BANDS ? input.value : Number(input.value)) });
    fields.push((search) => {
      const least = leastScore(search);
      const band = bandFrom(search.min_score);
      const other = least && !band ? h("option", { value: least }, t("score from {score}", { score: percent(least) })) : null; // of a link
      fill(input, h("option", { value: "0" }, t("any")), h("option", { value: "possible" }, t("strong or possible")), h("option", { value: "strong" }, BANDS.strong), other);
      input.value = !least ? "0" : band ? (band === BANDS.strong ? "strong" : "possible") : String(least);
    });
    return h("label", { class: "field" }, h("span", {}, t(field.label)), input);
  },
  flag: (field) => {
    const { of, set } = option(field);
    const input = h("input", { type: "checkbox", onchange: () => set(input.checked) });
    fields.push((search) => { input.checked = of(search); });
    return h("label", { class: "field check" }, input, h("span", {}, t(field.label)));
  },
};

function draw() {
  fields.length = 0;
  counted = null;
  const typed = questionFields.value.filter((field) => field.filter && !CHOSEN.includes(field.name));
  const options = questionFields.value.flatMap((field) => (field.filter ? [] : [OPTIONS[field.form]?.(field) ?? null]));
  fill(filterFields, h("div", { class: "filter-grid" }, facets.map(({ element }) => element), typed.map((field) => (field.choices.length ? choiceField(field) : filterField(field))), options));
  for (const field of fields) field(currentSearch.value);
  markProblem();
  void showFacets();
}

problemField.onChange(markProblem);
libraryInfo.onChange(draw);
currentSearch.onChange(forgetUnfinished);
currentSearch.onChange((search) => { for (const field of fields) field(search); void showFacets(); });
draw();
