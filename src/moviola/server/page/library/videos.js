// The videos of the library: refused ones first, then all in an order; taken out, back in, read again.

import * as api from "../base/api.js";
import { h, icon, iconButton, refill } from "../base/dom.js";
import { clock, day, size, title } from "../base/format.js";
import { follow, runs } from "./following.js";
import { bringIn } from "./ingest.js";
import { plural, t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { selectBox, selectionBar } from "./selecting.js";
import { openAccount, openPlayer } from "../base/opening.js";
import { reasonSaid } from "../base/reasons.js";
import { partOf } from "../base/recording.js";
import { libraryChanged } from "../search/renewing.js";
import { Still } from "../base/still.js";
import { libraryInfo } from "../base/store.js";
import { inThisVideo, withinButton } from "../base/within.js";

/** @typedef {import("./ingest.js").Does} Does */

const PAGE = 50;
const COMING = new Set(["in part", "by key frames", "rest by key frames"]); // reasons that say how far a film is
const TYPING = 200;

/** @type {[string, string][]} what can be sorted by; a minus is the other way round */
const ORDERS = [
  ["name", t("by name")], ["-date", t("newest first")], ["date", t("oldest first")], ["-length", t("longest first")], ["length", t("shortest first")], ["-added", t("last added first")],
];

const refused = h("section", { class: "refused-files", "aria-label": t("Refused files"), hidden: true });
const table = h("tbody");
const tableStatus = h("p", { class: "muted", role: "status" });
const more = h("button", { type: "button", class: "plain", onclick: () => void loadVideos(true) }, t("More videos"));
const text = h("input", { type: "search", dir: "auto", placeholder: t("name or folder"), "aria-label": t("Videos by name"), oninput: () => listSoon() });
const state = h("select", { "aria-label": t("Videos by state"), onchange: () => void loadVideos() },
  [["", t("all")], ["ready", t("ready")], ["partial", t("in part")], ["refused", t("refused")]].map(([value, label]) => h("option", { value }, label)));
const order = h("select", { "aria-label": t("Order of the videos"), onchange: () => void loadVideos() }, ORDERS.map(([value, label]) => h("option", { value }, label)));

/** @type {Does} */
let does = { changed: async () => {}, failed: () => {}, went: () => {} };
let timer = 0;
let listed = 0;
let loading = new AbortController();

function listSoon() {
  clearTimeout(timer);
  timer = window.setTimeout(() => void loadVideos(), TYPING);
}

/** A file that was refused is no video of the library.
 * @param {number} total @param {string} of the state that is listed @param {number} wrong refused ones among those of any state */
function counted(total, of, wrong) {
  const refusals = of === "refused" ? total : wrong;
  const said = refusals < total ? [plural(total - refusals, "{n} video", "{n} videos")] : [];
  if (refusals) said.push(plural(refusals, "{n} file refused", "{n} files refused"));
  return said.join(", ");
}

/** @param {string} of the state that is listed @param {string} called */
function noneOf(of, called) {
  if (called) return of ? t("No video in this state has this name.") : t("No video has this name.");
  return of ? t("No video is in this state.") : t("This library is empty");
}

/** @param {boolean} [further] after those that are shown */
export async function loadVideos(further = false) {
  loading.abort();
  const { signal } = (loading = new AbortController());
  const fields = { limit: PAGE, text: text.value.trim() };
  const of = state.value;
  try {
    const offset = further ? listed : 0;
    const [{ total, videos }, wrong] = await Promise.all([
      api.videos({ ...fields, offset, state: of, sort: order.value.replace("-", ""), descending: order.value.startsWith("-") }, signal),
      further || of ? null : api.videos({ ...fields, offset: 0, state: "refused" }, signal),
    ]);
    const rows = videos.map(videoRow);
    if (further) table.append(...rows);
    else refill(table, rows);
    listed = offset + videos.length;
    if (!further) tableStatus.textContent = total ? counted(total, of, wrong?.total ?? 0) : noneOf(of, fields.text);
    more.hidden = listed >= total;
    if (!further) drawRefused(wrong);
    does.went(t("The videos cannot be listed"));
  } catch (error) {
    if (!signal.aborted && !(error instanceof api.Unreachable)) does.failed(t("The videos cannot be listed"), error);
  }
}

/** @param {{total: number, videos: api.Video[]} | null} wrong */
function drawRefused(wrong) {
  refused.hidden = !wrong?.total;
  if (!wrong?.total) return refill(refused);
  refill(refused, h("h3", {}, plural(wrong.total, "{n} file refused", "{n} files refused")), h("ul", {}, wrong.videos.map((video) =>
    h("li", {}, h("span", { class: "name", dir: "auto" }, title(video.video_id), h("span", { class: "path", dir: "auto" }, video.path)), h("span", { class: "why" }, reasonSaid(video.why, video.error)), tools(video)))));
}

/** What can be done with a video.
 * @param {api.Video} video */
function tools(video) {
  const name = title(video.video_id);
  const within = video.state === "refused" ? null : [
    iconButton("about", t("What the file of {name} holds", { name }), () => void openAccount(video.video_id)),
    withinButton(() => inThisVideo(video.video_id)),
  ];
  if (!libraryInfo.value?.can_ingest) return h("span", { class: "video-tools" }, within);
  const again = video.state === "refused" ? [iconButton("loop", t("Read {name} again, after its repair", { name }), () => void bringIn([video.path], video.library))] : [
    iconButton("loop", t("Read subtitles and text of {name} again", { name }), () => void processAgain(video, false)),
    iconButton("again", t("Encode {name} again", { name }), () => void processAgain(video, true)),
  ];
  return h("span", { class: "video-tools" }, within, again,
    iconButton("remove", t("Take {name} out of the library", { name }), () => void takeOut(video)));
}

/** @param {api.Video} video @param {boolean} pictures */
async function processAgain(video, pictures) {
  const name = title(video.video_id);
  try {
    const job = await api.processAgain(video.video_id, pictures);
    notify(t("{name} is processed again; it can be searched as it is until then", { name }));
    follow(job, (now) => {
      if (runs(now)) return;
      const { state: ended, error, refused: reasons } = now;
      const problem = error || (reasons[0] && reasonSaid(reasons[0].why, reasons[0].reason));
      if (problem || ended !== "done") does.failed(t("{name} was not processed again", { name }), new Error(problem || ended));
      else {
        does.went(t("{name} was not processed again", { name }));
        notify(t("{name} was processed again", { name }));
      }
      libraryChanged(); // though it may have as many segments as before
      void does.changed();
    });
  } catch (error) {
    does.failed(t("{name} was not processed again", { name }), error);
  }
}

/** @param {api.Video} video */
export async function takeOut(video) {
  try {
    await api.removeVideo(video.video_id);
    does.went(t("Not taken out"));
    // Of a refused file nothing is kept that could come back: it is read again with its folder.
    const undo = video.state === "refused" ? undefined : { label: t("Undo"), run: () => void takeBack(video) };
    notify(t("{name} is out of the library; its file stays", { name: title(video.video_id) }), undo);
    await does.changed();
  } catch (error) {
    does.failed(t("Not taken out"), error);
  }
}

/** @param {api.Video} video */
async function takeBack(video) {
  try {
    await api.restoreVideo(video.video_id);
    does.went(t("Not brought back"));
    await does.changed();
  } catch (error) {
    does.failed(t("Not brought back"), error);
  }
}

/** @param {api.Video} video */
function videoRow(video) {
  const ready = video.state !== "refused";
  const whole = { video_id: video.video_id, start: 0, end: video.duration, version: video.version };
  const still = ready ? new Still(whole, { time: video.duration / 3 }).element : h("span", { class: "still missing" });
  const play = () => openPlayer([whole]);
  const name = ready
    ? h("button", { type: "button", class: "link", dir: "auto", onclick: play }, title(video.video_id))
    : h("span", { dir: "auto" }, title(video.video_id));
  return h("tr", {}, h("td", { class: "thumb" }, h("span", { class: "thumb-in" }, selectBox(video), ready ? h("button", { type: "button", class: "opener", tabindex: "-1", "aria-label": t("Play {name}", { name: title(video.video_id) }), onclick: play }, still) : still)),
    h("td", { class: "name" }, name, h("span", { class: "path", dir: "auto" }, video.path), video.recording ? h("span", { class: "path" }, partOf(video.recording)) : null, video.error ? h("span", { class: COMING.has(video.why.code) ? "path" : "why" }, reasonSaid(video.why, video.error)) : null),
    h("td", { class: "figure" }, video.duration ? clock(video.duration) : ""),
    h("td", { class: "figure date" }, day(video.taken)),
    h("td", { class: "figure" }, size(video.bytes)),
    h("td", {}, h("span", { class: `state ${video.state}` }, video.away ? t("away") : { ready: t("ready"), partial: t("in part"), refused: t("refused") }[video.state] ?? video.state)),
    h("td", {}, tools(video)));
}

/** @param {Does} does_ */
export function videosSection(does_) {
  does = does_;
  const head = h("tr", {}, ["", t("Video"), t("Length"), t("Taken"), t("Size"), t("State"), ""].map((name) => (name ? h("th", { scope: "col" }, name) : h("td"))));
  return h("section", { "aria-labelledby": "videos-title" },
    h("div", { class: "table-head" }, h("h2", { id: "videos-title" }, t("Videos")), tableStatus, h("span", { class: "spring" }), icon("search"), text, state, order),
    refused, selectionBar(does_), h("table", { class: "videos" }, h("thead", {}, head), table), h("div", { class: "more" }, more));
}
