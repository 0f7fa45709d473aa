// Bringing videos in: from a folder of the server, or sent from here; one progress over all steps.

import * as api from "../base/api.js";
import { h, icon, iconButton, refill, takeAway } from "../base/dom.js";
import { size, title } from "../base/format.js";
import { follow, runs } from "./following.js";
import { plural, t } from "../base/language.js";
import { reasonSaid } from "../base/reasons.js";
import { areSeveral } from "../base/rights.js";
import { libraryInfo, remembered, view } from "../base/store.js";
import { cancelUpload, sendFile, sending, unfinished } from "./uploading.js";
import { progressBar, saidProgress } from "../base/waiting.js";

const BUSY = 1000; // ms until a job is begun again
const MOST_DISMISSED = 100;

/** Jobs that were dismissed in this browser.
 * @type {import("../base/store.js").Observable<string[]>} */
const dismissed = remembered("moviola.dismissed-jobs", /** @type {string[]} */ ([]));

/** @typedef {{changed: () => Promise<void>, failed: (what: string, error: unknown) => void, went: (what: string) => void}} Does `went` after all: its failure is said no longer. */

const jobs = h("div", { class: "jobs" });
const waiting = h("div", { class: "jobs" });
/** Jobs that are shown, by name.
 * @type {Set<string>} */
const shown = new Set();
/** @type {Does} */
let does = { changed: async () => {}, failed: () => {}, went: () => {} };

/** Into which of several libraries videos come; without a choice where one is served. */
const into = h("select", { "aria-label": t("Library that gets the videos"), title: t("Library that gets the videos") });

function ingestForm() {
  const folders = libraryInfo.value?.ingest_folders ?? [];
  const what = t("A folder or a file, on the machine of the server");
  const source = h("input", { type: "text", id: "source", required: true, list: "folders", value: folders[0] ?? "", spellcheck: "false", "aria-label": what, title: what, placeholder: what });
  if (areSeveral()) refill(into, libraryInfo.value?.libraries.map((name) => h("option", { value: name }, name)));
  const form = h("form", { class: "ingest" }, source, h("datalist", { id: "folders" }, folders.map((folder) => h("option", { value: folder }))),
    areSeveral() ? into : null,
    h("button", { type: "submit", class: "main" }, t("Bring in")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    source.value = source.value.trim();
    if (source.reportValidity()) void bringIn([source.value], into.value); // blanks alone were something to the browser
  });
  return form;
}

function sendButton() {
  const chooser = h("input", { type: "file", accept: "video/*", multiple: true, hidden: true, "aria-label": t("Videos to send"), onchange: () => { void sendVideos([...(chooser.files ?? [])]); chooser.value = ""; } });
  const title = t("Send videos from here; they can be dropped on the page, too");
  return [h("button", { type: "button", class: "plain", title, onclick: () => chooser.click() }, icon("up"), t("choose some to send")), chooser];
}

/** @param {string[]} sources paths on the server @param {string} library that gets them; empty: the only one */
export async function bringIn(sources, library) {
  try {
    followJob(await api.startJob(sources, library));
    does.went(t("Not brought in"));
  } catch (error) {
    does.failed(t("Not brought in"), error);
  }
}

/** Sent videos for which the server has had no room among its jobs yet.
 * @type {{path: string, library: string}[]} */
let sent = [];
let later = 0;

/** Have videos that were sent brought in: all that wait for a library in one job, and later where too many jobs wait
 * already.
 * @param {string[]} more paths on the server @param {string} library that gets them */
async function bringInSent(more, library) {
  sent.push(...more.map((path) => ({ path, library })));
  const [waiting, others] = [sent.filter((one) => one.library === library), sent.filter((one) => one.library !== library)];
  sent = others;
  if (!waiting.length) return;
  try {
    followJob(await api.startJob(waiting.map(({ path }) => path), library));
  } catch (error) {
    if (!(error instanceof api.ApiError && error.code === "busy")) return does.failed(t("Not brought in"), error);
    sent.push(...waiting);
    clearTimeout(later);
    later = window.setTimeout(bringInWaiting, BUSY);
  }
}

function bringInWaiting() {
  for (const library of new Set(sent.map((one) => one.library))) void bringInSent([], library);
}

/** Send videos one after the other, each to be brought in when it is there.
 * @param {File[]} files */
