// When videos were taken: bars over all of the time, in which what is chosen stays in sight; its ends as dates; and the
// days of a month, of which those with videos can be chosen.

import { fill, h, iconButton } from "../base/dom.js";
import { language, plural, t } from "../base/language.js";
import { histogram } from "./histogram.js";

/** @typedef {import("../base/api.js").Facets["days"]} Days */
/** @typedef {import("./facets.js").Facet} Facet */
/** @typedef {import("./histogram.js").Bin} Bin */

const MOST_BARS = 60;
const PERIOD = /^\d{4}(-\d\d(-\d\d)?)?$/;

/** @param {string} period a year, a month, a day */
const firstDay = (period) => `${period}${"0000-01-01".slice(period.length)}`;

/** The period after another one.
 * @param {string} period */
function following(period) {
  const date = new Date(`${firstDay(period)}T00:00Z`);
  if (period.length === 4) date.setUTCFullYear(date.getUTCFullYear() + 1);
  else if (period.length === 7) date.setUTCMonth(date.getUTCMonth() + 1);
  else date.setUTCDate(date.getUTCDate() + 1);
  return date.toISOString().slice(0, period.length);
}

/** @param {string} period */
function lastDay(period) {
  const date = new Date(`${firstDay(following(period))}T00:00Z`);
  date.setUTCDate(date.getUTCDate() - 1);
  return date.toISOString().slice(0, 10);
}

/** The first and the last day that a filter takes; empty where it is open, or not written in days.
 * @param {string} value @returns {[string, string]} */
export function daysOf(value) {
  const [low = "", high = low] = value.split("..").map((end) => end.trim());
  return [PERIOD.test(low) ? firstDay(low) : "", PERIOD.test(high) ? lastDay(high) : ""];
}

/** The filter of a first and a last day.
 * @param {string} low @param {string} high */
const rangeOf = (low, high) => (low === high ? low : `${low}..${high}`);

/** Letters of the finest periods of which no more than MOST_BARS lie between two days.
 * @param {string} first @param {string} last */
function lettersFor(first, last) {
  const [from, to] = [new Date(first), new Date(last)];
  if ((to.getTime() - from.getTime()) / 86_400_000 < MOST_BARS) return 10;
  return 12 * (to.getUTCFullYear() - from.getUTCFullYear()) + to.getUTCMonth() - from.getUTCMonth() < MOST_BARS ? 7 : 4;
}

/** Bars from the first to the last period, empty ones too.
 * @param {Days} days @returns {Bin[]} */
export function periods(days) {
  const [first = "", last = ""] = [days[0]?.day, days.at(-1)?.day];
  const letters = lettersFor(first, last);
  const counts = new Map();
  for (const { day, videos } of days) counts.set(day.slice(0, letters), (counts.get(day.slice(0, letters)) ?? 0) + videos);
  const bins = [];
  for (let label = first.slice(0, letters); label && label <= last.slice(0, letters); label = following(label)) bins.push({ label, videos: counts.get(label) ?? 0 });
  return bins;
}

/** The bars that hold a day of what is chosen.
 * @param {Bin[]} bins @param {string} value @returns {[number, number] | null} */
function barsIn(bins, value) {
  const [low, high] = daysOf(value);
  const places = bins.flatMap(({ label }, i) => (lastDay(label) >= low && (!high || firstDay(label) <= high) ? [i] : []));
  return value && (low || high) && places.length ? [places[0] ?? 0, places.at(-1) ?? 0] : null;
}

/** @param {string} month @param {Intl.DateTimeFormatOptions} options */
const named = (month, options) => new Date(`${firstDay(month)}T00:00Z`).toLocaleDateString(language, { timeZone: "UTC", ...options });

/** Days of a week, from 1 for Monday, as the language begins it. */
function week() {
  const locale = /** @type {any} */ (new Intl.Locale(language));
  const first = (locale.getWeekInfo?.() ?? locale.weekInfo)?.firstDay ?? 1;
  return [0, 1, 2, 3, 4, 5, 6].map((i) => ((first + i - 1) % 7) + 1);
}

/** The days of a month: a first one that is chosen stands for itself, a second one makes a range of both.
 * @param {(value: string) => void} set */
