// How far a task is, how well its raters agree, and what can be taken out of it.

import { byId, fill, h, icon } from "../base/dom.js";
import { plural, t } from "../base/language.js";
import { exportUrl, info, readProgress } from "./task.js";

/** @typedef {import("./task.js").Progress} Progress @typedef {import("./task.js").QueryRow} QueryRow */

const view = byId("progress-view", HTMLElement);
const STATES = /** @type {const} */ (["agreed", "discarded", "set_aside", "open"]);
const TITLES = { agreed: t("agreed"), discarded: t("discarded"), set_aside: t("set aside"), open: t("open") };

export async function drawProgress() {
  const found = await readProgress();
  fill(view, h("div", { class: "progress" },
    drawSummary(found), drawExports(found), drawAgreement(found), drawRaters(found), drawQueries(found)));
}

/** @param {Progress} found @param {typeof STATES[number] | "moments"} state */
const total = (found, state) => found.queries.reduce((sum, query) => sum + query[state], 0);

/** @param {Progress} found */
function drawSummary(found) {
  const all = total(found, "moments");
  const judged = all - total(found, "open");
  return h("section", { "aria-label": t("All") },
    h("h2", { class: "progress-head" }, plural(all, "{done} of {n} moment done", "{done} of {n} moments done", { done: judged })),
    bar(Object.assign({ moments: all }, ...STATES.map((state) => ({ [state]: total(found, state) })))),
    h("ul", { class: "legend" }, STATES.map((state) =>
      h("li", {}, h("span", { class: `swatch ${state}` }), h("strong", { class: "figure" }, total(found, state)), ` ${TITLES[state]}`))));
}

/** @param {Pick<QueryRow, "moments" | typeof STATES[number]>} row */
function bar(row) {
  const label = STATES.map((state) => `${row[state]} ${TITLES[state]}`).join(", ");
  return h("div", { class: "stack", role: "img", "aria-label": label },
    STATES.filter((state) => row[state] > 0).map((state) => {
      const share = h("span", { class: state });
      share.style.setProperty("--share", String(row[state] / row.moments));
      return share;
    }));
}

/** @param {Progress} found */
function drawExports(found) {
  const agreed = total(found, "agreed") > 0;
  const judged = found.raters.some((rater) => rater.judged > 0);
  /** @type {Record<string, boolean>} */
  const there = { tvr_ranking: agreed, qrels: agreed, ratings: judged, pairs: judged && total(found, "open") > 0 };
  const links = (info.value?.export_formats ?? []).map(({ name, title, suffix }) => {
    return there[name] && h("a", { class: "plain", href: exportUrl(name), download: "" }, icon("download"), title, h("span", { class: "muted" }, suffix));
  });
  return h("section", { "aria-labelledby": "exports-title" }, h("h2", { id: "exports-title" }, t("Exports")),
    links.some(Boolean) ? h("div", { class: "exports" }, links)
      : h("p", { class: "muted" }, t("The graded test set, for moviola evaluate, is here as soon as raters agree on a moment.")));
}

/** @param {number | null} value */
const figure = (value) => (value === null ? "–" : value.toFixed(2));

/** @param {Progress} found */
function drawAgreement(found) {
  const most = Math.max(...found.low_high.flat(), 1);
  const pairs = found.low_high.flat().reduce((sum, n) => sum + n, 0);
  const cell = (/** @type {number} */ n, /** @type {number} */ low, /** @type {number} */ high) => {
    const box = h("td", { class: high < low ? "no" : high - low > 1 ? "apart" : "" }, high < low ? "" : n);
    box.style.setProperty("--share", String(Math.sqrt(n / most)));
    return box;
  };
  return h("section", { "aria-labelledby": "agreement-title" }, h("h2", { id: "agreement-title" }, t("Agreement")),
    h("div", { class: "agreement" },
      h("dl", { class: "facts" },
        h("div", {}, h("dt", {}, t("kappa")), h("dd", { class: "figure" }, figure(found.kappa))),
        h("div", {}, h("dt", {}, t("weighted kappa")), h("dd", { class: "figure" }, figure(found.weighted_kappa))),
        h("div", {}, h("dt", {}, t("judged by several")), h("dd", { class: "figure" }, plural(pairs, "{n} moment", "{n} moments")))),
      h("table", { class: "low-high" }, h("caption", {}, t("Moments by the lowest and the highest of their levels")),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("lowest ↓ highest →")), [0, 1, 2, 3, 4].map((level) => h("th", { scope: "col" }, level)))),
        h("tbody", {}, found.low_high.map((row, low) => h("tr", {}, h("th", { scope: "row" }, low), row.map((n, high) => cell(n, low, high)))))),
      drawLevels(found.levels)));
}

/** @param {number[]} levels */
function drawLevels(levels) {
  const most = Math.max(...levels, 1);
  return h("table", { class: "histogram" }, h("caption", {}, t("Agreed levels")),
    h("tbody", {}, levels.map((n, level) => {
      const column = h("span", { class: "histogram-bar" });
      column.style.setProperty("--share", String(n / most));
      return h("tr", {}, h("th", { scope: "row" }, level), h("td", {}, column, h("span", { class: "figure" }, n)));
    })));
}

/** @param {Progress} found */
function drawRaters(found) {
  return h("section", { "aria-labelledby": "raters-title" }, h("h2", { id: "raters-title" }, t("Raters")),
    found.raters.length === 0 ? h("p", { class: "muted" }, t("Nobody has signed in yet."))
      : h("div", { class: "wide" }, h("table", { class: "figures" },
        h("thead", {}, h("tr", {}, [t("name"), t("judged"), t("skipped"), t("from the median"), t("kappa")].map((title) => h("th", { scope: "col" }, title)))),
        h("tbody", {}, found.raters.map((rater) => h("tr", {}, h("th", { scope: "row" }, rater.name),
          [rater.judged, rater.passed, rater.distance === null ? "–" : t("{n} levels", { n: rater.distance.toFixed(2) }), figure(rater.kappa)].map((value) => h("td", { class: "figure" }, value))))))));
}

/** @param {Progress} found */
function drawQueries(found) {
  return h("section", { "aria-labelledby": "queries-title" }, h("h2", { id: "queries-title" }, t("Queries")),
    h("div", { class: "wide" }, h("table", { class: "figures queries" },
      h("thead", {}, h("tr", {}, [t("query"), "", t("moments"), t("agreed"), t("relevant")].map((title) => h(title ? "th" : "td", title ? { scope: "col" } : {}, title)))),
      h("tbody", {}, found.queries.map((query) => h("tr", {}, h("th", { scope: "row" }, query.query), h("td", { class: "of-query" }, bar(query)),
        [query.moments, query.agreed, query.answers].map((value) => h("td", { class: "figure" }, value))))))));
}
