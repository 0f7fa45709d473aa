// The answer: a grid of moments, or rows by video.

import * as api from "../base/api.js";
import { askedBy, isEmpty, isText, parametersOf, textOf, wordsOf } from "../base/asked.js";
import { drawState, momentCard } from "./card.js";
import { collect, collection } from "../collection/collecting.js";
import { byId, fill, h, iconButton, refill, setState } from "../base/dom.js";
import { activeFilters, filterChips, problemField, sayWhatIsLeft } from "./filters.js";
import { number, title } from "../base/format.js";
import { grow } from "../base/growing.js";
import { on } from "../base/keyboard.js";
import { languageName, plural, quoted, t } from "../base/language.js";
import { opened, openPlayer } from "../base/opening.js";
import { lookButton, lookNote } from "./looking.js";
import { markChips, setMark, undoMark } from "./marks.js";
import { alsoLike, moreLike } from "./query.js";
import { saveButton } from "./saved.js";
import { Observable, changeQuery, changeSearch, currentSearch, layout, libraryInfo, newIn, showWeak, view } from "../base/store.js";
import { drawWelcome, noVideos } from "./welcome.js";

/** @typedef {import("../base/api.js").Moment} Moment */
/** @typedef {import("../base/api.js").Answer} Answer */

const TYPING = 140; // ms without a key before a search starts
const STALE = 120; // ms after which the answer before is dimmed
const BUSY = 1500; // ms until a busy server is asked again
const SLOW = 600; // ms after which it is said that there is none yet
const NAMING = /(^|\s)@[\p{L}\p{N}-]*$/u;
const PAGE = 24;
const ROWS = 10;

const results = byId("results", HTMLDivElement);
const status = byId("status", HTMLParagraphElement);
const failure = byId("failure", HTMLDivElement);

/** The answer that is shown; null before there was a search. */
export const answer = new Observable(/** @type {Answer | null} */ (null));

let topK = PAGE;
let timer = 0;
let running = new AbortController();
/** Cards in the order of the arrows.
 * @type {import("./card.js").Card[]} */
let cards = [];
let current = 0;

/** Search soon: what is typed meanwhile counts; where no field has the focus, as when a link was opened, nothing is.
 * @param {number} [wait] */
function searchSoon(wait = document.activeElement?.matches("input, textarea") ? TYPING : 0) {
  results.setAttribute("aria-busy", "true");
  clearTimeout(timer);
  timer = window.setTimeout(() => void search(), wait);
}

/** @param {number} [check] number of moments that a model is to look at, this time */
async function search(check) {
  clearTimeout(timer);
  running.abort();
  const mine = (running = new AbortController());
  if (isEmpty(currentSearch.value)) return showNothing();
  const late = setTimeout(() => results.classList.add("stale"), STALE);
  const slow = setTimeout(() => refill(status, h("span", { class: "took" }, check ? t("The model is looking…") : t("Searching…")), filterChips(currentSearch.value), markChips()), SLOW);
  try {
    const found = await api.search({ ...request(), ...(check && { check }) }, mine.signal);
    showProblem(null);
    answer.value = found;
  } catch (error) {
    if (mine.signal.aborted) return;
    clearTimeout(slow);
    drawStatus();
    if (error instanceof api.Unreachable) return;
    const offered = document.querySelector("#words[aria-expanded=true]");
    if (offered && NAMING.test(textOf(currentSearch.value))) return; // a name that is still being typed
    showProblem(error instanceof Error ? error : new Error(String(error)));
  } finally {
    clearTimeout(late);
    clearTimeout(slow);
    if (mine === running) {
      results.classList.remove("stale");
      results.removeAttribute("aria-busy");
    }
  }
}

/** How many moments the server gives at most. */
const mostMoments = () => libraryInfo.value?.limits?.top_k ?? 100;

/** What the server is asked: the question, for as many moments as are shown. */
function request() {
  const rows = layout.value.layout === "rows";
  const { perRow } = layout.value;
  return {
    ...askedBy(currentSearch.value), ...(rows && { per_video: perRow }),
    top_k: Math.min(rows ? perRow * ROWS * (topK / PAGE) : topK, mostMoments()),
  };
}

function showNothing() {
  showProblem(null);
  results.classList.remove("stale");
  results.removeAttribute("aria-busy");
  answer.value = null;
}

/** Say what is wrong, at the field that it is about; the answer before stays.
 * @param {Error | null} error */
function showProblem(error) {
  const field = error instanceof api.ApiError ? error.field : "";
  fill(failure, error && h("p", { class: "problem" }, error.message));
  problemField.value = field;
  setState(byId("words", HTMLInputElement), "aria-invalid", field.startsWith("query"));
  if (error instanceof api.ApiError && error.code === "busy") searchSoon(BUSY);
  if (error && !answer.value) drawResults();
}

