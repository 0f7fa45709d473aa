// The view of the library: what is in it and in use, its folders, its videos, and bringing in more.

import * as api from "../base/api.js";
import { byId, fill, h, iconButton, takeAway } from "../base/dom.js";
import { EVIDENCE } from "../search/filters.js";
import { long, reasonOf } from "../base/format.js";
import { language, t } from "../base/language.js";
import { latest } from "../base/latest.js";
import { ingestParts, sendVideos as send, showJobs } from "./ingest.js";
import { areSeveral, mayOnlyRead, readingNote } from "../base/rights.js";
import { showRoots, rootsSection } from "./roots.js";
import { libraryInfo, view } from "../base/store.js";
import { savedSection } from "../search/saved.js";
import { showTwins, twinsSection } from "./twins.js";
import { loadVideos, videosSection } from "./videos.js";
import { forgetWelcome } from "../search/welcome.js";

const section = byId("library-view", HTMLElement);
const facts = h("dl", { class: "facts" });
const failure = h("div", { role: "alert" });
const searches = h("div", { class: "saved" });

function drawFacts() {
  const info = libraryInfo.value;
  if (!info) return;
  const models = Object.entries(info.models).map(([role, model]) => [role === "stage1" ? t("First stage") : t("Refiner"), model?.name ?? t("not trained")]);
  /** @type {[string, string][]} */
  const rows = [
    .../** @type {[string, string][]} */ (areSeveral() ? [[t("Libraries"), info.libraries.join(", ")]] : []),
    [t("Videos"), `${info.videos.toLocaleString(language)}, ${long(info.seconds)}`],
    [t("Segments"), info.segments.toLocaleString(language)],
    [t("Pictures"), info.encoder || "–"],
    [t("Sentences"), info.sentence_encoder || "–"],
    .../** @type {[string, string][]} */ (models),
    [t("Evidence"), info.evidence.map((kind) => EVIDENCE[{ subtitle: "subtitles", chapter: "chapters" }[kind] ?? kind] ?? kind).join(", ")],
    ["moviola", info.version],
  ];
  fill(facts, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** What went wrong, by what was wanted: each stays until it is read and dismissed, or goes well.
 * @type {Map<string, Element>} */
const failures = new Map();

/** @param {string} what @param {unknown} error */
function showFailure(what, error) {
  takeFailureAway(what);
  const element = h("div", { class: "failure" }, iconButton("close", t("Dismiss: {what}", { what }), () => takeFailureAway(what)),
    h("strong", {}, what), h("p", {}, reasonOf(error)));
  failures.set(what, element);
  failure.append(element);
}

/** @param {string} what */
function takeFailureAway(what) {
  const element = failures.get(what);
  failures.delete(what);
  if (element) takeAway(element);
}

const newest = latest();

/** Videos came in, or went: from here, from another page or by a command. */
async function changed() {
  const info = await newest(api.library());
  if (info) libraryInfo.value = info;
  forgetWelcome();
  await Promise.all([loadVideos(), showRoots(), showTwins()]);
}

async function show() {
  fill(searches, savedSection());
  await Promise.all([changed(), showJobs()]).catch(() => {}); // the server is away, which the page says
}

export const sendVideos = send;

export function startLibrary() {
  const info = libraryInfo.value;
  const does = { changed, failed: showFailure, went: takeFailureAway };
  const { forms, begun } = info?.can_ingest ? ingestParts(does) : { forms: null, begun: [] };
  const note = info?.can_ingest ? null
    : mayOnlyRead() ? readingNote() : h("p", { class: "muted hint" }, t("This server only reads. Videos come in with a command:"), " ", h("code", {}, "moviola index FOLDER"));
  const about = h("details", { class: "about" }, h("summary", {}, t("About this library")), facts);
  fill(section, h("div", { class: "library-head" }, h("h1", {}, info?.name ?? t("Library")), forms), failure, note, begun, videosSection(does), searches, rootsSection(), twinsSection(), about);
  libraryInfo.onChange(drawFacts);
  const showAgain = () => { if (view.value === "library") void show(); };
  view.onChange(showAgain);
  api.connection.addEventListener("up", showAgain); // what was changed meanwhile
  drawFacts();
  showAgain();
}
