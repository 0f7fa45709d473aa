// The answer: a grid of moments, or rows by video.

import * as api from "./api.js";
import { collect, isCollected, collection } from "./collecting.js";
import { byId, fill, h, iconButton } from "./dom.js";
import { filterChips } from "./filters.js";
import { clock, count, marked, spanClock, title } from "./format.js";
import { on } from "./keyboard.js";
import { opened, openPlayer } from "./opening.js";
import { alsoLike, moreLike } from "./query.js";
import { isSeen } from "./seen.js";
import { Still } from "./still.js";
import { Observable, asked, isEmpty, layout, libraryInfo, queryOf, showWeak, view, wordsOf } from "./store.js";
import { drawWelcome } from "./welcome.js";

/** @typedef {import("./api.js").Moment} Moment */
/** @typedef {import("./api.js").Answer} Answer */

const TYPING = 140; // ms without a key before a search starts
const STALE = 120; // ms after which the answer before is dimmed
const SLOW = 600; // ms after which it is said that there is none yet
const PAGE = 24;
const ROWS = 10;

const results = byId("results", HTMLDivElement);
const status = byId("status", HTMLParagraphElement);
const failure = byId("failure", HTMLDivElement);

/** What is shown; null before there was a search.
 * @type {Observable<Answer | null>} */
export const answer = new Observable(/** @type {Answer | null} */ (null));

let topK = PAGE;
let timer = 0;
let running = new AbortController();
/** Cards in the order of the arrows.
 * @type {{moment: Moment, still: Still, opener: HTMLButtonElement, element: HTMLElement}[]} */
let cards = [];
let current = 0;

/** Search soon: what is typed meanwhile counts.
 * @param {number} [wait] */
function searchSoon(wait = TYPING) {
  clearTimeout(timer);
  timer = window.setTimeout(() => void search(), wait);
}

