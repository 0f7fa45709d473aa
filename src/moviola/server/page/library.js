// The view of the library: what is in it, what is in use, and bringing in more.

import * as api from "./api.js";
import { byId, fill, h, icon, iconButton } from "./dom.js";
import { clock, count, long, size, title } from "./format.js";
import { openPlayer } from "./opening.js";
import { Still } from "./still.js";
import { libraryInfo, view } from "./store.js";
import { forgetWelcome } from "./welcome.js";

const PAGE = 50;
const TYPING = 200;
const section = byId("library-view", HTMLElement);
const facts = h("dl", { class: "facts" });
const jobs = h("div", { class: "jobs" });
const failure = h("div", { role: "alert" });
const table = h("tbody");
const tableStatus = h("p", { class: "muted", role: "status" });
const more = h("button", { type: "button", class: "plain", onclick: () => void loadVideos(true) }, "More videos");
const text = h("input", { type: "search", placeholder: "name or folder", "aria-label": "Videos by name", oninput: () => listSoon() });
const state = h("select", { "aria-label": "Videos by state", onchange: () => void loadVideos() },
  [["", "all"], ["ready", "ready"], ["partial", "in part"], ["refused", "refused"]].map(([value, label]) => h("option", { value }, label)));

let timer = 0;
let listed = 0;
let loading = new AbortController();

function listSoon() {
  clearTimeout(timer);
  timer = window.setTimeout(() => void loadVideos(), TYPING);
}

/** @param {boolean} [further] after those that are shown */
async function loadVideos(further = false) {
  loading.abort();
  const { signal } = (loading = new AbortController());
  try {
    const offset = further ? listed : 0;
    const { total, videos } = await api.videos({ offset, limit: PAGE, state: state.value, text: text.value.trim() }, signal);
    if (!further) fill(table);
    table.append(...videos.map(videoRow));
    listed = offset + videos.length;
    tableStatus.textContent = total ? count(total, "video") : "No video is called so.";
    more.hidden = listed >= total;
  } catch (error) {
    if (!signal.aborted && !(error instanceof api.Unreachable)) showFailure("The videos cannot be listed", error);
  }
}

/** @param {api.Video} video */
function videoRow(video) {
  const ready = video.state !== "refused";
  const whole = { video_id: video.video_id, start: 0, end: video.duration, version: video.version };
  const still = ready ? new Still(whole, { time: video.duration / 3 }).element : h("span", { class: "still missing" });
  const play = () => openPlayer([whole]);
  const name = ready
    ? h("button", { type: "button", class: "link", onclick: play }, title(video.video_id))
    : h("span", {}, title(video.video_id));
  return h("tr", {}, h("td", { class: "thumb" }, ready ? h("button", { type: "button", class: "opener", tabindex: "-1", "aria-label": `Play ${title(video.video_id)}`, onclick: play }, still) : still),
    h("td", { class: "name" }, name, h("span", { class: "path" }, video.path), video.error ? h("span", { class: "why" }, video.error) : null),
    h("td", { class: "figure" }, video.duration ? clock(video.duration) : ""),
    h("td", { class: "figure" }, size(video.bytes)),
    h("td", {}, h("span", { class: `state ${video.state}` }, { ready: "ready", partial: "in part", refused: "refused" }[video.state] ?? video.state)));
}

