// The player: opens at the moment, with what lies around it.

import { loadAhead } from "./ahead.js";
import * as api from "../base/api.js";
import { BANDS, bandOfMoment } from "../base/bands.js";
import { askedBy, isEmpty, textOf, wordsOf } from "../base/asked.js";
import { changeItem, collect, collection, isCollected } from "../collection/collecting.js";
import { byId, fill, h, icon, iconButton, refill } from "../base/dom.js";
import { clock, reasonOf, spanClock, title, wordsWith } from "../base/format.js";
import { on } from "../base/keyboard.js";
import { t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { markOf, setMark, undoMark } from "../search/marks.js";
import { closePlayer, openAccount, opened, step } from "../base/opening.js";
import { copyPicture, copyText, savePicture } from "./picture.js";
import { moreLike } from "../search/query.js";
import { answer } from "../search/results.js";
import { speedMenu } from "./speed.js";
import { currentSearch, libraryInfo } from "../base/store.js";
import { canSubmit, submitPicture } from "./submitting.js";
import { startSwiping } from "./swiping.js";
import { Timeline } from "./timeline.js";
import { progressBar, saidProgress } from "../base/waiting.js";
import { wordsAside } from "./words.js";

/** @typedef {import("../base/opening.js").Playable} Playable */

const FRAME = 1 / 25; // seconds, where the video does not say
const NEXT = 8; // moments below a phone's player
const BUSY = 1000; // ms before a busy server is asked again

const dialog = byId("player", HTMLDialogElement);
const video = h("video", { playsinline: true, tabindex: "-1", preload: "auto", onclick: () => { if (!video.controls) toggle(); } }); // the controls of the browser do so themselves
const failure = h("p", { class: "player-failure", role: "alert", hidden: true });
const converting = h("p", { role: "status" });
const howFar = h("span", { class: "muted" });
const conversion = h("div", { class: "player-failure", hidden: true }, converting, howFar);
/** The part that is shown on the full screen, with its messages. */
const screen = h("div", { class: "screen" }, video, failure, conversion);
const heading = h("h2", { tabindex: "-1", dir: "auto" });
const place = h("span", { class: "muted" });
const time = h("span", { class: "player-time" });
const words = wordsAside((time) => seek(time));
const speed = speedMenu(video);
const actions = h("div", { class: "player-actions" });
const moreActions = h("div", {});
const more = h("details", { class: "more-actions", onclick: (/** @type {Event} */ event) => { if (moreActions.contains(/** @type {Node} */ (event.target))) more.open = false; } },
  h("summary", { class: "quiet" }, t("more")), moreActions);
const transport = h("div", { class: "transport" });
const timeline = new Timeline(seek, onTrim);
/** Moments that come next, below the player on a phone. */
const next = h("ol", { class: "next-moments", "aria-label": t("Next moments") });

/** The moment that is shown, with its ends as they were moved.
 * @type {Playable | null} */
let playing = null;
/** Shots, cues, length of the video that is shown. */
let around = { path: "", duration: 0, fps: /** @type {number | null} */ (null), shape: 16 / 9, shots: /** @type {api.Shot[]} */ ([]), cues: /** @type {api.Cue[]} */ ([]), curve: /** @type {api.Curve | null} */ (null), recording: /** @type {api.Video["recording"]} */ (null) };
let loading = new AbortController();
/** Whether to stop at the end of the moment, once. */
let stopsAtEnd = false;
let loops = false;
/** The next call of onFrame. */
let frame = 0;
let muted = false;
/** Whether the stream of this video has failed before. */
let retried = false;

/** @param {number} seconds */
function seek(seconds) {
  stopsAtEnd = playing !== null && seconds >= playing.start && seconds < playing.end;
  video.currentTime = Math.max(0, Math.min(seconds, (video.duration || around.duration) - 0.01));
  timeline.at(video.currentTime);
}

function toggle() {
  if (!video.paused) return video.pause();
  if (playing && video.currentTime >= playing.end - 2 * FRAME) stopsAtEnd = false;
  void play();
}

async function play() {
  try {
    await video.play();
  } catch {
    // Browsers play nothing before a first touch of the page: the button starts it then.
  }
}

function again() {
  if (!playing) return;
  seek(playing.start);
  stopsAtEnd = true;
  void play();
}

/** @param {import("../base/opening.js").Opened | null} now @param {import("../base/opening.js").Opened | null} before */
function onOpened(now, before) {
  if (!now) return close();
  const moment = now.moments[now.index];
  if (!moment) return;
  const sameVideo = playing?.video_id === moment.video_id && before !== null;
  const was = before?.moments[before.index];
  if (was && before.moments !== now.moments && was.video_id === moment.video_id && Math.abs(was.start - moment.start) < FRAME / 2) {
    drawHead(now); // it goes on: others come before and after it now
    drawTransport();
    return loadNext();
  }
  playing = { ...moment };
  if (!dialog.open) dialog.showModal();
  drawHead(now);
  drawActions();
  if (sameVideo) drawAround();
  else {
    retried = false;
    void load(moment);
  }
  start(sameVideo);
  drawTransport();
}

/** @param {boolean} sameVideo */
function start(sameVideo) {
  if (!playing) return;
  if (!sameVideo) {
    failure.hidden = conversion.hidden = true;
    video.src = `${api.url.stream(playing.video_id)}#t=${playing.start}`;
    video.poster = api.url.still(playing, playing.start, 960);
  } else video.currentTime = playing.start;
  video.muted = muted;
  stopsAtEnd = true;
  void play();
}

function close() {
  loading.abort();
  void loadAhead(undefined, "", () => "");
  playing = null;
  video.pause();
  video.removeAttribute("src");
  video.load();
  if (dialog.open) dialog.close();
}

/** @param {Playable} moment */
async function load(moment) {
  loading.abort();
  const { signal } = (loading = new AbortController());
  around = { path: "", duration: Math.max(moment.end, 1), fps: null, shape: 16 / 9, shots: [], cues: [], curve: null, recording: null };
  drawAround();
  const named = moment.video_id;
  const wanted = isEmpty(currentSearch.value) ? null : api.curve(askedBy(currentSearch.value).query, named, signal).catch(() => null);
  const [info, shots, cues, curve] = await Promise.all([
    api.video(named, signal).catch((error) => { if (!signal.aborted) showFailure(reasonOf(error)); }),
    api.shots(named, signal).catch(() => []), api.cues(named, signal).catch(() => []), wanted,
  ]);
  if (signal.aborted) return;
  around = { ...around, shots, cues, curve };
  if (info) {
    const { path, duration, fps, width, height, recording } = info;
    around = { ...around, path, duration, fps, recording, shape: height ? width / height : around.shape };
    if (willBeConverted(info)) showConversion({ share: null, seconds_left: null });
  }
  drawAround();
  drawActions();
}

/** @param {api.VideoDetails} info */
const willBeConverted = (info) => !(info.playable || info.stream_ready || info.away || info.state === "refused" || video.readyState || video.error);

/** @param {string} message */
function showFailure(message) {
  failure.textContent = message;
  failure.hidden = false;
  conversion.hidden = true;
}

/** @param {import("../base/waiting.js").WorkProgress} progress */
function showConversion(progress) {
  const said = t("Being converted for this browser, once…");
  if (conversion.hidden) converting.textContent = said;
  howFar.textContent = saidProgress(progress);
  conversion.querySelector("progress")?.remove();
  conversion.append(progressBar(progress.share, said));
  conversion.hidden = false;
  failure.hidden = true;
}

/** The stream itself says what is wrong with it. A server that is busy converting is asked again, no other.
 * @param {boolean} again whether the stream was tried a second time already */
async function explainFailure(again) {
  const moment = playing;
  if (!moment || !video.getAttribute("src")) return;
  const { signal } = loading;
  let refusal = await api.streamRefusal(moment.video_id, signal);
  while (refusal?.code === "busy" && !signal.aborted) {
    if (refusal.progress) showConversion(refusal.progress);
    else showFailure(refusal.message);
    await new Promise((resolve) => setTimeout(resolve, BUSY));
    refusal = await api.streamRefusal(moment.video_id, signal);
  }
  if (signal.aborted) return;
  if (refusal) return showFailure(refusal.message);
  if (again) return showFailure(t("This browser cannot play this video. A clip of the moment can still be downloaded."));
  retried = true;
  start(false);
}

/** The server is back: what could not be played may be. */
function playAfterAll() {
  if (!playing || failure.hidden) return;
  retried = false;
  void load(playing);
  start(false);
}

function drawAround() {
  if (!playing) return;
  const { video_id, start, end } = playing;
  const others = (answer.value?.moments ?? []).filter((moment) => moment.video_id === video_id && moment.start !== start);
  timeline.show({ ...around, video_id, version: playing.version, span: { start, end }, others, trims: !isWhole() });
  timeline.at(video.currentTime || start);
  drawCues();
  drawTime();
}

/** Whether a video is shown rather than a moment of it. */
const isWhole = () => playing !== null && playing.start === 0 && playing.end >= around.duration - 0.01 && playing.score === undefined && !playing.id;

function drawCues() {
  words.show(around.cues, wordsWith(wordsOf(currentSearch.value), { why: playing?.why ?? [] }));
  words.follow(video.currentTime, true);
}

/** @param {import("../base/opening.js").Opened} now */
function drawHead(now) {
  const moment = now.moments[now.index];
  if (!moment) return;
  heading.textContent = title(moment.video_id);
  heading.title = moment.video_id;
  const many = now.moments.length > 1 ? t("{n} of {all}", { n: now.index + 1, all: now.moments.length }) : "";
  const strength = bandOfMoment(moment);
  drawNext(now);
  place.textContent = [many, strength ? BANDS[strength] : ""].filter(Boolean).join(" · ");
}

/** @param {import("../base/opening.js").Opened} now */
function drawNext({ moments, index }) {
  fill(next, moments.slice(index + 1, index + 1 + NEXT).map((moment, i) => h("li", {},
    h("button", { type: "button", class: "opener", onclick: () => { step(1 + i); dialog.scrollTo({ top: 0 }); } },
      h("img", { alt: "", loading: "lazy", src: api.url.still(moment, (moment.start + moment.end) / 2, 240) }),
      h("strong", { dir: "auto" }, title(moment.video_id)), h("span", { class: "time" }, spanClock(moment))))));
}

function drawTime() {
  if (!playing) return;
  const span = isWhole() ? "" : spanClock(playing, 1);
  fill(time, h("strong", {}, clock(video.currentTime, 1)), h("span", { class: "muted" }, ` / ${clock(around.duration)}`),
    span ? h("span", { class: "of-span" }, span) : null);
}

function drawTransport() {
  const now = opened.value;
  const many = (now?.moments.length ?? 0) > 1;
  const toggled = (/** @type {boolean} */ value) => ({ "aria-pressed": String(value) });
  refill(transport,
    many ? iconButton("previous", t("Previous moment (p)"), () => step(-1), { disabled: now?.index === 0 }) : null,
    iconButton(video.paused ? "play" : "pause", video.paused ? t("Play (space)") : t("Pause (space)"), toggle, { class: "icon-button big" }),
    many ? iconButton("next", t("Next moment (n)"), () => step(1), { disabled: now && now.index === now.moments.length - 1 }) : null,
    time, h("span", { class: "spring" }), speed.element,
    iconButton("loop", t("Loop (r)"), toggleLoop, toggled(loops)),
    iconButton(muted ? "muted" : "sound", muted ? t("Sound on (m)") : t("Sound off (m)"), toggleMute, toggled(muted)),
    iconButton("full", t("Full screen (F)"), toggleFull));
}

/** Load what comes after this moment, now that this one plays. */
function loadNext() {
  const now = opened.value;
  const next = now?.moments[now.index + 1];
  if (next && playing) void loadAhead(next, playing.video_id, (info) => timeline.stillsOf(next, info.duration, info.height ? info.width / info.height : 16 / 9));
}

function toggleLoop() {
  loops = !loops;
  drawTransport();
}

function toggleMute() {
  video.muted = muted = !muted;
  drawTransport();
}

function toggleFull() {
  if (document.fullscreenElement) void document.exitFullscreen();
  else void screen.requestFullscreen().catch(() => notify(t("This browser shows no video on the full screen")));
}

/** @param {import("../base/dom.js").IconName} name @param {string} label @param {string} key @param {() => void} onclick */
function action(name, label, key, onclick) {
  return h("button", { type: "button", class: "quiet", onclick, "aria-keyshortcuts": key }, icon(name), label);
}

function drawActions() {
  if (!playing) return;
  const span = playing;
  const inside = span.id !== undefined || isCollected(span);
  const clip = h("a", { class: "quiet", href: api.url.clip(span.video_id, span.start, span.end), download: "" }, icon("download"), t("clip"));
  refill(actions,
    ...(isEmpty(currentSearch.value) || isWhole() ? [] : [markAction("right", "+"), markAction("wrong", "-")]),
    action("keep", inside ? t("collected") : t("collect"), "c", collectThis),
    action("like", t("more like this picture"), "l", likeThis),
    action("link", t("link"), "", () => void copyText(sharedLink(), t("The link is copied"))),
    clip, canSubmit() ? action("up", t("submit"), "d", submitThis) : null, more);
  fill(moreActions,
    action("picture", t("save the picture"), "S", () => void savePicture(video, span.video_id)),
    action("picture", t("copy the picture"), "y", () => void copyPicture(video)),
    action("about", t("what the file holds"), "", () => void openAccount(span.video_id)),
    around.path ? action("link", t("copy the file's path"), "", () => void copyText(around.path, t("The path is copied"))) : null,
    around.path && libraryInfo.value?.opens_folders ? action("up", t("open its folder"), "", () => void api.openFolder(span.video_id).catch((error) => notify(reasonOf(error)))) : null);
}

/** The link to what is shown: where everybody may open it, one that unfolds as a card. */
function sharedLink() {
  const isLocal = /^(localhost$|127\.|\[::1\])/.test(location.hostname);
  const [page = "", query = ""] = location.href.split(/#\/search\?(.*)/s);
  return libraryInfo.value?.is_open && !isLocal && query ? new URL(`watch?${query}`, page).href : location.href;
}

/** @param {import("../search/marks.js").Mark} mark @param {string} key */
function markAction(mark, key) {
  const on = playing !== null && markOf(playing) === mark;
  const button = action(mark, mark === "right" ? t("right") : t("wrong"), key, () => markThis(mark));
  button.setAttribute("aria-pressed", String(on));
  return button;
}

/** Mark what is shown, and go on: the answer is on its way meanwhile.
 * @param {import("../search/marks.js").Mark} mark */
function markThis(mark) {
  if (!playing || isEmpty(currentSearch.value)) return;
  setMark(playing, mark);
  step(1);
}

function submitThis() {
  if (playing) void submitPicture(playing.video_id, video.currentTime);
}

function collectThis() {
  if (!playing || playing.id) return;
  collect(spanOf(playing), textOf(currentSearch.value));
  drawActions();
}

/** @param {Playable} moment */
const spanOf = ({ video_id, start, end, score }) => ({ video_id, start, end, ...(score !== undefined && { score }) });

function likeThis() {
  if (!playing) return;
  const like = { video_id: playing.video_id, time: video.currentTime };
  closePlayer();
  moreLike(like);
}

/** @param {{start: number, end: number}} span @param {boolean} done */
function onTrim(span, done) {
  if (!playing) return;
  playing = { ...playing, ...span };
  stopsAtEnd = true;
  drawTime();
  if (!done) return;
  if (playing.id) changeItem(playing.id, span);
  drawActions();
}

/** @param {"start" | "end"} end set to the picture that is shown. */
function setEnd(end) {
  if (!playing) return;
  const last = Math.floor(around.duration * 10) / 10 - (end === "start" ? 0.1 : 0); // a moment lies within the video
  const now = Math.round(Math.min(video.currentTime, last) * 10) / 10;
  const span = end === "start" ? { start: now, end: Math.max(playing.end, now + 0.1) } : { start: Math.min(playing.start, now - 0.1), end: now };
  if (span.start < 0) return;
  onTrim(span, true);
  timeline.trim(span);
}

function drawProgress() {
  timeline.at(video.currentTime);
  drawTime();
  words.follow(video.currentTime);
}

/** At each picture that is drawn while the video plays: the end of a moment is met exactly. */
function onFrame() {
  cancelAnimationFrame(frame);
  if (video.paused || !playing) return;
  frame = requestAnimationFrame(onFrame);
  if (!stopsAtEnd || isWhole() || video.currentTime < playing.end) return;
  if (loops) return again();
  stopsAtEnd = false;
  if (opened.value?.goOn && step(1)) return;
  video.pause();
  video.currentTime = Math.max(playing.end - FRAME, playing.start);
}

/** @param {number} by */
const jump = (by) => () => seek(video.currentTime + by);

/** @param {1 | -1} by */
const frames = (by) => () => seek(video.currentTime + by * (around.fps ? 1 / around.fps : FRAME));

export function startPlayer() {
  const close_ = iconButton("close", t("Close (Esc)"), closePlayer);
  fill(dialog, h("div", { class: "player-head" }, heading, place, h("span", { class: "spring" }), close_),
    h("div", { class: "player-main" }, screen, words.element),
    transport, timeline.element, actions, next);
  for (const event of ["timeupdate", "seeked"]) video.addEventListener(event, drawProgress);
  video.addEventListener("playing", () => { failure.hidden = conversion.hidden = true; onFrame(); loadNext(); });
  for (const event of ["play", "pause"]) video.addEventListener(event, drawTransport);
  video.addEventListener("ended", () => { if (around.recording && !loops) void import("../base/recording.js").then((part) => part.playNext(around.recording, loading.signal), () => {}); });
  video.addEventListener("loadeddata", () => { conversion.hidden = true; }); // without a touch of the page it does not play yet
  video.addEventListener("loadedmetadata", () => { if (playing && Math.abs(video.currentTime - playing.start) > 0.2) video.currentTime = playing.start; });
  video.addEventListener("error", () => void explainFailure(retried).catch((error) => { if (error instanceof api.Unreachable) showFailure(error.message); }));
  document.addEventListener("fullscreenchange", () => { video.controls = document.fullscreenElement === screen; });
  api.connection.addEventListener("up", playAfterAll);
  startSwiping(screen, { down: closePlayer, sideways: (by) => void step(by) });
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    if (more.open) more.open = false;
    else closePlayer();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) closePlayer(); });
  dialog.addEventListener("pointerdown", (event) => { if (!more.contains(/** @type {Node} */ (event.target))) more.open = false; });
  opened.onChange(onOpened);
  for (const shown of [collection, currentSearch]) shown.onChange(() => { if (playing) drawActions(); });
  on("player", {
    toggle, next: () => void step(1), previous: () => void step(-1), back: jump(-1), on: jump(1), farBack: jump(-10), farOn: jump(10),
    frameBack: frames(-1), frameOn: frames(1), again, loop: toggleLoop, setStart: () => setEnd("start"), setEnd: () => setEnd("end"),
    markRight: () => markThis("right"), markWrong: () => markThis("wrong"), undo: undoMark, collect: collectThis, like: likeThis, mute: toggleMute, full: toggleFull,
    submit: submitThis, faster: speed.faster, slower: speed.slower, copyPicture: () => void copyPicture(video), savePicture: () => { if (playing) void savePicture(video, playing.video_id); },
  });
}