async function search() {
  running.abort();
  const mine = (running = new AbortController());
  if (isEmpty(asked.value)) return showNothing();
  results.setAttribute("aria-busy", "true");
  const late = setTimeout(() => results.classList.add("stale"), STALE);
  const slow = setTimeout(() => fill(status, h("span", { class: "took" }, "Searching…")), SLOW);
  try {
    const found = await api.search(request(), mine.signal);
    fill(failure);
    answer.value = found;
  } catch (error) {
    if (mine.signal.aborted) return;
    if (error instanceof api.Unreachable) return;
    showFailure(error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(late);
    clearTimeout(slow);
    if (mine === running) {
      results.classList.remove("stale");
      results.removeAttribute("aria-busy");
    }
  }
}

/** @returns {import("./api.js").SearchRequest} */
function request() {
  const { filter, videos, by, refine, minScore } = asked.value;
  const rows = layout.value.layout === "rows";
  const most = libraryInfo.value?.limits?.top_k ?? 100;
  const { perRow } = layout.value;
  return {
    query: queryOf(asked.value), filter, by, refine, min_score: minScore,
    top_k: Math.min(rows ? perRow * ROWS * (topK / PAGE) : topK, most),
    ...(rows && { per_video: perRow }), ...(videos.length && { videos }),
  };
}

function showNothing() {
  fill(failure);
  results.classList.remove("stale");
  answer.value = null;
}

/** @param {string} message */
function showFailure(message) {
  fill(failure, h("div", { class: "failure" }, h("strong", {}, "This cannot be searched"), h("p", {}, message)));
  answer.value = null;
}

function draw() {
  const found = answer.value;
  const focused = results.contains(document.activeElement);
  cards.forEach((card) => card.still.reset());
  cards = [];
  results.className = "";
  if (!found) {
    status.replaceChildren(...filterChips(asked.value));
    fill(results, failure.hasChildNodes() || !isEmpty(asked.value) ? null : drawWelcome());
    return;
  }
  const shown = visible(found);
  drawStatus(found, shown);
  if (!found.moments.length) fill(results, nothingFound());
  else if (!shown.length) fill(results, unsure(found));
  else fill(results, layout.value.layout === "rows" ? rows(shown) : grid(shown, 0), weaker(found), more(found));
  current = Math.min(current, Math.max(cards.length - 1, 0));
  cards[current]?.opener.setAttribute("tabindex", "0");
  if (focused) cards[current]?.opener.focus();
}

/** The moments that are shown: strong ones, and weak ones where they are wanted.
 * @param {Answer} found */
const visible = (found) => found.moments.filter((moment) => moment.strong || showWeak.value);

/** @param {Answer} found @param {Moment[]} shown */
function drawStatus(found, shown) {
  const seconds = (found.timings.total ?? 0) / 1000;
  const said = shown.length && !found.confident ? `The nearest ${count(shown.length, "moment")}` : count(shown.length, "moment");
  const videos = new Set(shown.map((moment) => moment.video_id)).size;
  const where = shown.length ? ` in ${count(videos, "video")}` : "";
  fill(status, h("span", { class: "said" }, `${said}${where}`),
    h("span", { class: "took" }, `${seconds.toFixed(seconds < 0.1 ? 3 : 2)} s`), filterChips(asked.value));
}

/** @param {string} words */
const weakButton = (words) => h("button", {
  type: "button", class: "plain", "aria-keyshortcuts": "w", onclick: () => { showWeak.value = true; },
}, words);

/** @param {Answer} found */
function unsure(found) {
  return h("div", { class: "empty" }, h("h2", {}, "No strong match"),
    h("p", {}, "Nothing in this library stands out for what you ask. It may be called otherwise, or not be there."),
    weakButton("Show the nearest moments"));
}

/** @param {Answer} found */
function weaker(found) {
  const left = found.moments.length - visible(found).length;
  return left ? h("div", { class: "more" }, weakButton(left === 1 ? "1 weaker one" : `${left} weaker ones`)) : null;
}

function nothingFound() {
  return h("div", { class: "empty" }, h("h2", {}, "No moment found"),
    h("p", {}, "The filters, or what must not be there, leave nothing over."));
}

/** @param {Answer} found */
function more(found) {
  const most = libraryInfo.value?.limits?.top_k ?? 100;
  const wanted = request().top_k;
  if (found.moments.length < wanted || wanted >= most) return null;
  const onclick = () => { topK *= 2; searchSoon(0); };
  return h("div", { class: "more" }, h("button", { type: "button", class: "plain", onclick }, "More moments"));
}

/** @param {Moment[]} moments @param {number} first rank of the first in the order of the arrows */
function grid(moments, first) {
  const words = wordsOf(asked.value);
  return h("ul", { class: "grid" }, moments.map((moment, i) => card(moment, first + i, words)));
}

/** @param {Moment[]} moments */
function rows(moments) {
  /** @type {Map<string, Moment[]>} */
  const byVideo = new Map();
  for (const moment of moments) byVideo.set(moment.video_id, [...(byVideo.get(moment.video_id) ?? []), moment]);
  let first = 0;
  return h("div", { class: "rows" }, [...byVideo].map(([video, own]) => {
    const inOrder = own.toSorted((a, b) => a.start - b.start);
    const list = grid(inOrder, first);
    list.style.setProperty("--per-row", String(layout.value.perRow));
    first += own.length;
    const only = h("button", { type: "button", class: "quiet", onclick: () => { asked.value = { ...asked.value, videos: [video] }; } }, "only this video");
    return h("section", { "aria-label": title(video) }, h("h2", { title: video }, title(video),
      h("span", { class: "muted" }, count(own.length, "moment")), only), list);
  }));
}

/** @param {Moment} moment @param {number} index @param {Set<string>} words */
function card(moment, index, words) {
  const steps = moment.steps.length > 1 ? moment.steps : [];
  const still = new Still(moment, { priority: index < 8, ...(steps[0] && { time: middle(steps[0]) }) });
  const percent = Math.round(moment.score * 100);
  const name = `${title(moment.video_id)}, ${clock(moment.start)} to ${clock(moment.end)}, score ${percent} %`;
  const opener = h("button", {
    type: "button", class: "opener", tabindex: "-1", "aria-label": isSeen(moment) ? `${name}, seen` : name,
    "aria-keyshortcuts": "Enter Space c l", onclick: () => open(index), onfocus: () => focusOn(index),
  }, still.element, steps.slice(1, 3).map((step) => h("img", { class: "step", alt: "", loading: "lazy", src: api.url.still(moment, middle(step), 240) })));
  const tools = h("div", { class: "tools" },
    iconButton("like", "More like this picture (l)", () => like(index), { tabindex: "-1" }), collectButton(moment));
  const source = moment.snippet_kind === "text" ? "written" : "said";
  const element = h("li", { class: `moment${isSeen(moment) ? " seen" : ""}${steps.length ? " steps" : ""}` },
    h("div", { class: "frame" }, opener, tools),
    h("div", { class: "score", "aria-hidden": "true" }, scoreBar(moment.score)),
    h("div", { class: "caption" }, h("span", { class: "title", title: moment.video_id }, title(moment.video_id)),
      h("span", { class: "time" }, steps.length ? steps.map((step) => clock(step.start)).join(" → ") : spanClock(moment)),
      h("span", { class: "percent", "aria-hidden": "true" }, percent)),
    moment.snippet ? h("p", { class: "snippet" }, h("span", { class: "source" }, source), marked(moment.snippet, words)) : null);
  cards[index] = { moment, still, opener, element };
  return element;
}

/** @param {{start: number, end: number}} span */
const middle = (span) => (span.start + span.end) / 2;

/** @param {number} score */
function scoreBar(score) {
  const bar = h("span");
  bar.style.setProperty("--score", String(score));
  return bar;
}

/** @param {Moment} moment */
function collectButton(moment) {
  const inside = isCollected(moment);
  const label = inside ? "In the collection; take it out (c)" : "Into the collection (c)";
  return iconButton(inside ? "added" : "add", label, () => collect(moment, asked.value.text), { tabindex: "-1", class: `icon-button collect${inside ? " on" : ""}` });
}

/** @param {number} index */
function open(index) {
  cards[index]?.still.reset();
  openPlayer(cards.map((card) => card.moment), index);
}

/** @param {number} index */
function like(index) {
  const card = cards[index];
  if (card) moreLike({ kind: "moment", video_id: card.moment.video_id, time: card.still.time });
}

/** One still can be reached by the tab key, the arrows lead on from it.
 * @param {number} index */
function focusOn(index) {
  if (current !== index) cards[current]?.still.reset();
  cards[current]?.opener.setAttribute("tabindex", "-1");
  current = index;
  cards[current]?.opener.setAttribute("tabindex", "0");
}

/** @param {number} index */
function goTo(index) {
  const card = cards[Math.min(Math.max(index, 0), cards.length - 1)];
  card?.opener.focus();
  card?.element.scrollIntoView({ block: "nearest" });
}

/** The nearest card in the next line up or down, by where it stands.
 * @param {1 | -1} direction */
function line(direction) {
  const here = cards[current]?.element.getBoundingClientRect();
  if (!here) return;
  const others = cards
    .map((card, index) => ({ index, box: card.element.getBoundingClientRect() }))
    .filter(({ box }) => (direction > 0 ? box.top > here.top + 8 : box.top < here.top - 8))
    .sort((a, b) => direction * (a.box.top - b.box.top) || Math.abs(a.box.left - here.left) - Math.abs(b.box.left - here.left));
  const nearest = others[0];
  if (!nearest) return direction < 0 ? byId("words", HTMLInputElement).focus() : undefined;
  const inLine = others.filter(({ box }) => Math.abs(box.top - nearest.box.top) < 8);
  inLine.sort((a, b) => Math.abs(a.box.left - here.left) - Math.abs(b.box.left - here.left));
  goTo(inLine[0]?.index ?? nearest.index);
}

export function focusResults() {
  if (cards.length) goTo(current);
  else results.focus();
}

/** Marks of what was seen and collected, without drawing all anew. */
function drawMarks() {
  for (const { moment, element } of cards) {
    element.classList.toggle("seen", isSeen(moment));
    element.querySelector(".collect")?.replaceWith(collectButton(moment));
  }
}

function layoutSwitch() {
  const { layout: shape, perRow } = layout.value;
  /** @param {"grid" | "rows"} name @param {string} label */
  const choice = (name, label) => iconButton(name, label, () => { layout.value = { ...layout.value, layout: name }; }, { "aria-pressed": String(shape === name) });
  const select = h("select", { "aria-label": "Moments a row", onchange: () => { layout.value = { ...layout.value, perRow: Number(select.value) }; } },
    [3, 4, 6, 8, 12].map((n) => h("option", { value: n, selected: n === perRow }, `${n} a row`)));
  fill(byId("layout", HTMLDivElement), shape === "rows" ? select : null, choice("grid", "As a grid"), choice("rows", "As rows by video"));
}

function listenForKeys() {
  on("results", {
    left: () => goTo(current - 1), right: () => goTo(current + 1), up: () => line(-1), down: () => line(1),
    first: () => goTo(0), last: () => goTo(cards.length - 1),
    preview: () => cards[current]?.still.toggle(),
    scrubBack: () => cards[current]?.still.scrub(-1), scrubOn: () => cards[current]?.still.scrub(1),
    collect: () => { const card = cards[current]; if (card) collect(card.moment, asked.value.text); },
    like: () => like(current),
    alsoLike: () => { const card = cards[current]; if (card) alsoLike({ kind: "moment", video_id: card.moment.video_id, time: card.still.time }); },
  });
  on("anywhere", { weak: () => { showWeak.value = true; }, layout: () => { layout.value = { ...layout.value, layout: layout.value.layout === "grid" ? "rows" : "grid" }; } });
}

export function startResults() {
  asked.onChange((search, before) => {
    topK = PAGE;
    current = 0;
    if (JSON.stringify(queryOf(search)) !== JSON.stringify(queryOf(before))) showWeak.value = false;
    if (isEmpty(search) && !isEmpty(before)) searchSoon(0);
    else if (!isEmpty(search)) searchSoon();
    else draw();
  });
  answer.onChange(draw);
  showWeak.onChange((value) => { if (value) draw(); });
  layout.onChange(() => { layoutSwitch(); searchSoon(0); });
  collection.onChange(drawMarks);
  opened.onChange((now, before) => { drawMarks(); if (!now && before && view.value === "search") goTo(before.index); });
  api.connection.addEventListener("up", () => searchSoon(0));
  layoutSwitch();
  listenForKeys();
  draw();
}
