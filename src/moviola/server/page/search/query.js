// The search box: words, pictures, what comes then, what must not be there.

import * as api from "../base/api.js";
import { GAP, NOTHING, describePart, examplesOf, isText, nameOf, pictureNames, textOf, wordsIn, wordsOnly } from "../base/asked.js";
import { byId, fill, h, icon, iconButton, setState } from "../base/dom.js";
import { activeFilters, filterButton } from "./filters.js";
import { reasonOf } from "../base/format.js";
import { t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { changeQuery, currentSearch, libraryInfo, view } from "../base/store.js";
import { suggestions } from "./suggestions.js";

/** @typedef {import("../base/asked.js").Excluded} Excluded */
/** @typedef {import("../base/asked.js").Step} Step */
/** @typedef {import("../base/asked.js").Term} Term */

const LONGEST = "2000"; // characters: what the server takes of a query
const LONGEST_GAP = "10000000"; // seconds: what it takes of a gap

const form = byId("query", HTMLFormElement);
const words = h("input", {
  id: "words", type: "text", enterkeyhint: "search", autocomplete: "off", autocapitalize: "off",
  spellcheck: "false", dir: "auto", maxlength: LONGEST, "aria-describedby": "failure", "aria-label": t("What to look for"), placeholder: t("What do you want to see?"),
  oninput: () => changeWords(words.value),
});
const likes = h("span", { class: "chips" });
const blend = h("input", {
  type: "range", min: "-2", max: "2", step: "0.5", "aria-label": t("Weight of the words beside the pictures"),
  oninput: () => changeTerms({ text: textOf(currentSearch.value), weight: 2 ** Number(blend.value) }, examplesOf(currentSearch.value)),
});
const blendRow = h("label", { class: "query-row blend" }, h("span", {}, t("picture")), blend, h("span", {}, t("words")));
const steps = h("div");
const exclusions = h("div", { class: "query-row", hidden: true });
const clear = iconButton("close", t("Clear the search"), () => clearSearch());
const chooser = h("input", {
  type: "file", accept: "image/*", hidden: true, "aria-label": t("A picture to look for"),
  onchange: () => { void takePictures(chooser.files); chooser.value = ""; },
});
/** Small pictures of those that were dropped, by id: they are on the server, not at an address.
 * @type {Map<string, HTMLCanvasElement>} */
const thumbnails = new Map();

/** @param {import("../base/asked.js").TextTerm} words @param {Term[]} examples */
function changeTerms(words, examples) {
  changeQuery({ terms: [...(words.text ? [words] : []), ...examples] });
}

/** @param {string} text */
function changeWords(text) {
  const { weight } = currentSearch.value.query.terms.find(isText) ?? {};
  changeTerms({ text: text.trim(), ...(weight !== undefined && { weight }) }, examplesOf(currentSearch.value));
}

export function focusSearch() {
  view.value = "search";
  words.focus();
  words.select();
}

export function clearSearch() {
  currentSearch.value = NOTHING;
  words.focus();
}

/** @param {Term} like */
export function moreLike(like) {
  view.value = "search";
  currentSearch.value = { ...NOTHING, query: { ...NOTHING.query, terms: [like] }, filter: currentSearch.value.filter, by: "visual" };
  window.scrollTo({ top: 0 });
}

/** @param {Term} like added to what is asked already. */
export function alsoLike(like) {
  changeQuery({ terms: [...currentSearch.value.query.terms, like] });
}

/** Let a model answer a question about the films; the code for it is loaded when that is first wanted. */
export async function askFilms() {
  if (!libraryInfo.value?.looker) return;
  const part = await import("./asking.js").catch(() => null); // the server is away, which the page says
  part?.showAsking(textOf(currentSearch.value));
}

export function addStep() {
  view.value = "search";
  changeQuery({ then: [...currentSearch.value.query.then, { terms: [{ text: "" }], gap: GAP }] });
  lastInput(steps);
}

export function addExclusion() {
  view.value = "search";
  changeQuery({ without: [...currentSearch.value.query.without, ""] });
  lastInput(exclusions);
}

/** @param {Element} element */
function lastInput(element) {
  /** @type {HTMLInputElement | undefined} */
  const input = [...element.querySelectorAll(/** @type {"input"} */ ("input.words"))].at(-1);
  input?.focus();
}

/** @param {Iterable<Blob> | null} files */
export async function takePictures(files) {
  for (const file of files ?? []) {
    if (!file.type.startsWith("image/")) {
      notify(t("{kind} is not a picture: give JPEG, PNG or WebP", { kind: file.type || t("A file of unknown kind") }));
      continue;
    }
    try {
      const id = await api.sendPicture(file);
      thumbnails.set(id, await thumbnail(file));
      if (file instanceof File) pictureNames.set(id, file.name);
      view.value = "search";
      alsoLike({ picture: id });
    } catch (error) {
      notify(reasonOf(error));
    }
  }
}

/** @param {Blob} file */
async function thumbnail(file) {
  const bitmap = await createImageBitmap(file);
  const canvas = h("canvas", { width: "64", height: "36" });
  const scale = Math.max(64 / bitmap.width, 36 / bitmap.height);
  const [width, height] = [bitmap.width * scale, bitmap.height * scale];
  canvas.getContext("2d")?.drawImage(bitmap, (64 - width) / 2, (36 - height) / 2, width, height);
  return canvas;
}

/** @param {Term} like */
function likeChip(like) {
  const name = nameOf(like);
  const remove = () => { changeQuery({ terms: currentSearch.value.query.terms.filter((other) => other !== like) }); words.focus(); };
  return chip(pictureOf(like), name, remove);
}

/** @param {Element | null} picture @param {string} name @param {() => void} remove */
const chip = (picture, name, remove) =>
  h("span", { class: picture ? "chip picture" : "chip" }, picture, h("span", { class: "chip-name", dir: "auto" }, name), iconButton("close", t("Without {name}", { name }), remove));

/** @param {Term} term */
function pictureOf(term) {
  if (isText(term)) return null;
  if (!("picture" in term)) return h("img", { src: api.url.still(term, term.time, 128), alt: "" });
  const image = h("img", { src: api.url.picture(term.picture), alt: "", onerror: () => image.replaceWith(icon("picture")) });
  return thumbnails.get(term.picture) ?? image;
}

/** What cannot be typed in the first field: a concept, a first part with exclusions or marks of its own.
 * @returns {Element[]} */
function partChips() {
  const { first, concept } = currentSearch.value.query;
  return [
    ...(concept ? [chip(null, `@${concept}`, () => changeQuery({ concept: undefined }))] : []),
    ...(first ? [chip(null, describePart(first), () => changeQuery({ first: undefined }))] : []),
  ];
}

/** What a field of seconds says; null for any.
 * @param {HTMLInputElement} input */
const secondsIn = (input) => (input.value ? Number(input.value) : null);

/** A field for the words of a part; one that is more than words is only shown.
 * @param {Excluded | Step} part @param {{label: string, hint: string, set: (text: string) => void}} about */
function partField(part, { label, hint, set }) {
  if (!wordsOnly(part)) return h("span", { class: "words shown", dir: "auto" }, describePart(part));
  const text = h("input", {
    class: "words", type: "text", autocomplete: "off", dir: "auto", maxlength: LONGEST, "aria-label": label, value: wordsIn(part), placeholder: hint,
    oninput: () => set(text.value.trim()),
  });
  return text;
}

/** @param {Step} step @param {number} at */
function stepRow(step, at) {
  /** @param {Step} part */
  const set = (part) => changeQuery({ then: currentSearch.value.query.then.map((other, i) => (i === at ? { ...other, ...part } : other)) });
  const text = partField(step, { label: t("Then, step {n}", { n: at + 2 }), hint: t("what happens later"), set: (said) => set({ terms: [{ text: said }] }) });
  const gap = h("input", {
    class: "gap", type: "number", min: "0", max: LONGEST_GAP, step: "5", value: gapOf(step) ?? "", placeholder: t("any"), "aria-label": t("Largest gap in seconds"),
    oninput: () => {
      // The step is only that of the arrows: any number of seconds counts that the server takes.
      const isWrong = gap.validity.badInput || gap.validity.rangeUnderflow || gap.validity.rangeOverflow;
      setState(gap, "aria-invalid", isWrong);
      if (!isWrong) set({ gap: secondsIn(gap) });
    },
  });
  const remove = () => { changeQuery({ then: currentSearch.value.query.then.filter((_, i) => i !== at) }); words.focus(); };
  return h("div", { class: "query-row" }, h("span", { class: "joint" }, t("then")), text,
    h("label", { class: "within" }, t("within"), " ", gap, " s"), iconButton("close", t("Without this step"), remove));
}

/** @param {Step | undefined} step */
const gapOf = (step) => (step?.gap === undefined ? GAP : step.gap);

/** @param {Excluded} excluded @param {number} at */
function exclusion(excluded, at) {
  const set = (/** @type {string} */ said) => changeQuery({ without: currentSearch.value.query.without.map((other, i) => (i === at ? said : other)) });
  const text = partField(excluded, { label: t("Not, {n}", { n: at + 1 }), hint: t("what must not be there"), set });
  const remove = () => { changeQuery({ without: currentSearch.value.query.without.filter((_, i) => i !== at) }); words.focus(); };
  return h("div", { class: "query-row" }, h("span", { class: "joint" }, t("not")), text, iconButton("close", t("Without this exclusion"), remove));
}

/** What a part says, for comparing it with what is shown.
 * @param {Excluded | Step} part */
const said = (part) => (wordsOnly(part) ? wordsIn(part).trim() : describePart(part));

/**
 * Rows are made again only when what they hold was changed from elsewhere: typing keeps its place.
 *
 * @template {Excluded | Step} T
 * @param {Element} element
 * @param {T[]} values
 * @param {(value: T, at: number) => Element} row
 */
function drawRows(element, values, row) {
  const shown = [...element.querySelectorAll(".words")].map((field) => (field instanceof HTMLInputElement ? field.value.trim() : field.textContent));
  if (shown.length === values.length && values.every((value, i) => said(value) === shown[i])) return;
  fill(element, values.map(row));
}

/** Put gaps that were changed from elsewhere into their fields: the one that is typed in says its own already.
 * @param {Step[]} wanted */
function drawGaps(wanted) {
  /** @type {NodeListOf<HTMLInputElement>} */
  const inputs = steps.querySelectorAll("input.gap");
  inputs.forEach((input, i) => {
    const gap = gapOf(wanted[i]);
    if (secondsIn(input) === gap && !input.validity.badInput) return;
    input.value = String(gap ?? "");
    setState(input, "aria-invalid", false);
  });
}

function draw() {
  const search = currentSearch.value;
  const { query } = search;
  const examples = examplesOf(search);
  const text = textOf(search);
  if (words.value.trim() !== text.trim()) words.value = text;
  words.placeholder = examples.length ? t("and in words…") : t("What do you want to see?");
  drawLikes(examples);
  blendRow.hidden = !(examples.length && text.trim());
  if (document.activeElement !== blend) blend.value = String(Math.log2(query.terms.find(isText)?.weight ?? 1));
  drawRows(steps, query.then, stepRow);
  drawGaps(query.then);
  drawRows(exclusions, query.without, exclusion);
  exclusions.hidden = query.without.length === 0;
  clear.hidden = JSON.stringify(query) === JSON.stringify(NOTHING.query);
  filterButton.dataset.count = String(activeFilters(search).length || "");
}

let shownLikes = "";

/** @param {Term[]} examples */
function drawLikes(examples) {
  const { first, concept } = currentSearch.value.query;
  const shown = JSON.stringify([examples, first, concept]);
  if (shown === shownLikes) return;
  shownLikes = shown;
  fill(likes, partChips(), examples.map(likeChip));
}

export function startQuery() {
  const choose = iconButton("picture", t("Look for a picture (or drop or paste one)"), () => chooser.click());
  const box = h("div", { class: "search-box" }, icon("search"), likes, words, clear, choose, chooser);
  const more = h("div", { class: "query-more" },
    h("button", { type: "button", class: "quiet", onclick: addStep }, icon("add"), t("then")),
    h("button", { type: "button", class: "quiet", onclick: addExclusion }, icon("add"), t("not")),
    libraryInfo.value?.looker && h("button", { type: "button", class: "quiet", "aria-keyshortcuts": "q", onclick: () => void askFilms() }, icon("about"), t("ask")),
    filterButton);
  exclusions.className = "";
  form.noValidate = true; // the browser would refuse to send a gap that is no multiple of the arrows' step
  fill(form, h("div", { class: "search-field" }, box, blendRow, steps, exclusions, suggestions(words, changeWords)), more);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("keydown", (event) => { if (event.key === "Enter") form.dispatchEvent(new Event("settled", { bubbles: true })); });
  words.addEventListener("keydown", (event) => {
    const last = examplesOf(currentSearch.value).at(-1);
    if (event.key === "Backspace" && !words.value && last) changeQuery({ terms: currentSearch.value.query.terms.filter((term) => term !== last) });
  });
  currentSearch.onChange(draw);
  draw();
}
