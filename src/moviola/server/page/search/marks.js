// Right and wrong: marks on the moments of an answer, from which the next answer learns; and keeping what they teach.

import * as api from "../base/api.js";
import { askedBy, marksIn } from "../base/asked.js";
import { h, icon, iconButton } from "../base/dom.js";
import { reasonOf } from "../base/format.js";
import { t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { changeQuery, currentSearch, libraryInfo } from "../base/store.js";

/** @typedef {import("../base/asked.js").Marked} Marked */
/** @typedef {"right" | "wrong"} Mark */

const SAME = 0.5; // of the longer of two spans: ends move a little from answer to answer

/** @param {Marked} a @param {Marked} b */
function isSame(a, b) {
  if (a.video_id !== b.video_id) return false;
  const shared = Math.min(a.end, b.end) - Math.max(a.start, b.start);
  return shared > SAME * Math.max(a.end - a.start, b.end - b.start);
}

/** How a moment is marked.
 * @param {Marked} moment @returns {Mark | ""} */
export function markOf(moment) {
  const { right, wrong } = currentSearch.value.query;
  if (right.some((other) => isSame(other, moment))) return "right";
  return wrong.some((other) => isSame(other, moment)) ? "wrong" : "";
}

/** Mark a moment, or take the same mark away.
 * @param {Marked} moment @param {Mark} mark */
export function setMark({ video_id, start, end }, mark) {
  const moment = { video_id, start, end };
  const { right, wrong } = currentSearch.value.query;
  const before = { right: right.filter((other) => isSame(other, moment)), wrong: wrong.filter((other) => isSame(other, moment)) };
  const isOn = markOf(moment) === mark;
  put(moment, { right: [], wrong: [], ...(!isOn && { [mark]: [moment] }) });
  for (const earlier of made) if (isSame(earlier.moment, moment)) earlier.notice.abort(); // it speaks of a mark that is no more
  const step = { moment, before, notice: new AbortController() };
  made.push(step);
  const said = mark === "right" ? t("Marked as right: the answer uses it") : t("Marked as wrong: the answer uses it");
  notify(isOn ? t("The mark is taken away") : said, { label: t("Undo"), run: () => undo(step), signal: step.notice.signal });
}

/** @typedef {Pick<import("../base/asked.js").Query, Mark>} Marks */
/** @typedef {{moment: Marked, before: Marks, notice: AbortController}} Made what was marked, and how it was before */

/** What can be taken back, the last one at the end.
 * @type {Made[]} */
let made = [];
/** The marks as they were left here: others come from elsewhere, with another query, and nothing of before holds for them.
 * @type {Marked[]} */
let left = [];
currentSearch.onChange(({ query }) => {
  if (query.right === left) return;
  for (const { notice } of made) notice.abort();
  made = [];
});

/** Change the marks of a moment; those of others stay.
 * @param {Marked} moment @param {Marks} marks those that it has from now on. */
function put(moment, marks) {
  const others = (/** @type {Mark} */ mark) => [...currentSearch.value.query[mark].filter((other) => !isSame(other, moment)), ...marks[mark]];
  left = others("right");
  changeQuery({ right: left, wrong: others("wrong") });
}

/** @param {Made} step */
function undo(step) {
  if (!made.includes(step)) return;
  made = made.filter((other) => other !== step);
  step.notice.abort();
  put(step.moment, step.before);
}

/** Take the last mark back. */
export function undoMark() {
  const last = made.at(-1);
  if (last) undo(last);
}

/** The marked moments, with what can be done about them.
 * @returns {HTMLElement[]} */
export function markChips() {
  const { query } = currentSearch.value;
  const { right, wrong } = query;
  if (!right.length && !wrong.length) return [];
  const clear = () => changeQuery({ right: [], wrong: [] });
  const chip = h("span", { class: "chip" }, h("span", { class: "chip-name" }, marksIn(query)), iconButton("close", t("Without these marks"), clear));
  return right.length && libraryInfo.value?.writable ? [chip, teaching()] : [chip];
}

/** A field for the name under which the marks are kept; a button at first. */
function teaching() {
  const holder = h("span", { class: "teaching" });
  const name = h("input", { type: "text", dir: "auto", "aria-label": t("Name of the concept"), placeholder: t("our logo"), maxlength: "60", required: true });
  const form = h("form", {}, h("span", {}, t("teach this as")), name, h("button", { type: "submit", class: "quiet" }, icon("added"), t("teach")));
  const close = () => {
    const hasFocus = form.contains(document.activeElement);
    holder.replaceChildren(button);
    if (hasFocus) button.focus();
  };
  form.addEventListener("keydown", (event) => { if (event.key === "Escape" && !event.isComposing) close(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    api.teach(name.value.trim(), askedBy(currentSearch.value).query).then(
      (concept) => { close(); notify(t("@{name} stands for this from now on", { name: concept.name })); },
      (error) => { name.setCustomValidity(reasonOf(error)); name.reportValidity(); });
  });
  name.addEventListener("input", () => name.setCustomValidity(""));
  const button = h("button", { type: "button", class: "quiet", onclick: () => { holder.replaceChildren(form); name.focus(); } }, icon("add"), t("teach this as…"));
  holder.append(button);
  return holder;
}
