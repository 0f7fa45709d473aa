// The address says what is asked and what is open: links repeat it, "back" goes back.

import { Unreachable } from "../base/api.js";
import { describe, isEmpty, linkedSearch, parametersOf, short, spanOf } from "../base/asked.js";
import { answer, shownMoments } from "./results.js";
import { closePlayer, opened, openPlayer } from "../base/opening.js";
import { collectionName, collectionNames, openCollection } from "../collection/collecting.js";
import { byId } from "../base/dom.js";
import { reasonOf, title } from "../base/format.js";
import { t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { currentSearch, showWeak, view } from "../base/store.js";
import { addRecent } from "./welcome.js";

const SETTLED = 1500; // ms after which a search has a place of its own in the history
const VIEWS = ["search", "collection", "library"];

function searchParameters() {
  const parameters = parametersOf(currentSearch.value);
  if (showWeak.value) parameters.set("shown", "all");
  return parameters;
}

/** The link to what is shown now. */
function currentHash() {
  const parameters = view.value === "search" ? searchParameters() : new URLSearchParams();
  if (view.value === "collection") parameters.set("name", collectionName.value);
  const playing = opened.value?.moments[opened.value.index];
  if (playing) parameters.set("play", `${playing.video_id}@${short(playing.start)}-${short(playing.end)}`);
  return `#/${view.value}${parameters.size ? `?${parameters}` : ""}`;
}

/** Read from the address just now: not to be written into it again. */
let reading = false;
/** Whether the newest place in the history is of a search that is still being typed. */
let typing = false;
let settling = 0;
/** Whether the place of the player is being left; what is written meanwhile waits. */
let leaving = false;
/** The address of the place that the player was opened from. */
let below = "";

/** @param {boolean} push whether "back" comes back to what was shown before */
function write(push) {
  if (reading || leaving) return;
  const hash = currentHash();
  byId("to-search", HTMLAnchorElement).href = `#/search?${searchParameters()}`;
  document.title = pageTitle();
  if (hash === location.hash) return;
  const state = { player: opened.value !== null && (push || Boolean(history.state?.player)) };
  if (push) {
    below = location.hash;
    history.pushState(state, "", hash);
  } else history.replaceState(state, "", hash);
}

/** Opening the player made a place of its own, which closing leaves again: "back" must not open it once more. */
function leavePlayer() {
  if (reading || !history.state?.player) return write(false);
  leaving = true;
  history.back();
}

/** Where the player was left, by "back" or in another way, what was marked in it has a place of its own. */
function onPlace() {
  if (!leaving && !(opened.value && location.hash === below)) return read();
  leaving = true;
  if (opened.value) closePlayer();
  leaving = false;
  write(true);
}

function pageTitle() {
  const what = { search: describe(currentSearch.value), collection: t("collection"), library: t("library") }[view.value];
  const playing = opened.value?.moments[opened.value.index];
  return [playing && title(playing.video_id), what, "moviola"].filter(Boolean).join(" · ");
}

/** Changes of a search follow each other into one place of the history until it settles; those made in the player, into its place. */
function onAsked() {
  write(!typing && !opened.value);
  typing = true;
  clearTimeout(settling);
  settling = window.setTimeout(settle, SETTLED);
}

/** A changed search begins without weak moments: that alone makes no place.
 * @param {boolean} wanted @param {boolean} before */
function onWeak(wanted, before) {
  if (wanted === before) return;
  if (wanted) settle();
  write(!typing);
}

/** The search that is shown is one to come back to. */
function settle() {
  clearTimeout(settling);
  typing = false;
}

/** It was meant as it stands: Enter was pressed, or a moment of its answer opened. */
function meant() {
  settle();
  if (answer.value && !isEmpty(currentSearch.value)) addRecent(describe(currentSearch.value), `#/search?${parametersOf(currentSearch.value)}`);
}

function read() {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parameters = new URLSearchParams(query);
  reading = true;
  view.value = /** @type {import("../base/store.js").View} */ (VIEWS.includes(path) ? path : "search");
  if (view.value === "search") {
    const wanted = linkedSearch(parameters);
    if (String(parametersOf(wanted)) !== String(parametersOf(currentSearch.value))) currentSearch.value = wanted;
    showWeak.value = parameters.get("shown") === "all";
  }
  const named = view.value === "collection" && parameters.get("name");
  if (named && named !== collectionName.value) void openNamed(named);
  readPlaying(parameters.get("play"));
  reading = false;
  typing = false;
  write(false);
}

/** @param {string} name */
async function openNamed(name) {
  try {
    await openCollection(name);
    if (!collectionNames.value.includes(name)) notify(t("This library has no collection “{name}”; a new one is open", { name }));
  } catch (error) {
    if (!(error instanceof Unreachable)) notify(reasonOf(error));
  }
}

/** @param {string | null} text */
function readPlaying(text) {
  const [wanted] = spanOf(text ?? "");
  if (!wanted) return void (opened.value && (opened.value = null));
  const now = opened.value;
  const isIt = (/** @type {{video_id: string, start: number}} */ m) => m.video_id === wanted.video_id && short(m.start) === short(wanted.start);
  if (now && now.moments.findIndex(isIt) === now.index) return;
  const known = shownMoments();
  const index = known.findIndex(isIt);
  if (index >= 0) openPlayer(known, index);
  else {
    openPlayer([wanted]);
    linked = opened.value;
  }
}

/** What a link opened before there was an answer.
 * @type {import("../base/opening.js").Opened | null} */
let linked = null;

/** A moment that a link opened stands among those of the answer, once it is there: others come before and after it. */
function joinAnswer() {
  const [wanted] = linked?.moments ?? [];
  if (!wanted || opened.value !== linked || !answer.value) return;
  const known = shownMoments();
  const index = known.findIndex((m) => m.video_id === wanted.video_id && short(m.start) === short(wanted.start));
  reading = true; // the address stays as it is
  opened.value = index >= 0 ? { moments: known, index, goOn: false } : { moments: [wanted, ...known], index: 0, goOn: false };
  reading = false;
  linked = null;
}

export function startHistory() {
  currentSearch.onChange(onAsked);
  showWeak.onChange(onWeak);
  view.onChange((now, before) => { if (now !== before) write(true); });
  collectionName.onChange(() => { if (view.value === "collection") write(false); });
  opened.onChange((now, before) => {
    if (now && !before) meant();
    if (now) write(!before);
    else leavePlayer();
  });
  window.addEventListener("popstate", onPlace);
  answer.onChange(joinAnswer);
  document.addEventListener("settled", meant);
  document.addEventListener("focusout", (event) => { if (event.target === byId("words", HTMLInputElement)) settle(); });
  read();
}
