// Judging: one query, one moment at a time, the levels with their guideline beside it.

import { ApiError, Unreachable, connection } from "../base/api.js";
import { byId, fill, h, icon } from "../base/dom.js";
import { reasonOf } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { Screen } from "./screen.js";
import { answer, info, nextBatch, parts, rater, undo } from "./task.js";

/** @typedef {import("./task.js").Moment} Moment */

const CHOSEN = 220; // ms for which a level is seen to be chosen before the next moment comes

const view = byId("judge-view", HTMLElement);
const said = byId("said", HTMLDivElement);
const screen = new Screen();

/** @type {import("./task.js").Batch | null} */
let batch = null;
/** Place of the moment that is shown; the length of the batch behind its last. */
let at = 0;
let saving = false;
/** @type {Moment[]} in the order in which they were answered */
let answered = [];

const isDone = (/** @type {Moment} */ moment) => moment.level !== null || moment.passed;
const moments = () => batch?.moments ?? [];
const current = () => moments()[at];

/** Ask for a batch and show its first open moment. */
export async function startBatch() {
  const next = await nextBatch();
  batch = next.batch;
  answered = moments().filter(isDone);
  at = Math.max(moments().findIndex((moment) => !isDone(moment)), 0);
  if (batch) draw();
  else drawNothingLeft(next.open);
}

/** Leave the screen when another view is shown. */
export function stopJudging() {
  batch = null;
  screen.close();
}

// ---- drawing ---------------------------------------------------------------------------------------------

function draw() {
  const moment = current();
  if (!batch) return;
  if (!moment) return drawBatchDone();
  const open = moments().find((other, place) => place > at && !isDone(other));
  if (!view.querySelector(".judging")) {
    fill(view, h("div", { class: "judging" }, h("div", { class: "asked" }), screen.element, h("div", { class: "levels", role: "group", "aria-label": t("Level of relevance") }), h("div", { class: "under" }, screen.tools, h("div", { class: "judging-foot" }))));
  }
  drawAsked();
  drawLevels(moment);
  drawFoot(moment);
  screen.show(moment, open);
  said.textContent = isDone(moment)
    ? t("Moment {n} of {all}, judged: {level}", { n: at + 1, all: moments().length, level: moment.level ?? t("skipped") })
    : t("Moment {n} of {all}", { n: at + 1, all: moments().length });
}

/** @param {string} name @returns {Element} */
function part(name) {
  const found = view.querySelector(`.${name}`);
  if (!found) throw new Error(`the judging view has no ${name}`);
  return found;
}

function drawAsked() {
  const done = moments().filter(isDone).length;
  fill(part("asked"),
    h("p", { class: "asked-label muted" }, t("How well does the moment match?")),
    h("h2", { class: "asked-query" }, batch?.query),
    h("div", { class: "ticks", role: "img", "aria-label": t("{done} of {all} of this batch are judged", { done, all: moments().length }) },
      moments().map((moment, place) => h("span", { class: `tick${isDone(moment) ? " done" : ""}${place === at ? " now" : ""}` }))),
    h("p", { class: "asked-count figure" }, h("strong", {}, at + 1), h("span", { class: "muted" }," ", t("of {n}", { n: moments().length }))));
}

/** @param {Moment} moment */
function drawLevels(moment) {
  const levels = info.value?.levels ?? [];
  fill(part("levels"), levels.map(({ level, meaning }) => {
    const [word, rest] = parts(meaning);
    return h("button", { type: "button", class: "level", "aria-pressed": String(moment.level === level), "aria-keyshortcuts": String(level), onclick: () => void judge(level) },
      h("kbd", {}, level), h("span", { class: "level-text" }, h("strong", {}, word), " ", h("span", {}, rest)));
  }));
}

/** @param {Moment} moment */
function drawFoot(moment) {
  const last = answered.at(-1);
  /** @param {string} label @param {string} key @param {import("../base/dom.js").IconName} name @param {() => void} run @param {boolean} [disabled] */
  const button = (label, key, name, run, disabled = false) =>
    h("button", { type: "button", class: "quiet", onclick: run, disabled, "aria-keyshortcuts": key }, icon(name), h("span", { class: "label" }, label), h("kbd", {}, NAMES[key] ?? key.toUpperCase()));
  fill(part("judging-foot"),
    button(t("Back"), "ArrowLeft", "previous", back, at === 0),
    button(t("On"), "ArrowRight", "next", on, !isDone(moment)),
    button(moment.passed ? t("Skipped") : t("Skip"), "s", "close", () => void judge(null)),
    button(t("Undo the last answer"), "u", "remove", () => void takeBack(), !last));
}

