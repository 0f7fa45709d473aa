// Which videos are looked into and which moments are wanted.

import { NOTHING } from "../base/asked.js";
import { byId, fill, h, icon, iconButton } from "../base/dom.js";
import { BANDS } from "../base/bands.js";
import { percent, title } from "../base/format.js";
import { t } from "../base/language.js";
import { Observable, changeSearch, libraryInfo, questionFields } from "../base/store.js";

/** @typedef {import("../base/store.js").Search} Search */

/** Kinds of evidence, as a search names them.
 * @type {Record<string, string>} */
export const EVIDENCE = {
  all: t("everything"), visual: t("what is seen"), subtitles: t("subtitles"), speech: t("recognised speech"),
  said: t("subtitles and speech"), text: t("text in pictures"), sound: t("sounds"), chapters: t("titles of chapters"), named: t("names of videos"),
};

/** Words for the values of filters that have few.
 * @type {Record<string, string>} */
export const CHOICES = { without: t("left out"), only: t("only these") };

/** How much the filters leave, beside them where they lie over the answer. */
const leaves = h("span", { class: "leaves", role: "status" });
const done = h("button", { type: "button", class: "main", onclick: () => { void toggleFilters(); filterButton.focus(); } }, t("Done"));
export const filterFields = h("div", { class: "filter-fields" });
export const filterPanel = byId("filters", HTMLElement);
fill(filterPanel, filterFields, h("div", { class: "filters-end" }, leaves, done));

/** Say how much there is with the filters as they are.
 * @param {string} said */
export const sayWhatIsLeft = (said) => { leaves.textContent = said; };

export const filterButton = h("button", {
  type: "button", class: "quiet filter-button", "aria-expanded": "false", "aria-controls": "filters",
  onclick: () => void toggleFilters(),
}, icon("filter"), t("filters"));

/** The field with which the server cannot do anything, as the API names it, such as "filter.where". */
export const problemField = new Observable("");

/** @type {typeof import("./panel.js") | null} */
let panel = null;

/** Open the filters, whose code is loaded when that is first wanted, or close them. */
export async function toggleFilters() {
  filterPanel.hidden = !filterPanel.hidden;
  filterButton.setAttribute("aria-expanded", String(!filterPanel.hidden));
  if (filterPanel.hidden) return;
  panel ??= await import("./panel.js").catch(() => null); // the server is away, which the page says
  await panel?.showFacets();
  if (!filterPanel.hidden) filterPanel.querySelector("input")?.focus({ preventScroll: true });
}

/** The least score of a search, a number where a band says it.
 * @param {Search} search @returns {number} */
export const leastScore = ({ min_score }) => (typeof min_score === "string" ? libraryInfo.value?.bands[min_score] ?? 0 : min_score);

/**
 * What narrows a search, each with what takes it away.
 *
 * @param {Search} search
 * @returns {{text: string, without: Partial<Search>}[]}
 */
export function activeFilters(search) {
  const found = Object.entries(search.filter).map(([name, value]) => {
    const { [name]: _, ...filter } = search.filter;
    return { text: `${t(questionFields.value.find((field) => field.name === name)?.short || name)} ${value.split("\n").map((one) => CHOICES[one] ?? inShort(one)).join(", ")}`, without: /** @type {Partial<Search>} */ ({ filter }) };
  });
  for (const video of search.videos)
    found.push({ text: t("only {video}", { video: title(video) }), without: { videos: search.videos.filter((other) => other !== video) } });
  if (search.by !== "all") found.push({ text: t("by {evidence}", { evidence: EVIDENCE[search.by] ?? search.by }), without: { by: "all" } });
  const least = leastScore(search);
  if (least) found.push({ text: bandFrom(search.min_score) ?? t("score from {score}", { score: percent(least) }), without: { min_score: 0 } });
  if (!search.refine) found.push({ text: t("coarse"), without: { refine: true } });
  return found;
}

/** What a least score is called where a band begins there.
 * @param {number | import("../base/api.js").Band} least */
export function bandFrom(least) {
  const bands = libraryInfo.value?.bands;
  if (least === "strong" || least === bands?.strong) return BANDS.strong;
  return least === "possible" || least === bands?.possible ? t("strong or possible") : null;
}

/** A camera without its sign, the end of a long path.
 * @param {string} value */
const inShort = (value) => value.replace(/^=/, "").replace(/^\/.*(\/[^/]+\/[^/]+)$/, "…$1");

/** The filters that hold, as chips that can be taken away.
 * @param {Search} search */
export function filterChips(search) {
  const found = activeFilters(search);
  const chips = found.map(({ text, without }) =>
    h("span", { class: "chip" }, h("span", { class: "chip-name", dir: "auto" }, text), iconButton("close", t("Without “{text}”", { text }), () => changeSearch(without))));
  const { query: _, ...none } = NOTHING;
  const all = h("button", { type: "button", class: "quiet", onclick: () => changeSearch(none) }, t("no filters"));
  return found.length > 1 ? [...chips, all] : chips;
}