export async function sendVideos(files) {
  if (!libraryInfo.value?.can_ingest) return does.failed(t("Not sent"), t("This server only reads; start it with --allow-ingest FOLDER"));
  view.value = "library";
  const library = into.value;
  drawUnfinished();
  for (const file of files) {
    const element = h("article", { class: "job", "aria-label": t("Sending {name}", { name: file.name }) });
    jobs.prepend(element);
    const going = new AbortController();
    const began = performance.now();
    let first = -1;
    /** @param {number} sent */
    const draw = (sent) => {
      if (first < 0) first = sent;
      const passed = (performance.now() - began) / 1000;
      const left = passed > 3 && sent > first ? ((file.size - sent) * passed) / (sent - first) : null;
      const share = sent / (file.size || 1);
      refill(element, h("div", { class: "job-head" }, h("strong", {}, t("sending")), h("span", { class: "muted" }, saidProgress({ share, seconds_left: left })),
        h("span", { class: "job-video" }, t("{name}, {sent} of {all}", { name: file.name, sent: size(sent), all: size(file.size) })),
        iconButton("close", t("Do not send {name}", { name: file.name }), () => going.abort())),
        progressBar(share, t("Progress of sending {name}", { name: file.name })));
    };
    draw(0);
    first = -1;
    try {
      const path = await sendFile(file, draw, going.signal);
      does.went(t("{name} was not sent", { name: file.name }));
      await bringInSent([path], library);
    } catch (error) {
      if (!going.signal.aborted) does.failed(t("{name} was not sent", { name: file.name }), error);
    } finally {
      takeAway(element);
      drawUnfinished();
    }
  }
}

/** What was begun before this page was opened: the browser gives its bytes only when the file is chosen again. */
function drawUnfinished() {
  const left = Object.entries(unfinished.value).filter(([key]) => !sending.has(key));
  refill(waiting, left.map(([key, { name, bytes }]) => h("article", { class: "job", "aria-label": t("Unfinished: {name}", { name }) },
    h("div", { class: "job-head" }, h("strong", {}, t("unfinished")), h("span", { class: "job-video" }, t("{name}, {all}: choose or drop it again, and it goes on", { name, all: size(bytes) })),
      iconButton("close", t("Do not send {name}", { name }), () => void cancelUpload(key).catch((error) => does.failed(t("Not cancelled"), error)))))));
}

/** Show a job and follow it to its end.
 * @param {api.Job} job */
function followJob(job) {
  if (shown.has(job.job) || dismissed.value.includes(job.job)) return;
  shown.add(job.job);
  const element = h("article", { class: "job", "aria-label": t("Videos being brought in, job {job}", { job: job.job }) });
  jobs.prepend(element);
  const dismiss = () => { dismissed.value = [...dismissed.value, job.job].slice(-MOST_DISMISSED); takeAway(element); };
  const draw = (/** @type {api.Job} */ now) => refill(element, jobParts(now, dismiss));
  draw(job);
  if (runs(job)) follow(job, (now) => { draw(now); if (!runs(now)) void does.changed().catch(() => {}); });
}

/** @type {Record<string, string>} */
const STEPS = { "key frames": t("key frames"), pictures: t("pictures"), text: t("text in pictures"), speech: t("speech") };

/** @param {api.Job} job that has ended */
function outcome({ added, copies }) {
  const said = [plural(added, "{n} video added", "{n} videos added")];
  if (copies) said.push(plural(copies, "{n} file holds a video of the library", "{n} files hold videos of the library"));
  return said.join(", ");
}

/** What a job brings in, in short.
 * @param {api.Job} job */
const nameOf = ({ sources }) => [title(sources[0] ?? ""), sources.length > 1 && `+${sources.length - 1}`].filter(Boolean).join(" ");

/** @param {api.Job} job @param {() => void} dismiss */
function jobParts(job, dismiss) {
  const states = /** @type {Record<string, string>} */ ({ queued: t("waits"), running: t("running"), done: t("done"), failed: t("failed"), cancelled: t("cancelled") });
  const bar = progressBar(job.share, t("Progress of all steps"));
  const cancel = runs(job) ? iconButton("close", t("Cancel"), () => void api.cancelJob(job).catch((error) => does.failed(t("Not cancelled"), error))) : iconButton("close", t("Dismiss this job"), dismiss);
  return [
    h("div", { class: "job-head" }, h("strong", { dir: "auto", title: job.sources.join("\n") }, nameOf(job)), h("span", {}, states[job.state] ?? job.state),
      areSeveral() ? h("span", { class: "muted", dir: "auto" }, `→ ${job.library}`) : null,
      h("span", { class: "muted" }, runs(job) && job.share ? saidProgress(job) : ""),
      h("span", { class: "job-video" }, runs(job) ? `${STEPS[job.step] ?? job.step} ${title(job.video)}` : outcome(job)), cancel),
    runs(job) ? bar : null,
    job.error ? h("p", { class: "why" }, job.error) : null,
    job.refused.length ? h("ul", { class: "refused" }, job.refused.map(({ video, reason, why }) => h("li", {}, h("span", { class: "name" }, title(video)), h("span", { class: "why" }, reasonSaid(why, reason))))) : null,
  ];
}

/** Jobs of this server that were not begun here. */
export async function showJobs() {
  if (!libraryInfo.value?.can_ingest) return;
  for (const job of (await api.jobs().catch(() => [])).toReversed()) followJob(job);
}

/** The forms, in one line, and what they have begun.
 * @param {Does} does_ */
export function ingestParts(does_) {
  does = does_;
  unfinished.onChange(drawUnfinished);
  drawUnfinished();
  return { forms: h("section", { class: "bring-in", "aria-label": t("Bring in videos") }, ingestForm(), sendButton()), begun: [waiting, jobs] };
}