function drawFacts() {
  const info = libraryInfo.value;
  if (!info) return;
  const models = Object.entries(info.models).map(([role, model]) => [role === "stage1" ? "First stage" : "Refiner", model?.name ?? "not trained"]);
  /** @type {[string, string][]} */
  const rows = [
    ["Videos", `${info.videos.toLocaleString("en")}, ${long(info.seconds)}`],
    ["Segments", info.segments.toLocaleString("en")],
    ["Pictures", info.encoder || "–"],
    ["Sentences", info.sentence_encoder || "–"],
    .../** @type {[string, string][]} */ (models),
    ["Evidence", info.evidence.join(", ")],
    ["moviola", info.version],
  ];
  fill(facts, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** @param {string} what @param {unknown} error */
function showFailure(what, error) {
  fill(failure, h("div", { class: "failure" }, h("strong", {}, what), h("p", {}, error instanceof Error ? error.message : String(error))));
}

function ingestForm() {
  const folders = libraryInfo.value?.ingest_folders ?? [];
  const source = h("input", { type: "text", id: "source", required: true, list: "folders", value: folders[0] ?? "", spellcheck: "false" });
  const form = h("form", { class: "ingest" }, h("label", { for: "source" }, "A folder or a file, on the machine of the server"),
    h("div", { class: "ingest-row" }, source, h("datalist", { id: "folders" }, folders.map((folder) => h("option", { value: folder }))),
      h("button", { type: "submit", class: "main" }, "Bring in")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    fill(failure);
    api.startJob([source.value.trim()]).then(followJob, (error) => showFailure("Not brought in", error));
  });
  return form;
}

/** @param {api.Job} job */
const runs = (job) => job.state === "running" || job.state === "queued";

/** Show a job and follow it to its end.
 * @param {api.Job} job */
function followJob(job) {
  const element = h("article", { class: "job", "aria-label": `Ingest ${job.job}` });
  jobs.prepend(element);
  let now = job;
  const draw = () => fill(element, jobParts(now));
  draw();
  if (!runs(now)) return;
  const events = api.jobEvents(job);
  const update = async (/** @type {MessageEvent} */ event) => {
    now = JSON.parse(event.data);
    draw();
    if (runs(now)) return;
    events.close();
    await ended();
  };
  for (const kind of ["progress", "refused", "done"]) events.addEventListener(kind, (event) => void update(event).catch(() => {}));
}

async function ended() {
  libraryInfo.value = await api.library();
  forgetWelcome();
  await loadVideos();
}

/** @param {api.Job} job */
function timeLeft({ share, started }) {
  const passed = started ? (Date.now() - Date.parse(started)) / 1000 : 0;
  return share > 0.05 && passed > 5 ? `, about ${long((passed * (1 - share)) / share)} left` : "";
}

/** @param {api.Job} job */
function jobParts(job) {
  const states = /** @type {Record<string, string>} */ ({ queued: "waits", running: "running", done: "done", failed: "failed", cancelled: "cancelled" });
  const bar = h("progress", { max: "1", value: job.share, "aria-label": "Done of all steps" });
  if (!job.share) bar.removeAttribute("value");
  const cancel = runs(job) ? iconButton("close", "Cancel", () => void api.cancelJob(job).catch((error) => showFailure("Not cancelled", error))) : null;
  return [
    h("div", { class: "job-head" }, h("strong", {}, states[job.state] ?? job.state),
      h("span", { class: "muted" }, runs(job) && job.share ? `${Math.round(100 * job.share)} %${timeLeft(job)}` : ""),
      h("span", { class: "job-video" }, runs(job) ? `${job.step} ${title(job.video)}` : `${count(job.added, "video")} added`), cancel),
    runs(job) ? bar : null,
    job.error ? h("p", { class: "why" }, job.error) : null,
    job.refused.length ? h("ul", { class: "refused" }, job.refused.map(({ video, reason }) => h("li", {}, h("span", { class: "name" }, title(video)), h("span", { class: "why" }, reason)))) : null,
  ];
}

async function show() {
  await loadVideos();
  if (!libraryInfo.value?.can_ingest || jobs.children.length) return;
  const known = await api.jobs().catch(() => []);
  if (!jobs.children.length) for (const job of known) followJob(job);
}

export function startLibrary() {
  const info = libraryInfo.value;
  const ingest = info?.can_ingest
    ? h("section", { "aria-labelledby": "ingest-title" }, h("h2", { id: "ingest-title" }, "Bring in videos"), ingestForm(), jobs)
    : h("p", { class: "muted hint" }, "This server only reads. Videos come in with ", h("code", {}, "moviola index FOLDER"), ".");
  const head = h("tr", {}, ["", "Video", "Length", "Size", "State"].map((name) => (name ? h("th", { scope: "col" }, name) : h("td"))));
  const list = h("section", { "aria-labelledby": "videos-title" },
    h("div", { class: "table-head" }, h("h2", { id: "videos-title" }, "Videos"), tableStatus, h("span", { class: "spring" }), icon("search"), text, state),
    h("table", { class: "videos" }, h("thead", {}, head), table), h("div", { class: "more" }, more));
  fill(section, h("h1", {}, info?.name ?? "Library"), failure, facts, ingest, list);
  libraryInfo.onChange(drawFacts);
  view.onChange((now) => { if (now === "library") void show(); });
  drawFacts();
  if (view.value === "library") void show();
}