/** The moments as they are shown, for the player to go through. */
export const shownMoments = () => cards.map((card) => card.moment);

export function drawResults() {
  const found = answer.value;
  const focused = results.contains(document.activeElement);
  const pressed = document.activeElement?.closest("#results :is(.more, .empty) button"); // for more moments, or weaker ones
  const before = new Set(cards.map(nameOf));
  cards.forEach((card) => card.still.reset());
  cards = [];
  results.className = "";
  drawStatus();
  if (!found) {
    fill(results, failure.hasChildNodes() || !isEmpty(currentSearch.value) ? null : drawWelcome());
    return;
  }
  const shown = visible(found);
  if (!found.moments.length) fill(results, notesOf(found), nothingFound());
  else if (!shown.length) fill(results, notesOf(found), unsure());
  else fill(results, notesOf(found), layout.value.layout === "rows" ? [rows(shown), weakButtonFor(found)] : byStrength(found), more(found));
  current = Math.min(current, Math.max(cards.length - 1, 0));
  cards[current]?.opener.setAttribute("tabindex", "0");
  if (pressed) focusNew(before);
  else if (focused) cards[current]?.opener.focus();
}

/** @param {import("./card.js").Card} card */
const nameOf = ({ moment }) => `${moment.video_id}@${moment.start}`;

/** On with the first moment that was not there before, if any, without leaving the place where the button was.
 * @param {Set<string>} before */
function focusNew(before) {
  const added = cards.find((card) => !before.has(nameOf(card)));
  const button = results.querySelector(/** @type {"button"} */ (":is(.more, .empty) button"));
  (added?.opener ?? button ?? cards[current]?.opener)?.focus({ preventScroll: true });
}

/** The moments that are shown: strong and possible ones, and weak ones where they are wanted.
 * @param {Answer} found */
const visible = (found) => found.moments.filter((moment) => moment.band !== "weak" || showWeak.value);

/** Whether a moment is of a video that came in after the saved search had been opened before.
 * @param {Moment} moment */
const isNew = (moment) => moment.number > newIn.value.since && newIn.value.asked === String(parametersOf(currentSearch.value));

/** The moments of a band, new ones first.
 * @param {Answer} found @param {import("../base/api.js").Band} band */
function ofBand(found, band) {
  const own = found.moments.filter((moment) => moment.band === band);
  return [...own.filter(isNew), ...own.filter((moment) => !isNew(moment))];
}

/** How much was found, and how sure that is.
 * @param {Answer} found @param {Moment[]} shown */
function howSure(found, shown) {
  const possible = ofBand(found, "possible").length;
  if (!found.confident && possible) return plural(possible, "Nothing certain; {n} possible", "Nothing certain; {n} possible");
  if (shown.length && !found.confident) return plural(shown.length, "The nearest moment", "The nearest {n} moments");
  return plural(shown.length, "{n} moment", "{n} moments");
}

/** How much was found, how fast, and what narrows it. */
function drawStatus() {
  const found = answer.value;
  sayWhatIsLeft(found ? howSure(found, visible(found)) : "");
  if (!found) return refill(status, filterChips(currentSearch.value), markChips());
  const shown = visible(found);
  const seconds = (found.timings.total ?? 0) / 1000;
  const said = howSure(found, shown);
  const videos = new Set(shown.map((moment) => moment.video_id)).size;
  const where = shown.length ? ` ${plural(videos, "in {n} video", "in {n} videos")}` : "";
  refill(status, h("span", { class: "said" }, `${said}${where}`),
    h("span", { class: "took" }, `${number(seconds, seconds < 0.1 ? 3 : 2)} s`), filterChips(currentSearch.value), markChips(), saveButton(), lookButton(found, (count) => void search(count)));
}

/** @param {string} words */
const weakButton = (words) => h("button", {
  type: "button", class: "plain", "aria-keyshortcuts": "w", "aria-expanded": String(showWeak.value),
  onclick: () => { showWeak.value = !showWeak.value; },
}, words);

function unsure() {
  return h("div", { class: "empty" }, h("h2", {}, t("Nothing matches")), h("p", {}, nothingStandsOut()),
    weakButton(t("Show the nearest moments")));
}

const nothingStandsOut = () => t("Nothing in this library clearly matches. Try other words; it may not be there.");

/** The strong moments, below a line the possible ones, then a button with the number of weak ones, then these where
 * they are wanted.
 * @param {Answer} found */
function byStrength(found) {
  const [strong, possible, weak] = [ofBand(found, "strong"), ofBand(found, "possible"), ofBand(found, "weak")];
  const line = plural(possible.length, "{n} possible", "{n} possible");
  return [
    strong.length ? grid(strong, 0) : null,
    strong.length && possible.length ? h("h2", { class: "band" }, line) : null,
    possible.length ? grid(possible, strong.length) : null,
    weakButtonFor(found), showWeak.value && weak.length ? grid(weak, strong.length + possible.length) : null,
  ];
}