function drawBatchDone() {
  screen.close();
  const left = moments().filter((moment) => !isDone(moment)).length;
  const judged = moments().filter((moment) => moment.level !== null).length;
  const go = left ? h("button", { type: "button", class: "main", onclick: toFirstOpen }, t("To the moments that are left"), h("kbd", {}, "Enter"))
    : h("button", { type: "button", class: "main", onclick: () => void guarded(startBatch) }, t("Next batch"), h("kbd", {}, "Enter"));
  fill(view, h("div", { class: "empty" },
    h("h2", { tabindex: "-1" }, left ? plural(left, "{n} moment of this batch is left", "{n} moments of this batch are left") : t("This batch is done")),
    h("p", {}, plural(judged, "{n} moment judged for “{query}”.", "{n} moments judged for “{query}”.", { query: batch?.query ?? "" })),
    go,
    h("button", { type: "button", class: "quiet", onclick: back }, icon("previous"), t("Back, to change something"), h("kbd", {}, NAMES.ArrowLeft))));
  view.querySelector("h2")?.focus();
}

/** @param {number} open */
function drawNothingLeft(open) {
  screen.close();
  const waits = open > 0;
  fill(view, h("div", { class: "empty" },
    h("h2", { tabindex: "-1" }, waits ? t("Nothing left for you") : t("Everything is judged")),
    h("p", {}, waits ? plural(open, "{n} moment still needs other raters. Where two differ by more than one level, two more are asked.", "{n} moments still need other raters. Where two differ by more than one level, two more are asked.")
      : t("Every moment has its level, or has none that raters agree on.")),
    h("a", { class: "main", href: "#/progress" }, waits ? t("See the progress of all") : t("Progress and exports")),
    waits && h("button", { type: "button", class: "quiet", onclick: () => void guarded(startBatch) }, icon("loop"), t("Look again"), h("kbd", {}, "Enter"))));
  view.querySelector("h2")?.focus();
}

// ---- doing -----------------------------------------------------------------------------------------------

/** Run what asks the server, again when it is back where it is away; what it refuses is said.
 * @param {() => Promise<void>} run */
async function guarded(run) {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Unreachable)) return notify(reasonOf(error));
      notify(t("Not saved yet: the server does not answer"));
      await new Promise((resolve) => connection.addEventListener("up", resolve, { once: true }));
    }
  }
}

/** @param {number | null} level null passes the moment over. */
async function judge(level) {
  const moment = current();
  if (!moment || saving) return;
  saving = true;
  await guarded(async () => {
    try {
      await answer(moment.pair_id, level);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "unavailable") throw error;
      notify(t("Others have judged this moment meanwhile"));
      batch?.moments.splice(at, 1);
      draw();
      return;
    }
    moment.level = level;
    moment.passed = level === null;
    answered = [...answered.filter((other) => other !== moment), moment];
    drawLevels(moment);
    if (level !== null) await new Promise((resolve) => setTimeout(resolve, CHOSEN));
    if (current() === moment) on();
  });
  saving = false;
}

async function takeBack() {
  const moment = answered.at(-1);
  if (!moment || saving) return;
  await guarded(async () => {
    await undo(moment.pair_id);
    moment.level = null;
    moment.passed = false;
    answered.pop();
    at = moments().indexOf(moment);
    draw();
  });
}

function back() {
  at = Math.max(at - 1, 0);
  draw();
}

function on() {
  const moment = current();
  if (moment && isDone(moment)) at += 1;
  draw();
}

function toFirstOpen() {
  at = moments().findIndex((moment) => !isDone(moment));
  draw();
}

// ---- keys ------------------------------------------------------------------------------------------------

const NAMES = /** @type {Record<string, string>} */ ({ ArrowLeft: "←", ArrowRight: "→" });

/** @type {Record<string, () => void>} */
const KEYS = {
  ArrowLeft: back, Backspace: back, ArrowRight: on, s: () => void judge(null), u: () => void takeBack(),
  " ": () => screen.toggle(), r: () => screen.again(), m: () => screen.mute(),
};

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (view.hidden || !rater.value || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target instanceof HTMLElement ? event.target : document.body;
  if (target.matches("input, select, textarea")) return;
  if (target.matches("button, a") && (event.key === " " || event.key === "Enter")) return;
  const levels = (info.value?.levels ?? []).map(({ level }) => String(level));
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const first = view.querySelector(".empty button");
  const run = levels.includes(key) && current() ? () => void judge(Number(key))
    : key === "Enter" && first instanceof HTMLElement ? () => first.click()
    : KEYS[key];
  if (!run || !batch && key !== "Enter") return;
  event.preventDefault();
  if (!event.repeat || key.startsWith("Arrow")) run();
}

export function startKeys() {
  document.addEventListener("keydown", onKey);
}
