// Right and wrong: marks on the moments of an answer, from which the next answer learns; and keeping what they teach.

import * as api from "./api.js";
import { h, icon, iconButton } from "./dom.js";
import { t } from "./language.js";
import { notify } from "./notices.js";
import { currentSearch, libraryInfo, queryOf } from "./store.js";

/** @typedef {import("./store.js").Marked} Marked */
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
  if (currentSearch.value.right.some((other) => isSame(other, moment))) return "right";
  return currentSearch.value.wrong.some((other) => isSame(other, moment)) ? "wrong" : "";
}

/** Mark a moment, or take the same mark away.
 * @param {Marked} moment @param {Mark} mark */
export function setMark({ video_id, start, end }, mark) {
  const before = currentSearch.value;
  const moment = { video_id, start, end };
  const others = (/** @type {Marked[]} */ marked) => marked.filter((other) => !isSame(other, moment));
  const isOn = markOf(moment) === mark;
  const next = { right: others(before.right), wrong: others(before.wrong) };
  if (!isOn) next[mark] = [...next[mark], moment];
  currentSearch.value = { ...before, ...next };
  const { right, wrong } = before;
  undo = () => { currentSearch.value = { ...currentSearch.value, right, wrong }; };
  notify(isOn ? t("The mark is taken away") : (mark === "right" ? t("Marked as right: the answer goes by it") : t("Marked as wrong: the answer goes by it")), { label: t("Undo"), run: undoMark });
}

/** @type {(() => void) | null} */
let undo = null;

/** Take the last mark back. */
export function undoMark() {
  undo?.();
  undo = null;
}

/** What is marked, with what can be done about it.
 * @returns {HTMLElement[]} */
export function markChips() {
  const { right, wrong } = currentSearch.value;
  if (!right.length && !wrong.length) return [];
  const said = [right.length && t("{n} right", { n: right.length }), wrong.length && t("{n} wrong", { n: wrong.length })].filter(Boolean).join(", ");
  const clear = () => { currentSearch.value = { ...currentSearch.value, right: [], wrong: [] }; };
  const chip = h("span", { class: "chip" }, h("span", { class: "chip-name" }, said), iconButton("close", t("Without these marks"), clear));
  return right.length && libraryInfo.value?.writable ? [chip, teaching()] : [chip];
}

/** A field for the name under which the marks are kept; a button at first. */
function teaching() {
  const holder = h("span", { class: "teaching" });
  const name = h("input", { type: "text", "aria-label": t("Name of what these marks teach"), placeholder: t("our logo"), maxlength: "60", required: true });
  const form = h("form", {}, h("span", {}, t("teach this as")), name, h("button", { type: "submit", class: "quiet" }, icon("added"), t("teach")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    api.teach(name.value.trim(), queryOf(currentSearch.value)).then(
      (concept) => { holder.replaceChildren(button); notify(t("@{name} stands for this from now on", { name: concept.name })); },
      (error) => { name.setCustomValidity(error instanceof Error ? error.message : String(error)); name.reportValidity(); });
  });
  name.addEventListener("input", () => name.setCustomValidity(""));
  const button = h("button", { type: "button", class: "quiet", onclick: () => { holder.replaceChildren(form); name.focus(); } }, icon("add"), t("teach this as…"));
  holder.append(button);
  return holder;
}
