// One moment of an answer: its still, why it was found, what it stands for, what can be done with it.

import * as api from "../base/api.js";
import { BANDS, BAR } from "../base/bands.js";
import { textOf } from "../base/asked.js";
import { collect, isCollected } from "../collection/collecting.js";
import { fill, h, iconButton } from "../base/dom.js";
import { clock, marked, spanClock, spanWords, title, wordsWith } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { markOf, setMark } from "./marks.js";
import { openPlayer } from "../base/opening.js";
import { isSeen } from "../base/seen.js";
import { currentSearch } from "../base/store.js";
import { Still } from "../base/still.js";
import { titleSpan } from "../base/titles.js";
import { inThisVideo, withinButton } from "../base/within.js";

/** @typedef {import("../base/api.js").Moment} Moment */
/** @typedef {{moment: Moment, still: Still, opener: HTMLButtonElement, element: HTMLElement}} Card */
/** @typedef {{open: () => void, focus: () => void, like: () => void}} Does */

const EAGER = 8; // first cards whose stills are loaded at once

const LEAST_SHARE = 0.4; // of the best reason's score: weaker reasons are not named

/** Kinds of reasons that say nothing by themselves: a still shows what is seen, a title how a video is called. */
const PLAIN = ["seen", "named", "like"];

/** The reasons that count, and say more than the still and the title do.
 * @param {Moment} moment */
function tellingReasons({ why }) {
  const best = Math.max(0, ...why.map(({ score }) => score));
  return why.filter(({ kind, score, words }) => kind === "looked" || (score >= LEAST_SHARE * best && (words.length > 0 || !PLAIN.includes(kind))));
}

/** @type {Record<string, string>} */
const REASONS = { seen: t("seen"), said: t("said"), written: t("written"), heard: t("heard"), titled: t("titled"), named: t("named"), described: t("described"), like: t("alike"), looked: t("looked at") };

/** What a model says of a moment.
 * @type {Record<string, string>} */
const VERDICTS = { yes: t("yes"), partly: t("in part"), no: t("no") };

/** What a reason is called, with the words that match.
 * @param {{kind: string, words: string[]}} reason */
function reasonChip({ kind, words }) {
  if (kind === "looked") return verdictChip(words);
  return h("li", { class: "reason" }, REASONS[kind] ?? kind, words.length ? h("q", { dir: "auto" }, words.join(" ")) : null);
}

/** The verdict of a model, and why, in its own words.
 * @param {string[]} words */
const verdictChip = ([verdict = "", why = ""]) =>
  h("li", { class: "reason" }, `${REASONS.looked}: ${VERDICTS[verdict] ?? verdict}`, why ? h("q", { dir: "auto" }, why) : null);

/**
 * @param {Moment} moment
 * @param {number} index
 * @param {{words: Set<string>, videos: Iterable<string>, isNew: boolean}} about words that are looked for, ids of the
 *   videos that are shown beside it, and whether it came in since the search was opened before
 * @param {Does} does
 * @returns {Card}
 */
export function momentCard(moment, index, { words, videos, isNew }, does) {
  const steps = moment.steps.length > 1 ? moment.steps : [];
  const still = new Still(moment, { priority: index < EAGER, ...(steps[0] && { time: middle(steps[0]) }) });
  const opener = h("button", {
    type: "button", class: "opener", tabindex: "-1", "aria-keyshortcuts": "Enter Space c l + -", onclick: does.open,
  }, still.element, steps.slice(1, 3).map((step) => h("img", { class: "step", alt: "", loading: "lazy", src: api.url.still(moment, middle(step), 240) })));
  const element = h("li", { class: `moment${steps.length ? " steps" : ""}`, "data-video": moment.video_id, onfocusin: does.focus },
    h("div", { class: "frame" }, opener, h("div", { class: "tools" })),
    h("div", { class: "score", "aria-hidden": "true" }, scoreBar(moment.band)),
    h("div", { class: "caption" }, titleSpan(moment.video_id, videos), isNew ? h("span", { class: "number" }, t("just in")) : null,
      h("span", { class: "time" }, steps.length ? steps.map((step) => clock(step.start)).join(" → ") : spanClock(moment)),
      h("span", { class: "strength", "aria-hidden": "true" }, BANDS[moment.band])),
    reasons(moment),
    moment.snippet ? h("p", { class: "snippet", dir: "auto" }, marked(moment.snippet, wordsWith(words, moment))) : null);
  const card = { moment, still, opener, element };
  drawState(card, does);
  return card;
}

