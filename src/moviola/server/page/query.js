// The search box: words, pictures, what comes then, what must not be there.

import * as api from "./api.js";
import { byId, fill, h, icon, iconButton, setState } from "./dom.js";
import { activeFilters, filterButton, filterPanel, showFilters } from "./filters.js";
import { clock, reasonOf, title } from "./format.js";
import { t } from "./language.js";
import { notify } from "./notices.js";
import { GAP, NOTHING, currentSearch, view } from "./store.js";
import { suggestions } from "./suggestions.js";

/** @typedef {import("./store.js").Likeness} Likeness */
/** @typedef {import("./store.js").Search} Search */

const LONGEST = "2000"; // characters: what the server takes of a query
const LONGEST_GAP = "10000000"; // seconds: what it takes of a gap

const form = byId("query", HTMLFormElement);
const words = h("input", {
  id: "words", type: "text", enterkeyhint: "search", autocomplete: "off", autocapitalize: "off",
  spellcheck: "false", dir: "auto", maxlength: LONGEST, "aria-describedby": "failure", "aria-label": t("What to look for"), placeholder: t("What do you want to see?"),
  oninput: () => change({ text: words.value }),
});
const likes = h("span", { class: "chips" });
const blend = h("input", {
  type: "range", min: "-2", max: "2", step: "0.5", "aria-label": t("Weight of the words beside the pictures"),
  oninput: () => change({ weight: 2 ** Number(blend.value) }),
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

/** Marks are on the answer to one query: another one begins without.
 * @param {Partial<Search>} part */
function change(part) {
  const isOther = "text" in part || "likes" in part || "then" in part || "not" in part;
  currentSearch.value = { ...currentSearch.value, ...(isOther && { right: [], wrong: [] }), ...part };
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

/** @param {Likeness} like */
export function moreLike(like) {
  view.value = "search";
  currentSearch.value = { ...NOTHING, filter: currentSearch.value.filter, by: "visual", likes: [like] };
  window.scrollTo({ top: 0 });
}

/** @param {Likeness} like added to what is asked already. */
export function alsoLike(like) {
  change({ likes: [...currentSearch.value.likes, like] });
}

export function addStep() {
  view.value = "search";
  change({ then: [...currentSearch.value.then, { text: "", gap: GAP }] });
  lastInput(steps);
}

export function addExclusion() {
  view.value = "search";
  change({ not: [...currentSearch.value.not, ""] });
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
      view.value = "search";
      change({ likes: [...currentSearch.value.likes, { kind: "picture", id, name: file instanceof File ? file.name : "picture" }] });
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

/** @param {Likeness} like */
function likeChip(like) {
  const name = like.kind === "moment" ? `${title(like.video_id)} ${clock(like.time)}` : like.name;
  const picture = like.kind === "moment"
    ? h("img", { src: api.url.still(like, like.time, 128), alt: "" })
    : (thumbnails.get(like.id) ?? icon("picture"));
  const remove = () => { change({ likes: currentSearch.value.likes.filter((other) => other !== like) }); words.focus(); };
  return h("span", { class: "chip picture" }, picture, h("span", { class: "chip-name" }, name), iconButton("close", t("Without {name}", { name }), remove));
}

/** What a field of seconds says; null for any.
 * @param {HTMLInputElement} input */
const secondsIn = (input) => (input.value ? Number(input.value) : null);

/** @param {import("./store.js").Step} step @param {number} at */
function stepRow(step, at) {
  /** @param {Partial<import("./store.js").Step>} part */
  const set = (part) => change({ then: currentSearch.value.then.map((other, i) => (i === at ? { ...other, ...part } : other)) });
  const text = h("input", {
    class: "words", type: "text", autocomplete: "off", dir: "auto", maxlength: LONGEST, "aria-label": t("Then, step {n}", { n: at + 2 }), value: step.text,
    placeholder: t("what happens later"), oninput: () => set({ text: text.value }),
  });
  const gap = h("input", {
    class: "gap", type: "number", min: "0", max: LONGEST_GAP, step: "5", value: step.gap ?? "", placeholder: t("any"), "aria-label": t("Largest gap in seconds"),
    oninput: () => {
      // The step is only that of the arrows: any number of seconds counts that the server takes.
      const isWrong = gap.validity.badInput || gap.validity.rangeUnderflow || gap.validity.rangeOverflow;
      setState(gap, "aria-invalid", isWrong);
      if (!isWrong) set({ gap: secondsIn(gap) });
    },
  });
  const remove = () => { change({ then: currentSearch.value.then.filter((_, i) => i !== at) }); words.focus(); };
  return h("div", { class: "query-row" }, h("span", { class: "joint" }, t("then")), text,
    h("label", { class: "within" }, t("within"), " ", gap, " s"), iconButton("close", t("Without this step"), remove));
}

/** @param {string} excluded @param {number} at */
function exclusion(excluded, at) {
  const text = h("input", {
    class: "words", type: "text", autocomplete: "off", dir: "auto", maxlength: LONGEST, "aria-label": t("Not, {n}", { n: at + 1 }), value: excluded,
    placeholder: t("what must not be there"),
    oninput: () => change({ not: currentSearch.value.not.map((other, i) => (i === at ? text.value : other)) }),
  });
  const remove = () => { change({ not: currentSearch.value.not.filter((_, i) => i !== at) }); words.focus(); };
  return h("div", { class: "query-row" }, h("span", { class: "joint" }, t("not")), text, iconButton("close", t("Without this exclusion"), remove));
}

/**
 * Rows are made again only when what they hold was changed from elsewhere: typing keeps its place.
 *
 * @template T
 * @param {Element} element
 * @param {T[]} values
 * @param {(value: T) => string} text
 * @param {(value: T, at: number) => Element} row
 */
function drawRows(element, values, text, row) {
  const shown = [...element.querySelectorAll(/** @type {"input"} */ ("input.words"))].map((input) => input.value);
  if (shown.length === values.length && values.every((value, i) => text(value) === shown[i])) return;
  fill(element, values.map(row));
}

/** Put gaps that were changed from elsewhere into their fields: the one that is typed in says its own already.
 * @param {import("./store.js").Step[]} wanted */
function drawGaps(wanted) {
  /** @type {NodeListOf<HTMLInputElement>} */
  const inputs = steps.querySelectorAll("input.gap");
  inputs.forEach((input, i) => {
    const gap = wanted[i]?.gap ?? null;
    if (secondsIn(input) === gap && !input.validity.badInput) return;
    input.value = String(gap ?? "");
    setState(input, "aria-invalid", false);
  });
}

function draw() {
  const search = currentSearch.value;
  if (words.value !== search.text) words.value = search.text;
  words.placeholder = search.likes.length ? t("and in words…") : t("What do you want to see?");
  drawLikes(search.likes);
  blendRow.hidden = !(search.likes.length && search.text.trim());
  if (document.activeElement !== blend) blend.value = String(Math.log2(search.weight));
  drawRows(steps, search.then, (step) => step.text, stepRow);
  drawGaps(search.then);
  drawRows(exclusions, search.not, (text) => text, exclusion);
  exclusions.hidden = search.not.length === 0;
  clear.hidden = !search.text && !search.likes.length && !search.then.length && !search.not.length;
  filterButton.dataset.count = String(activeFilters(search).length || "");
}

/** @type {Likeness[]} */
let shownLikes = [];

/** @param {Likeness[]} wanted */
function drawLikes(wanted) {
  if (wanted === shownLikes) return;
  shownLikes = wanted;
  fill(likes, wanted.map(likeChip));
}

export function startQuery() {
  const choose = iconButton("picture", t("Look for a picture (or drop or paste one)"), () => chooser.click());
  const box = h("div", { class: "search-box" }, icon("search"), likes, words, clear, choose, chooser);
  const more = h("div", { class: "query-more" },
    h("button", { type: "button", class: "quiet", onclick: addStep }, icon("add"), t("then")),
    h("button", { type: "button", class: "quiet", onclick: addExclusion }, icon("add"), t("not")),
    filterButton);
  exclusions.className = "";
  form.noValidate = true; // the browser would refuse to send a gap that is no multiple of the arrows' step
  fill(form, h("div", { class: "search-field" }, box, blendRow, steps, exclusions, suggestions(words, (text) => change({ text }))), more, filterPanel);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("keydown", (event) => { if (event.key === "Enter") form.dispatchEvent(new Event("settled", { bubbles: true })); });
  words.addEventListener("keydown", (event) => {
    if (event.key === "Backspace" && !words.value && currentSearch.value.likes.length) change({ likes: currentSearch.value.likes.slice(0, -1) });
  });
  currentSearch.onChange(draw);
  showFilters(change);
  draw();
}