/** Notes on the answer, in the words of the page.
 * @param {Answer} found */
function notesOf(found) {
  if (!found.notes.length) return null;
  return h("ul", { class: "notes" }, found.notes.map((note) => h("li", {}, noteText(note),
    note.kind === "without" || note.kind === "only without"
      ? h("button", { type: "button", class: "plain", "aria-keyshortcuts": '"', onclick: literally }, t("Take the words as they are")) : null)));
}

/** @param {import("../base/api.js").Note} note */
function noteText({ kind, about, others, remedy }) {
  const words = others.map(quoted).join(", ");
  switch (kind) {
    case "without": return t("Read as “{about}” without {words}.", { about, words });
    case "only without": return t("“{about}” says only what is not wanted, so pictures are not searched for it.", { about });
    case "unknown word": return unknownNote(about, words, remedy);
    case "language": return languageNote(about, others, remedy);
    case "date": return t("“{about}” is searched for as words; the filter “When it was taken” finds what was filmed then.", { about });
    case "place": return t("If “{about}” is a place: the filter “Place” finds what was filmed there.", { about });
    case "looked": case "not looked": case "words alone": return lookNote(kind, about, others);
    case "no concept": return t("No concept is called {about}; it is searched for as a word.", { about });
    case "in part": return partNote(about, others);
    case "by key frames": return t("{n} of {all} videos are known by key frames alone so far: their moments begin and end only as exactly as these lie, and words in them are not searched yet.", { n: about, all: others[0] ?? "" });
    case "by both": return bothNote(about, others);
    default: return t("Scores of {about} were not measured: how likely a moment is right is a cautious guess.", { about });
  }
}

/** A word that nothing holds: what is spelt alike, or what helps if it is of another language.
 * @param {string} about @param {string} words @param {string} command */
function unknownNote(about, words, command) {
  if (words) return t("No “{about}” here. Perhaps {words}?", { about, words });
  const none = t("No “{about}” here.", { about });
  return command ? `${none} ${t("If it is not English: {command}", { command })}` : none;
}

/** How much of a film is in: minutes, and of how many, where that is known.
 * @param {string} about @param {string[]} minutes @returns {string} */
function partNote(about, [n = "", all = ""]) {
  if (!all) return t("{about}: {n} minutes are in; the rest is not searched yet.", { about, n });
  return t("{about}: {n} of {all} minutes are in; the rest is not searched yet.", { about, n, all });
}

/** Which encoders answer while the library changes from one to another.
 * @param {string} about @param {string[]} videos @returns {string} */
const bothNote = (about, [n = "", all = ""]) => t("{n} of {all} videos are answered by {about}, to which the library is being changed, the others by the encoder before.", { n, all, about });

/** In which language a query was read, and what does not know it.
 * @param {string} tag @param {string[]} encoders @param {string} command */
function languageNote(tag, encoders, command) {
  const read = tag ? t("Read as {language}.", { language: languageName(tag) }) : t("Not read as English.");
  if (!encoders.length) return read;
  const what = t("Matches by picture or meaning may be missed, since {encoders} cannot read it.", { encoders: encoders.join(", ") });
  return `${read} ${what} ${t("For many languages: {command}", { command })}`;
}

/** Search for the words as they are: "no" and "without" exclude nothing in quotation marks. */
function literally() {
  const { terms } = currentSearch.value.query;
  const words = terms.find(isText);
  const text = words?.text.trim() ?? "";
  if (text && !/^".*"$/.test(text)) changeQuery({ terms: terms.map((term) => (term === words ? { ...words, text: `"${text.replaceAll('"', "")}"` } : term)) });
}

/** @param {Answer} found */
function weakButtonFor(found) {
  const weak = ofBand(found, "weak").length;
  if (!weak) return null;
  const many = weak === found.moments.length;
  const words = many ? t("The nearest moments") : plural(weak, "{n} weak one", "{n} weak ones");
  return h("div", { class: "more" }, weakButton(words));
}

function nothingFound() {
  if (!libraryInfo.value?.videos) return noVideos();
  const search = currentSearch.value;
  const narrowed = activeFilters(search).length > 0 || Boolean(search.query.without.length);
  return h("div", { class: "empty" }, h("h2", {}, t("No moment found")),
    h("p", {}, narrowed ? t("The filters, or what must not be there, leave nothing over.") : nothingStandsOut()));
}

/** @param {Answer} found */
function more(found) {
  const wanted = request().top_k;
  if (!showWeak.value && ofBand(found, "weak").length) return null; // further ones are weak, too, and are not shown
  if (found.moments.length < wanted || wanted >= mostMoments()) return null;
  const onclick = () => { topK *= 2; searchSoon(0); };
  return h("div", { class: "more" }, h("button", { type: "button", class: "plain", onclick }, t("More moments")));
}

