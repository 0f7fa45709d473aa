// Videos of the list that are selected, and what is done with all of them: a tag, read again, taken out.

import * as api from "../base/api.js";
import { h, refill } from "../base/dom.js";
import { title } from "../base/format.js";
import { follow, runs } from "./following.js";
import { plural, t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { reasonSaid } from "../base/reasons.js";
import { libraryInfo } from "../base/store.js";

/** @typedef {import("./ingest.js").Does} Does */

/** Those that are selected, by id.
 * @type {Map<string, api.Video>} */
const selected = new Map();
const bar = h("div", { class: "selected", role: "group", "aria-label": t("Selected videos"), hidden: true });
/** Whether something is being done with them. */
let busy = false;
/** @type {Does} */
let does = { changed: async () => {}, failed: () => {}, went: () => {} };

const boxes = () => /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll(".videos .select"));

/** @param {boolean} all those that are listed, or none */
function select(all) {
  for (const box of boxes()) if (box.checked !== all) box.click();
  if (!all) { selected.clear(); draw(); }
}

/** The box that selects a video; none where nothing could be done with it.
 * @param {api.Video} video */
export function selectBox(video) {
  if (!libraryInfo.value?.can_tag) return null;
  const box = h("input", {
    type: "checkbox", class: "select", "aria-label": t("Select {name}", { name: title(video.video_id) }),
    onchange: () => { if (box.checked) selected.set(video.video_id, video); else selected.delete(video.video_id); draw(); },
  });
  box.checked = selected.has(video.video_id);
  return box;
}

/** Do something with each, one after the other; gives those with which it went well, and says what failed of others.
 * @param {string} failure @param {(video: api.Video, place: number, all: number) => Promise<unknown>} run */
async function each(failure, run) {
  const videos = [...selected.values()];
  const done = [];
  busy = true;
  draw();
  for (const [place, video] of videos.entries()) {
    try {
      await run(video, place, videos.length);
      does.went(`${failure}: ${title(video.video_id)}`);
      done.push(video);
      selected.delete(video.video_id);
    } catch (error) {
      does.failed(`${failure}: ${title(video.video_id)}`, error);
      if (error instanceof api.Unreachable) break;
    }
  }
  busy = false;
  draw();
  return done;
}

async function tagAll(/** @type {string} */ tag) {
  const marks = new Map((await api.kept("mark")).map((entry) => [entry.name, entry]));
  const done = await each(t("Not tagged"), ({ video_id }) => {
    const entry = marks.get(video_id);
    const before = /** @type {{tags: string[], rating: number} | undefined} */ (entry?.value);
    const value = { video_id, tags: [...new Set([...(before?.tags ?? []), tag])], rating: before?.rating ?? 0 };
    return api.keep("mark", video_id, value, entry?.version ?? 0);
  });
  if (done.length) notify(plural(done.length, "{n} video is tagged", "{n} videos are tagged"));
}

/** A job, followed to its end.
 * @param {api.Job} job @returns {Promise<void>} */
const ended = (job) => new Promise((resolve, reject) => {
  follow(job, (now) => {
    if (runs(now)) return;
    const [refused] = now.refused;
    const problem = now.error || (refused && reasonSaid(refused.why, refused.reason));
    if (problem || now.state !== "done") reject(new Error(problem || now.state));
    else resolve();
  });
});

async function readAll() {
  const done = await each(t("Not read again"), async ({ video_id }, place, all) => {
    said.textContent = t("Reading again: {done} of {all}", { done: place + 1, all });
    await ended(await api.processAgain(video_id, false));
  });
  if (done.length) notify(plural(done.length, "{n} video was read again", "{n} videos were read again"));
  await does.changed();
}

async function takeAllOut() {
  const done = await each(t("Not taken out"), ({ video_id }) => api.removeVideo(video_id));
  const back = done.filter(({ state }) => state !== "refused"); // of a refused file nothing is kept that could come back
  const undo = async () => {
    for (const video of back) await api.restoreVideo(video.video_id).catch((error) => does.failed(t("Not brought back"), error));
    await does.changed();
  };
  if (done.length) notify(plural(done.length, "{n} video is out of the library; its file stays", "{n} videos are out of the library; their files stay"), back.length ? { label: t("Undo"), run: () => void undo() } : undefined);
  await does.changed();
}

const said = h("strong", { role: "status" });

function draw() {
  bar.hidden = selected.size === 0 && !busy;
  if (bar.hidden) return refill(bar);
  if (!busy) said.textContent = plural(selected.size, "{n} video selected", "{n} videos selected");
  const tag = h("input", { type: "text", dir: "auto", maxlength: "100", placeholder: t("tag"), "aria-label": t("Tag to give to the selected videos"), required: true });
  const form = h("form", {}, tag, h("button", { type: "submit", class: "plain", disabled: busy }, t("give the tag")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = tag.value.trim();
    if (text) void tagAll(text).catch((error) => does.failed(t("Not tagged"), error));
  });
  const fails = (/** @type {string} */ what) => (/** @type {unknown} */ error) => { if (!(error instanceof api.Unreachable)) does.failed(what, error); };
  /** @param {string} name @param {string} what @param {() => Promise<void>} run */
  const button = (name, what, run) => h("button", { type: "button", class: "plain", disabled: busy, onclick: () => void run().catch(fails(what)) }, name);
  const changes = libraryInfo.value?.can_ingest ? [button(t("read again"), t("Not read again"), readAll), button(t("take out"), t("Not taken out"), takeAllOut)] : [];
  refill(bar, said, form, changes, h("span", { class: "spring" }),
    h("button", { type: "button", class: "quiet", onclick: () => select(true) }, t("Select all that are listed")),
    h("button", { type: "button", class: "quiet", onclick: () => select(false) }, t("Select none")));
}

/** @param {Does} does_ */
export function selectionBar(does_) {
  does = does_;
  return bar;
}
