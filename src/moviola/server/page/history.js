// The address says what is asked and what is open: links repeat it, "back" goes back.

import { answer } from "./results.js";
import { opened, openPlayer } from "./opening.js";
import { GAP, NOTHING, asked, isEmpty, showWeak, view } from "./store.js";
import { addRecent } from "./welcome.js";
import { clock, title } from "./format.js";
import { byId } from "./dom.js";

/** @typedef {import("./store.js").Search} Search */
/** @typedef {import("./store.js").Likeness} Likeness */

const SETTLED = 1500; // ms after which a search has a place of its own in the history
const VIEWS = ["search", "collection", "library"];
const MARKS = /** @type {const} */ (["right", "wrong"]);

/** @param {number} seconds */
const short = (seconds) => String(Math.round(seconds * 100) / 100);

/**
 * A search as the parameters of a link.
 *
 * @param {Search} search
 * @returns {URLSearchParams}
 */
export function parametersOf(search) {
  const found = new URLSearchParams();
  if (search.text.trim()) found.set("q", search.text.trim());
  if (search.weight !== 1) found.set("weight", String(search.weight));
  for (const like of search.likes)
    if (like.kind === "moment") found.append("like", `${like.video_id}@${short(like.time)}`);
    else found.append("picture", `${like.id}~${like.name}`);
  for (const step of search.then) if (step.text.trim()) found.append("then", `${step.gap ?? "any"}~${step.text.trim()}`);
  for (const text of search.not) if (text.trim()) found.append("not", text.trim());
  for (const [name, value] of Object.entries(search.filter)) found.set(`in.${name}`, value);
  for (const video of search.videos) found.append("video", video);
  if (search.by !== "both") found.set("by", search.by);
  if (search.minScore) found.set("min", String(search.minScore));
  if (!search.refine) found.set("coarse", "1");
  for (const mark of MARKS) for (const one of search[mark]) found.append(mark, `${one.video_id}@${short(one.start)}-${short(one.end)}`);
  return found;
}

/**
 * What a link asks; what cannot be read in it is left out.
 *
 * @param {URLSearchParams} parameters
 * @returns {Search}
 */
export function searchOf(parameters) {
  const all = (/** @type {string} */ name) => parameters.getAll(name);
  const filters = [...parameters].filter(([name]) => name.startsWith("in."));
  return {
    text: parameters.get("q") ?? "", weight: Number(parameters.get("weight")) || 1,
    likes: [...all("like").flatMap(momentLike), ...all("picture").map(pictureLike)],
    then: all("then").map(stepOf), not: all("not"),
    filter: Object.fromEntries(filters.map(([name, value]) => [name.slice("in.".length), value])),
    videos: all("video"), by: parameters.get("by") ?? NOTHING.by,
    refine: parameters.get("coarse") !== "1", minScore: Number(parameters.get("min")) || 0,
    right: all("right").flatMap(spanOf), wrong: all("wrong").flatMap(spanOf),
  };
}

/** A moment as VIDEO@START-END; none where it is not written so.
 * @param {string} text @returns {import("./store.js").Marked[]} */
function spanOf(text) {
  const [, video_id, start, end] = /^(.+)@([\d.]+)-([\d.]+)$/s.exec(text) ?? [];
  return video_id && Number(start) < Number(end) ? [{ video_id, start: Number(start), end: Number(end) }] : [];
}

/** @param {string} text @returns {Likeness[]} */
function momentLike(text) {
  const at = text.lastIndexOf("@");
  const time = Number(text.slice(at + 1));
  return at > 0 && Number.isFinite(time) ? [{ kind: "moment", video_id: text.slice(0, at), time }] : [];
}

/** @param {string} text @returns {Likeness} */
function pictureLike(text) {
  const [id = "", ...name] = text.split("~");
  return { kind: "picture", id, name: name.join("~") || "picture" };
}

/** @param {string} text */
function stepOf(text) {
  const [, gap, words] = /^(\d+(?:\.\d+)?|any)~(.*)$/s.exec(text) ?? [];
  return gap === undefined ? { text, gap: GAP } : { text: words ?? "", gap: gap === "any" ? null : Number(gap) };
}