function calendar(set) {
  const grid = h("div", { class: "month" });
  const months = h("select", { "aria-label": t("Month"), onchange: () => show(months.value) });
  const step = (/** @type {number} */ by) => { const option = months.options[months.selectedIndex + by]; if (option) show(option.value); };
  const [before, after] = [iconButton("previous", t("Month before"), () => step(-1)), iconButton("next", t("Next month"), () => step(1))];
  const weekdays = week();
  let counts = /** @type {Map<string, number>} */ (new Map());
  let range = ["", ""];
  let drawn = "";

  /** @param {string} day */
  const choose = (day) => {
    const [low = "", high = ""] = range;
    if (low && low === high) set(day === low ? "" : rangeOf(...(day < low ? /** @type {const} */ ([day, low]) : /** @type {const} */ ([low, day]))));
    else set(day);
  };
  /** @param {string} day */
  const cell = (day) => {
    const videos = counts.get(day);
    const inside = Boolean((range[0] || range[1]) && day >= (range[0] ?? "") && (!range[1] || day <= range[1]));
    const text = String(Number(day.slice(8)));
    if (!videos) return h("span", { class: `day${inside ? " inside" : ""}` }, text);
    const label = `${named(day, { dateStyle: "long" })}: ${plural(videos, "{n} video", "{n} videos")}`;
    return h("button", { type: "button", class: "day", "aria-pressed": String(inside), "aria-label": label, title: label, onclick: () => choose(day) }, text);
  };
  /** @param {string} month */
  const show = (month) => {
    months.value = month;
    [before.disabled, after.disabled] = [months.selectedIndex <= 0, months.selectedIndex >= months.options.length - 1];
    const focused = grid.contains(document.activeElement) ? [...grid.children].indexOf(/** @type {Element} */ (document.activeElement)) : -1;
    const days = Number(lastDay(month).slice(8));
    const cells = Array.from({ length: days }, (_, i) => cell(`${month}-${String(i + 1).padStart(2, "0")}`));
    const first = new Date(`${month}-01T00:00Z`).getUTCDay() || 7;
    cells[0]?.style.setProperty("grid-column-start", String(weekdays.indexOf(first) + 1));
    const heads = weekdays.map((day) => h("span", { class: "weekday", "aria-hidden": "true" }, named(`2024-01-0${day}`, { weekday: "narrow" })));
    fill(grid, heads, cells);
    /** @type {HTMLElement | undefined} */ (grid.children[focused])?.focus();
  };
  return {
    element: h("div", { class: "calendar" }, h("div", { class: "month-head" }, before, months, after), grid),
    /** @param {Days} days @param {string} value */
    draw(days, value) {
      const was = range[0];
      range = daysOf(value);
      const of = JSON.stringify(days);
      if (of !== drawn) {
        drawn = of;
        counts = new Map(days.map(({ day, videos }) => [day, videos]));
        fill(months, [...new Set(days.map(({ day }) => day.slice(0, 7)))].map((month) => h("option", { value: month }, named(month, { year: "numeric", month: "long" }))));
        months.value = days.at(-1)?.day.slice(0, 7) ?? "";
      }
      const wanted = range[0]?.slice(0, 7) ?? "";
      const isListed = [...months.options].some((option) => option.value === wanted);
      show(isListed && was !== range[0] ? wanted : months.value);
    },
  };
}

/** @param {(name: string, value: string) => void} set
 * @param {(name: string, label: string, set: (name: string, value: string) => void, ...parts: Node[]) => {name: string, element: HTMLElement, show: (isThere: boolean, value: string) => void}} group
 * @returns {Facet} */
export function timeFacet(set, group) {
  const label = t("When it was taken");
  const choose = (/** @type {string} */ value) => set("taken", value);
  /** @type {Bin[]} */
  let bins = [];
  const bars = histogram(label, (first, last) => choose(rangeOf(bins[first]?.label ?? "", bins[last]?.label ?? "")), () => choose(""));
  const month = calendar(choose);
  const change = () => { if (from.validity.valid && to.validity.valid) choose(from.value || to.value ? rangeOf(from.value, to.value) : ""); };
  /** @param {string} end */
  const field = (end) => h("input", { type: "date", "aria-label": `${label}, ${end}`, "aria-describedby": "failure", onchange: change });
  const [from, to] = [field(t("from")), field(t("to"))];
  const { name, element, show } = group("taken", label, set, bars.element, h("div", { class: "range dates" }, from, to), month.element);
  return {
    name, element,
    draw({ days }, value) {
      show(days.length > 1, value);
      if (!days.length) return;
      bins = periods(days);
      bars.draw(bins, barsIn(bins, value));
      const [low, high] = daysOf(value);
      for (const input of [from, to]) [input.min, input.max] = [days[0]?.day ?? "", days.at(-1)?.day ?? ""];
      [from.value, to.value] = [low, high];
      month.draw(days, value);
    },
  };
}
