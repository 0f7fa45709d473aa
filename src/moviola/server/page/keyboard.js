// One table of keys: what is pressed, where it counts, what it does. "?" shows it.

import { byId, fill, h, iconButton } from "./dom.js";
import { opened } from "./opening.js";
import { view } from "./store.js";

/** @typedef {"anywhere" | "results" | "player" | "collection"} Place */

/** @type {{place: Place, title: string, keys: [string[], string, string][]}[]} keys, action, what it does */
const TABLE = [
  { place: "anywhere", title: "Anywhere", keys: [
    [["/"], "search", "to the search box"],
    [["?"], "keys", "these keys"],
    [["1"], "showSearch", "search"],
    [["2"], "showCollection", "collection"],
    [["3"], "showLibrary", "library"],
    [["f"], "filters", "filters"],
    [["t"], "then", "add what comes then"],
    [["x"], "not", "add what must not be there"],
    [["v"], "layout", "grid, or rows by video"],
    [["w"], "weak", "weaker moments, too"],
    [["u"], "undo", "take the last mark back"],
  ] },
  { place: "results", title: "On a moment", keys: [
    [["ArrowLeft"], "left", "the one before"],
    [["ArrowRight"], "right", "the next"],
    [["ArrowUp"], "up", "line above"],
    [["ArrowDown"], "down", "line below"],
    [["Home"], "first", "the first"],
    [["End"], "last", "the last"],
    [["Enter"], "", "open it"],
    [[" "], "preview", "play it in place"],
    [[","], "scrubBack", "scrub back"],
    [["."], "scrubOn", "scrub on"],
    [["c"], "collect", "into the collection, or out"],
    [["+", "="], "markRight", "right: the answer goes by it"],
    [["-"], "markWrong", "wrong: likewise"],
    [["l"], "like", "more like this picture"],
    [["L"], "alsoLike", "this picture too, beside what is asked"],
  ] },
  { place: "player", title: "In the player", keys: [
    [[" ", "k"], "toggle", "play, pause"],
    [["n", "ArrowDown"], "next", "next moment"],
    [["p", "ArrowUp"], "previous", "moment before"],
    [["ArrowLeft"], "back", "1 s back"],
    [["ArrowRight"], "on", "1 s on"],
    [["Shift+ArrowLeft"], "farBack", "10 s back"],
    [["Shift+ArrowRight"], "farOn", "10 s on"],
    [[","], "frameBack", "a frame back"],
    [["."], "frameOn", "a frame on"],
    [["a"], "again", "the moment again"],
    [["r"], "loop", "round and round"],
    [["i"], "setStart", "begin here"],
    [["o"], "setEnd", "end here"],
    [["c"], "collect", "into the collection, or out"],
    [["+", "="], "markRight", "right, and on to the next"],
    [["-"], "markWrong", "wrong, and on to the next"],
    [["l"], "like", "more like this picture"],
    [["m"], "mute", "sound"],
    [["<"], "slower", "slower"],
    [[">"], "faster", "faster"],
    [["s"], "savePicture", "save the picture"],
    [["y"], "copyPicture", "copy the picture"],
    [["d"], "submit", "submit the picture to the evaluation (DRES)"],
    [["F"], "full", "full screen"],
    [["Escape"], "", "close"],
  ] },
  { place: "collection", title: "In the collection", keys: [
    [["ArrowUp"], "up", "the one above"],
    [["ArrowDown"], "down", "the one below"],
    [["Alt+ArrowUp"], "moveUp", "move it up"],
    [["Alt+ArrowDown"], "moveDown", "move it down"],
    [["Enter"], "", "play it, trim it"],
    [["Delete"], "discard", "take it out"],
  ] },
];

const NAMES = /** @type {Record<string, string>} */ ({
  ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "Space", Escape: "Esc",
});

/** @type {Map<string, () => void>} by place and action */
const actions = new Map();

/** Say what the actions of a place do.
 * @param {Place} place @param {Record<string, () => void>} does */
export function on(place, does) {
  for (const [action, run] of Object.entries(does)) actions.set(`${place} ${action}`, run);
}

/** @param {KeyboardEvent} event @returns {string} as in the table */
function pressed(event) {
  const shift = event.shiftKey && event.key.length > 1 ? "Shift+" : "";
  return `${event.altKey ? "Alt+" : ""}${shift}${event.key}`;
}

/** Whether what has the focus uses the key itself.
 * @param {KeyboardEvent} event */
function isTaken(event) {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  if (target.matches("textarea, select, input:not([type=checkbox], [type=range]), [role=slider]"))
    return event.key !== "ArrowDown" || target.id !== "words";
  if (target.matches("input[type=range]")) return event.key.startsWith("Arrow");
  const own = target.matches("button, a, summary") && !target.matches(".opener");
  return own && (event.key === " " || event.key === "Enter");
}

/** @param {HTMLElement} target @returns {Place[]} where the keys count now, the nearest first */
function places(target) {
  if (opened.value) return ["player"];
  if (byId("keys", HTMLDialogElement).open) return [];
  if (view.value === "collection") return ["collection", "anywhere"];
  return target.closest("#results .moment") ? ["results", "anywhere"] : ["anywhere"];
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.isComposing || isTaken(event)) return;
  const target = event.target instanceof HTMLElement ? event.target : document.body;
  if (target.id === "words" && event.key === "ArrowDown") {
    actions.get("anywhere results")?.();
    return event.preventDefault();
  }
  const key = pressed(event);
  for (const place of places(target)) {
    const [, action] = TABLE.find((part) => part.place === place)?.keys.find(([keys]) => keys.includes(key)) ?? [];
    const run = action && actions.get(`${place} ${action}`);
    if (!run) continue;
    event.preventDefault();
    return run();
  }
}

/** @param {string} key */
const cap = (key) => h("kbd", {}, (key.length > 1 ? key.split("+") : [key]).map((part) => NAMES[part] ?? part).join(" "));

export function showKeys() {
  const dialog = byId("keys", HTMLDialogElement);
  const parts = TABLE.map(({ title, keys }) => h("section", {}, h("h3", {}, title),
    h("dl", {}, keys.map(([names, , does]) => h("div", {}, h("dt", {}, names.map(cap)), h("dd", {}, does))))));
  fill(dialog, h("div", { class: "dialog-head" }, h("h2", { id: "keys-title" }, "Keys"),
    iconButton("close", "Close", () => dialog.close())), h("div", { class: "key-table" }, parts));
  dialog.showModal();
}

export function startKeyboard() {
  on("anywhere", { keys: showKeys });
  document.addEventListener("keydown", onKey);
  const dialog = byId("keys", HTMLDialogElement);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}