/** What changes after a card is drawn: marks, whether it was collected and seen.
 * @param {Card} card @param {Does} does */
export function drawState({ moment, opener, element }, does) {
  const [mark, seen] = [markOf(moment), isSeen(moment)];
  element.classList.toggle("seen", seen);
  element.classList.toggle("right", mark === "right");
  element.classList.toggle("wrong", mark === "wrong");
  const said = [title(moment.video_id), spanWords(moment), BANDS[moment.band], seen && t("seen before"), mark && (mark === "right" ? t("marked right") : t("marked wrong"))];
  opener.setAttribute("aria-label", said.filter(Boolean).join(", "));
  const tools = element.querySelector(".tools");
  if (tools) fill(tools, ...toolButtons(moment, mark, does));
}

/** @param {Moment} moment @param {string} mark @param {Does} does */
function toolButtons(moment, mark, does) {
  const inside = isCollected(moment);
  /** @param {import("../base/dom.js").IconName} name @param {string} label @param {boolean} on @param {string} kind @param {() => void} run */
  const button = (name, label, on, kind, run) => iconButton(name, label, run, { tabindex: "-1", "aria-pressed": String(on), class: `icon-button ${kind}${on ? " on" : ""}` });
  return [
    button("right", t("Right (+)"), mark === "right", "mark", () => setMark(moment, "right")),
    button("wrong", t("Wrong (-)"), mark === "wrong", "mark", () => setMark(moment, "wrong")),
    iconButton("like", t("More like this picture (l)"), does.like, { tabindex: "-1" }),
    withinButton(() => inThisVideo(moment.video_id), { tabindex: "-1" }),
    button("keep", inside ? t("In the collection; take it out (c)") : t("Into the collection (c)"), inside, "collect", () => collect(moment, textOf(currentSearch.value))),
  ];
}

/** Why it was found, and how many it stands for.
 * @param {Moment} moment */
function reasons(moment) {
  const inside = h("ul", { class: "folded", hidden: true });
  const toggle = h("button", {
    type: "button", class: "reason more-folded", "aria-expanded": "false", "aria-label": plural(moment.folded.length, "{n} more that overlaps", "{n} more that overlap"),
    onclick: () => {
      if (!inside.children.length) fill(inside, moment.folded.map((_, i) => foldedStill(moment, i)));
      inside.hidden = !inside.hidden;
      toggle.setAttribute("aria-expanded", String(!inside.hidden));
    },
  }, `+${moment.folded.length}`);
  const named = moment.why.some(({ kind }) => kind === "named");
  const chips = moment.source === "named" ? [h("li", { class: "reason" }, named ? t("in a video named so") : t("in a video described so"))] : tellingReasons(moment).map(reasonChip);
  if (moment.by_key_frames) chips.push(h("li", { class: "reason" }, t("by key frames")));
  if (!chips.length && !moment.folded.length) return null;
  return h("div", {}, h("ul", { class: "reasons" }, chips, moment.folded.length ? h("li", {}, toggle) : null), inside);
}

/** @param {Moment} moment @param {number} place */
function foldedStill(moment, place) {
  const spans = moment.folded.map((span) => ({ ...span, video_id: moment.video_id, version: moment.version }));
  const span = spans[place];
  if (!span) return null;
  const onclick = () => openPlayer(spans, place);
  return h("li", {}, h("button", { type: "button", class: "opener", onclick, "aria-label": spanWords(span) },
    h("img", { alt: "", src: api.url.still(span, middle(span), 160) }), h("span", { class: "time" }, spanClock(span))));
}

/** @param {{start: number, end: number}} span */
const middle = (span) => (span.start + span.end) / 2;

/** @param {import("../base/api.js").Band} band */
function scoreBar(band) {
  const bar = h("span");
  bar.style.setProperty("--score", String(BAR[band]));
  return bar;
}
