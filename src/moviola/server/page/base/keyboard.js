// One table of keys: what is pressed, where it counts, what it does. "?" shows it.

import { byId, fill, h, iconButton } from "./dom.js";
import { t } from "./language.js";
import { opened } from "./opening.js";
import { view } from "./store.js";

/** @typedef {"anywhere" | "results" | "player" | "collection"} Place */

/** @type {{place: Place, title: string, keys: [string[], string, string][]}[]} keys, action, what it does */
const TABLE = [
  { place: "anywhere", title: t("Anywhere"), keys: [
    [["/"], "search", t("to the search box")],
    [["?"], "keys", t("these keys")],
    [["1"], "showSearch", t("search")],
    [["2"], "showCollection", t("collection")],
    [["3"], "showLibrary", t("library")],
    [["f"], "filters", t("filters")],
    [["t"], "then", t("add what comes then")],
    [["x"], "not", t("add what must not be there")],
    [["v"], "layout", t("grid, or rows by video")],
    [["w"], "weak", t("weak moments, too")],
    [['"'], "literally", t("take “no” and “without” as words")],
    [["u"], "undo", t("undo the last mark")],
    [["q"], "ask", t("ask about the films, where the server names a model")],
  ] },
  { place: "results", title: t("On a moment"), keys: [
    [["ArrowLeft"], "left", t("the one before")],
    [["ArrowRight"], "right", t("the next")],
    [["ArrowUp"], "up", t("line above")],
    [["ArrowDown"], "down", t("line below")],
    [["Home"], "first", t("the first")],
    [["End"], "last", t("the last")],
    [["Enter"], "", t("open it")],
    [[" "], "preview", t("play it in place")],
    [[","], "scrubBack", t("scrub back")],
    [["."], "scrubOn", t("scrub forward")],
    [["c"], "collect", t("into the collection, or out")],
    [["+", "="], "markRight", t("mark as right: improves the answer")],
    [["-"], "markWrong", t("mark as wrong: improves the answer")],
    [["l"], "like", t("more like this picture")],
    [["s"], "within", t("search in this video")],
    [["L"], "alsoLike", t("this picture too, beside what is asked")],
  ] },
  { place: "player", title: t("In the player"), keys: [
    [[" ", "k"], "toggle", t("play, pause")],
    [["n", "ArrowDown"], "next", t("next moment")],
    [["p", "ArrowUp"], "previous", t("previous moment")],
    [["ArrowLeft"], "back", t("1 s back")],
    [["ArrowRight"], "on", t("1 s forward")],
    [["Shift+ArrowLeft"], "farBack", t("10 s back")],
    [["Shift+ArrowRight"], "farOn", t("10 s forward")],
    [[","], "frameBack", t("a frame back")],
    [["."], "frameOn", t("a frame forward")],
    [["a"], "again", t("the moment again")],
    [["r"], "loop", t("loop")],
    [["i"], "setStart", t("begin here")],
    [["o"], "setEnd", t("end here")],
    [["c"], "collect", t("into the collection, or out")],
    [["+", "="], "markRight", t("right, and on to the next")],
    [["-"], "markWrong", t("wrong, and on to the next")],
    [["u"], "undo", t("undo the last mark")],
    [["l"], "like", t("more like this picture")],
    [["s"], "within", t("search in this video")],
    [["m"], "mute", t("sound")],
    [["<"], "slower", t("slower")],
    [[">"], "faster", t("faster")],
    [["S"], "savePicture", t("save the picture")],
    [["y"], "copyPicture", t("copy the picture")],
    [["d"], "submit", t("submit the picture to the evaluation (DRES)")],
    [["F"], "full", t("full screen")],
    [["?"], "keys", t("these keys")],
    [["Escape"], "", t("close")],
  ] },
  { place: "collection", title: t("In the collection"), keys: [
    [["ArrowUp"], "up", t("the one above")],
    [["ArrowDown"], "down", t("the one below")],
    [["Alt+ArrowUp"], "moveUp", t("move it up")],
    [["Alt+ArrowDown"], "moveDown", t("move it down")],
    [["Enter"], "", t("play it, trim it")],
    [["s"], "within", t("search in this video")],
    [["Delete"], "discard", t("take it out")],
  ] },
];

const NAMES = /** @type {Record<string, string>} */ ({
  ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": t("Space"), Escape: t("Esc"),
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
  if (["keys", "account"].some((id) => byId(id, HTMLDialogElement).open)) return [];
  if (opened.value) return ["player"];
  if (byId("asking", HTMLDialogElement).open) return [];
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
  fill(dialog, h("div", { class: "dialog-head" }, h("h2", { id: "keys-title" }, t("Keys")),
    iconButton("close", t("Close"), () => dialog.close())), h("div", { class: "key-table" }, parts));
  dialog.showModal();
}

export function startKeyboard() {
  on("anywhere", { keys: showKeys });
  on("player", { keys: showKeys });
  document.addEventListener("keydown", onKey);
  const dialog = byId("keys", HTMLDialogElement);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}