/** @param {Moment[]} moments @param {number} first rank of the first in the order of the arrows */
function grid(moments, first) {
  const words = wordsOf(currentSearch.value);
  const videos = new Set(moments.map((moment) => moment.video_id));
  return h("ul", { class: "grid" }, moments.map((moment, i) => card(moment, first + i, words, videos)));
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
    const only = h("button", { type: "button", class: "quiet", onclick: () => changeSearch({ videos: [video] }) }, t("only this video"));
    return h("section", { "aria-label": title(video) }, h("h2", { title: video }, h("span", { dir: "auto" }, title(video)),
      h("span", { class: "muted" }, plural(own.length, "{n} moment", "{n} moments")), only), list);
  }));
}

/** @param {Moment} moment @param {number} index @param {Set<string>} words @param {Set<string>} videos */
function card(moment, index, words, videos) {
  const made = momentCard(moment, index, { words, videos, isNew: isNew(moment) }, does(index));
  cards[index] = made;
  return made.element;
}

/** @param {number} index */
const does = (index) => ({ open: () => open(index), focus: () => focusOn(index), like: () => like(index) });

/** @param {number} index */
function open(index) {
  cards[index]?.still.reset();
  const moments = cards.map((card) => card.moment);
  grow(cards[index]?.still.element, "#player .screen", () => openPlayer(moments, index));
}

/** @param {number} index */
function like(index) {
  const card = cards[index];
  if (card) moreLike({ video_id: card.moment.video_id, time: card.still.time });
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

/** What was marked, seen and collected, without drawing everything again. */
function drawStates() {
  cards.forEach((card, index) => drawState(card, does(index)));
}

/** @param {import("./marks.js").Mark} mark */
function markCurrent(mark) {
  const card = cards[current];
  if (card) setMark(card.moment, mark);
}

function layoutSwitch() {
  const { layout: shape, perRow } = layout.value;
  /** @param {"grid" | "rows"} name @param {string} label */
  const choice = (name, label) => iconButton(name, label, () => { layout.value = { ...layout.value, layout: name }; }, { "aria-pressed": String(shape === name) });
  const select = h("select", { "aria-label": t("Moments a row"), onchange: () => { layout.value = { ...layout.value, perRow: Number(select.value) }; } },
    [3, 4, 6, 8, 12].map((n) => h("option", { value: n, selected: n === perRow }, t("{n} a row", { n }))));
  refill(byId("layout", HTMLDivElement), shape === "rows" ? select : null, choice("grid", t("As a grid")), choice("rows", t("As rows by video")));
}

function listenForKeys() {
  on("results", {
    left: () => goTo(current - 1), right: () => goTo(current + 1), up: () => line(-1), down: () => line(1),
    first: () => goTo(0), last: () => goTo(cards.length - 1),
    preview: () => cards[current]?.still.toggle(),
    scrubBack: () => cards[current]?.still.scrub(-1), scrubOn: () => cards[current]?.still.scrub(1),
    collect: () => { const card = cards[current]; if (card) collect(card.moment, textOf(currentSearch.value)); },
    markRight: () => markCurrent("right"), markWrong: () => markCurrent("wrong"),
    like: () => like(current),
    alsoLike: () => { const card = cards[current]; if (card) alsoLike({ video_id: card.moment.video_id, time: card.still.time }); },
  });
  on("anywhere", { undo: undoMark, literally, weak: () => { showWeak.value = !showWeak.value; }, layout: () => { layout.value = { ...layout.value, layout: layout.value.layout === "grid" ? "rows" : "grid" }; } });
}

/** @param {import("../base/store.js").Search} search */
const unmarked = (search) => askedBy({ ...search, query: { ...search.query, right: [], wrong: [] } }).query;

export function startResults() {
  currentSearch.onChange((search, before) => {
    topK = PAGE;
    current = 0;
    if (JSON.stringify(unmarked(search)) !== JSON.stringify(unmarked(before))) showWeak.value = false;
    if (isEmpty(search) && !isEmpty(before)) searchSoon(0);
    else if (!isEmpty(search)) searchSoon();
    else drawResults();
  });
  answer.onChange(drawResults);
  showWeak.onChange((value, before) => { if (value !== before) drawResults(); });
  layout.onChange(() => { layoutSwitch(); searchSoon(0); });
  collection.onChange(drawStates);
  opened.onChange((now, before) => {
    drawStates();
    const fromFolded = document.activeElement?.closest(".folded, #asking"); // which the player gives the focus back to
    if (!now && before && view.value === "search" && !fromFolded) goTo(before.index);
  });
  api.connection.addEventListener("up", () => searchSoon(0));
  layoutSwitch();
  listenForKeys();
}