/** The link to what is shown now. */
function currentHash() {
  const parameters = view.value === "search" ? parametersOf(asked.value) : new URLSearchParams();
  if (view.value === "search" && showWeak.value) parameters.set("weak", "1");
  const playing = opened.value?.moments[opened.value.index];
  if (playing) parameters.set("play", `${playing.video_id}@${short(playing.start)}-${short(playing.end)}`);
  return `#/${view.value}${parameters.size ? `?${parameters}` : ""}`;
}

/** Read from the address just now: not to be written into it again. */
let reading = false;
/** Whether the newest place in the history is of a search that is still being typed. */
let typing = false;
let settling = 0;
/** Whether the place of the player is being left; what is written meanwhile waits, pushed or not. */
let leaving = false;
let pushes = false;

/** @param {boolean} push whether "back" comes back to what was shown before */
function write(push) {
  if (leaving) pushes ||= push;
  if (reading || leaving) return;
  const hash = currentHash();
  byId("to-search", HTMLAnchorElement).href = `#/search?${parametersOf(asked.value)}`;
  document.title = pageTitle();
  if (hash === location.hash) return;
  const state = { player: opened.value !== null && (push || Boolean(history.state?.player)) };
  if (push) history.pushState(state, "", hash);
  else history.replaceState(state, "", hash);
}

/** Opening the player made a place of its own, which closing leaves again: "back" must not open it once more. */
function leavePlayer() {
  if (reading || !history.state?.player) return write(false);
  leaving = true;
  pushes = false;
  history.back();
}

function onPlace() {
  if (!leaving) return read();
  leaving = false;
  write(pushes);
}

/** A search in a few words.
 * @param {Search} search */
function describe({ text, likes, then, not }) {
  const alike = likes.map((like) => `like ${like.kind === "moment" ? `${title(like.video_id)} ${clock(like.time)}` : like.name}`);
  return [
    [text.trim(), ...alike].filter(Boolean).join(" + "),
    ...then.filter((step) => step.text.trim()).map((step) => `then ${step.text.trim()}`),
    ...not.filter((one) => one.trim()).map((one) => `without ${one.trim()}`),
  ].join(", ");
}

function pageTitle() {
  const what = view.value === "search" ? describe(asked.value) : view.value;
  const playing = opened.value?.moments[opened.value.index];
  return [playing && title(playing.video_id), what, "moviola"].filter(Boolean).join(" · ");
}

/** Changes of a search follow each other into one place of the history until it settles. */
function onAsked() {
  write(!typing);
  typing = true;
  clearTimeout(settling);
  settling = window.setTimeout(settle, SETTLED);
}

/** The search that is shown is one to come back to. */
function settle() {
  clearTimeout(settling);
  typing = false;
}

/** It was meant as it stands: Enter was pressed, or a moment of its answer opened. */
function meant() {
  settle();
  if (answer.value && !isEmpty(asked.value)) addRecent(describe(asked.value), `#/search?${parametersOf(asked.value)}`);
}

function read() {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parameters = new URLSearchParams(query);
  reading = true;
  view.value = /** @type {import("./store.js").View} */ (VIEWS.includes(path) ? path : "search");
  if (view.value === "search") {
    const wanted = searchOf(parameters);
    if (String(parametersOf(wanted)) !== String(parametersOf(asked.value))) asked.value = wanted;
    if (parameters.get("weak") === "1") showWeak.value = true;
  }
  readPlaying(parameters.get("play"));
  reading = false;
  typing = false;
  write(false);
}

/** @param {string | null} text */
function readPlaying(text) {
  const [wanted] = spanOf(text ?? "");
  if (!wanted) return void (opened.value && (opened.value = null));
  const now = opened.value;
  const isIt = (/** @type {{video_id: string, start: number}} */ m) => m.video_id === wanted.video_id && short(m.start) === short(wanted.start);
  if (now && now.moments.findIndex(isIt) === now.index) return;
  const known = answer.value?.moments ?? [];
  const index = known.findIndex(isIt);
  if (index >= 0) openPlayer(known, index);
  else openPlayer([wanted]);
}

export function startHistory() {
  asked.onChange(onAsked);
  showWeak.onChange((wanted) => { if (wanted) write(true); });
  view.onChange((now, before) => { if (now !== before) write(true); });
  opened.onChange((now, before) => {
    if (now && !before) meant();
    if (now) write(!before);
    else leavePlayer();
  });
  window.addEventListener("popstate", onPlace);
  document.addEventListener("settled", meant);
  document.addEventListener("focusout", (event) => { if (event.target === byId("words", HTMLInputElement)) settle(); });
  read();
}
