// The view of the collection: order, ends, notes, and out into files.

import * as api from "../base/api.js";
import {
  changeItem, collection, collectionName, collectionNames, deleteCollection, discard, isOwn, moveItem, newCollection, openCollection, renameCollection, save, writeNote,
} from "./collecting.js";
import { byId, fill, h, icon, iconButton } from "../base/dom.js";
import { clock, digitsOf, long, number, reasonOf, seconds, spanWords, title } from "../base/format.js";
import { on } from "../base/keyboard.js";
import { plural, quoted, t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { openPlayer } from "../base/opening.js";
import { Still } from "../base/still.js";
import { view } from "../base/store.js";
import { titleSpan } from "../base/titles.js";
import { inThisVideo, withinButton } from "../base/within.js";

/** @typedef {import("./collecting.js").Item} Item */

const LONGEST_NOTE = 5000; // characters that the library takes

const section = byId("collection-view", HTMLElement);
const list = h("ol", { class: "collection" });
const summary = h("p", { class: "muted", role: "status" });
const failure = h("div", { role: "alert" });
const bar = h("div", { class: "export" });

/** @param {number} index @param {boolean} [goOn] */
function play(index, goOn = false) {
  const moments = collection.value.map(({ score, ...item }) => ({ ...item, ...(score !== null && { score }) }));
  openPlayer(moments, index, goOn);
}

/** Say that a field's text is not taken: at the field while one is in it, else below, and the field shows what holds.
 * @param {HTMLInputElement} field @param {string} complaint empty: it is taken. */
function refuse(field, complaint) {
  if (complaint && document.activeElement !== field) return notify(complaint);
  field.setCustomValidity(complaint);
  field.reportValidity();
}

/** After leaving a field, it shows the stored value, whether or not the text was taken.
 * @param {HTMLInputElement} field @param {() => string} holds */
function showOnLeaving(field, holds) {
  field.addEventListener("input", () => field.setCustomValidity(""));
  field.addEventListener("blur", () => {
    field.setCustomValidity("");
    field.value = holds();
  });
}

/** A field for one end; what is no time, or the wrong way round, is said and not taken.
 * @param {Item} item @param {"start" | "end"} side */
function endField(item, side) {
  const input = h("input", { type: "text", class: "end-field", value: clock(item[side], Math.max(digitsOf(item), 1)), "aria-label": side === "start" ? t("Start of {name}", { name: title(item.video_id) }) : t("End of {name}", { name: title(item.video_id) }) });
  input.addEventListener("change", () => void take());
  const take = async () => {
    const wanted = seconds(input.value);
    const why = wanted === null ? t("Write seconds or m:ss") : await complaint(item, side, wanted);
    refuse(input, why);
    if (!why) changeItem(item.id, { [side]: wanted ?? 0 });
  };
  showOnLeaving(input, () => clock(item[side], Math.max(digitsOf(item), 1)));
  return input;
}

/** Why a time cannot be an end of a moment; empty where it can.
 * @param {Item} item @param {"start" | "end"} side @param {number} wanted */
async function complaint(item, side, wanted) {
  if (side === "start" ? wanted >= item.end : wanted <= item.start) return t("The end must come after the start");
  if (wanted <= item.end) return "";
  const { duration } = await api.video(item.video_id).catch(() => ({ duration: Infinity }));
  return wanted > duration ? t("The video ends at {time}", { time: clock(Math.floor(10 * duration) / 10, 1) }) : "";
}

/** @param {Item} item @param {number} index */
function row(item, index) {
  const still = new Still(item, { priority: true });
  const name = `${title(item.video_id)}, ${spanWords(item)}`;
  const opener = h("button", { type: "button", class: "opener", "aria-label": t("Play {name}", { name }), onclick: () => { still.reset(); play(index); } }, still.element);
  const note = h("textarea", { rows: "1", dir: "auto", maxlength: LONGEST_NOTE, placeholder: t("note"), "aria-label": t("Note on {name}", { name }), oninput: () => { note.style.height = "auto"; note.style.height = `${note.scrollHeight}px`; writeNote(item.id, note.value); }, onchange: () => void save() });
  note.value = item.note;
  const element = h("li", { class: "item", "data-id": item.id, "data-video": item.video_id }, gripFor(item), h("div", { class: "frame" }, opener),
    h("div", { class: "item-text" }, titleSpan(item.video_id, collection.value.map((other) => other.video_id)),
      h("span", { class: "ends" }, endField(item, "start"), "–", endField(item, "end"), h("span", { class: "muted" }, `${number(item.end - item.start, Math.max(digitsOf(item), 1))} s`)),
      item.query ? h("span", { class: "muted from" }, quoted(item.query)) : null), note,
    h("div", { class: "item-tools" }, withinButton(() => inThisVideo(item.video_id)),
      iconButton("up", t("Move {name} up", { name }), () => moveItem(item.id, index - 1), { disabled: index === 0 }),
      iconButton("down", t("Move {name} down", { name }), () => moveItem(item.id, index + 1), { disabled: index === collection.value.length - 1 }),
      iconButton("remove", t("Take {name} out", { name }), () => discard(item.id))));
  element.addEventListener("dragover", (event) => { if (dragged) { event.preventDefault(); element.classList.add("target"); } });
  element.addEventListener("dragleave", () => element.classList.remove("target"));
  element.addEventListener("drop", (event) => { if (dragged) { event.preventDefault(); event.stopPropagation(); moveItem(dragged, index); } });
  return element;
}

/** The id of the item that is dragged. */
let dragged = "";

/** @param {Item} item */
function gripFor(item) {
  const grip = h("span", { class: "grip", draggable: "true", "aria-hidden": "true", title: t("Drag to another place") }, icon("grip"));
  grip.addEventListener("dragstart", (event) => {
    dragged = item.id;
    event.dataTransfer?.setData("text/plain", item.video_id);
    const whole = grip.closest("li");
    if (whole) event.dataTransfer?.setDragImage(whole, 0, 0);
  });
  grip.addEventListener("dragend", () => { dragged = ""; });
  return grip;
}

/** What the rows show.
 * @type {Item[]} */
let drawn = [];

/** Whether rows stand for these items, but for their notes.
 * @param {Item[]} items */
const areDrawn = (items) => items.length === drawn.length && items.every((item, index) =>
  /** @type {const} */ (["id", "video_id", "start", "end", "query"]).every((part) => item[part] === drawn[index]?.[part]));

/** @param {Item[]} items */
function drawRows(items) {
  const focus = focusedPlace();
  fill(list, items.map(row));
  if (focus) restoreFocus(focus);
}

/** Rows that stay are not rebuilt: a note may be being written in one.
 * @param {Item[]} items */
function drawNotes(items) {
  for (const [index, field] of list.querySelectorAll("textarea").entries()) {
    const { note = "" } = items[index] ?? {};
    if (field.value !== note) field.value = note;
  }
}

function draw() {
  const items = collection.value;
  const number = byId("collected", HTMLSpanElement);
  number.textContent = items.length ? String(items.length) : "";
  if (areDrawn(items)) drawNotes(items);
  else drawRows(items);
  drawn = items;
  bar.hidden = items.length === 0;
  const length = items.reduce((total, item) => total + item.end - item.start, 0);
  summary.textContent = items.length ? `${plural(items.length, "{n} moment", "{n} moments")}, ${long(length)}` : "";
  list.hidden = items.length === 0;
  section.classList.toggle("is-empty", items.length === 0);
  away.hidden = !isOwn();
}

/** Which item has the focus, and in which of its parts, so that drawing again does not lose it. */
function focusedPlace() {
  const element = document.activeElement;
  const item = element instanceof HTMLElement ? element.closest("li") : null;
  if (!element || !item || !list.contains(item)) return null;
  const parts = [...item.querySelectorAll("button, input, textarea")];
  const caret = element instanceof HTMLTextAreaElement ? [element.selectionStart, element.selectionEnd] : null;
  return { id: item.dataset.id, part: parts.indexOf(element), index: [...list.children].indexOf(item), caret };
}

/** @param {NonNullable<ReturnType<typeof focusedPlace>>} place */
function restoreFocus({ id, part, index, caret }) {
  const items = /** @type {HTMLElement[]} */ ([...list.children]);
  const item = items.find((other) => other.dataset.id === id) ?? items[Math.min(index, items.length - 1)];
  if (!item) return name.focus();
  const parts = /** @type {NodeListOf<HTMLButtonElement>} */ (item.querySelectorAll("button, input, textarea"));
  const wanted = parts[part];
  (wanted?.disabled ? parts[0] : wanted)?.focus();
  if (wanted instanceof HTMLTextAreaElement && caret) wanted.setSelectionRange(caret[0] ?? 0, caret[1] ?? 0);
}

/** @param {number} by */
function move(by) {
  const place = focusedPlace();
  const next = list.children[(place?.index ?? -1) + by];
  /** @type {HTMLElement | null | undefined} */
  const opener = next?.querySelector(".opener");
  opener?.focus();
}

function drawBar() {
  fill(bar, h("button", { type: "button", class: "plain", onclick: () => play(0, true) }, icon("play"), t("Play all")));
  const show = () => { if (view.value === "collection") void addExporting(); };
  view.onChange(show);
  api.connection.addEventListener("up", show);
  show();
}

/** What writes the collection to files is loaded when the collection is first looked at: most visits only search. */
async function addExporting() {
  try {
    const { exportForm } = await import("./exporting.js");
    if (!bar.querySelector("form")) bar.append(exportForm(failure));
  } catch (error) {
    const why = reasonOf(error);
    await api.library().then(() => notify(t("The collection cannot be exported: {why}", { why })), () => {}); // or the server is away, which the page says
  }
}

const name = h("input", { type: "text", dir: "auto", "aria-label": t("Title of the collection"), class: "collection-title", maxlength: "500" });
const others = h("select", { "aria-label": t("Other collections") });
const away = h("button", { type: "button", class: "quiet", onclick: () => orSay(deleteCollection()) }, icon("remove"), t("delete"));

/** @param {Promise<void>} done */
const orSay = (done) => void done.catch((error) => { notify(reasonOf(error)); drawHead(); });

/** The collection's name, the others of the library, a new one, away with this one. */
function collectionHead() {
  name.addEventListener("change", () => orSay(renameCollection(name.value.trim()).then((complaint) => refuse(name, complaint))));
  showOnLeaving(name, () => collectionName.value);
  others.addEventListener("change", () => orSay(openCollection(others.value)));
  return h("div", { class: "view-head" }, h("h1", { class: "hidden-title" }, t("Collection")), name, summary, h("span", { class: "spring" }), others,
    h("button", { type: "button", class: "quiet", onclick: () => orSay(newCollection()) }, icon("add"), t("new")),
    away);
}

function drawHead() {
  if (document.activeElement !== name) name.value = collectionName.value;
  const all = new Set([collectionName.value, ...collectionNames.value]);
  fill(others, [...all].map((one) => h("option", { value: one, selected: one === collectionName.value }, one)));
  others.hidden = all.size < 2;
}

export function startCollection() {
  const [before, after] = t("Press {key} on a moment, or the bookmark on its still. From here, moments go out as clips, one film, or a list for an editor.").split("{key}");
  const empty = h("div", { class: "empty collection-empty" }, h("h2", {}, t("Nothing collected yet")),
    h("p", {}, before, h("kbd", {}, "c"), after));
  drawBar();
  fill(section, collectionHead(), bar, failure, list, empty);
  collection.onChange(draw);
  collectionName.onChange(drawHead);
  collectionNames.onChange(drawHead);
  drawHead();
  on("collection", {
    up: () => move(-1), down: () => move(1),
    moveUp: () => { const at = focusedPlace(); if (at?.id) moveItem(at.id, at.index - 1); },
    moveDown: () => { const at = focusedPlace(); if (at?.id) moveItem(at.id, at.index + 1); },
    discard: () => { const at = focusedPlace(); if (at?.id) discard(at.id); },
  });
  draw();
}
