// Everything the page asks of the server. No other module knows an address of the API. Addresses are relative: a proxy
// may have the page below a path.

import { language, t } from "./language.js";
import { questionFields } from "./store.js";

/**
 * @typedef {{start: number, end: number, score: number}} Part
 * @typedef {{video_id: string, start: number, end: number, score: number, rank: number, source: string,
 *   snippet: string, snippet_kind: string, steps: Part[], band: Band, why: {kind: string, score: number, words: string[]}[],
 *   folded: {start: number, end: number}[], by_key_frames?: boolean, duration: number, number: number, version: string}} Moment
 * @typedef {import("./asked.js").Asked["query"]} Query
 * @typedef {{name: string, form: string, filter: boolean, help: string, label: string, short: string, unit: string,
 *   default: any, choices: string[], example: any}} Field of a question, beside its query
 * @typedef {"strong" | "possible" | "weak"} Band
 * @typedef {{kind: "without" | "only without" | "unknown word" | "no concept" | "unmeasured" | "language" | "date" | "place" | "in part" | "by key frames" | "looked" | "not looked" | "words alone" | "by both", about: string, others: string[], remedy: string, text: string}} Note
 * @typedef {{query: string, confident: boolean, moments: Moment[], notes: Note[], timings: Record<string, number>}} Answer
 * @typedef {"search" | "collection" | "mark"} KeptKind
 * @typedef {{kind: KeptKind, name: string, version: number, changed: string, value: unknown}} Kept
 * @typedef {{name: string, title: string, right: number, wrong: number}} Concept
 * @typedef {{name: string, libraries: string[], version: string, videos: number, seconds: number, segments: number,
 *   renamed: Record<string, string>, encoder: string, sentence_encoder: string, models: Record<string, {name: string} | null>,
 *   evidence: string[], additions: string[], right: "read" | "change", writable: boolean, can_tag: boolean, is_open: boolean, opens_folders: boolean, can_ingest: boolean, ingest_folders: string[],
 *   looker: {model: string, host: string, stills: number, longest_side: number, letters: number, question_stills: number} | null, export_formats: {name: string, title: string, suffix: string, options: string[]}[], limits: Record<string, number>, bands: Record<Band, number>}} LibraryInfo
 * @typedef {{video_id: string, library: string, path: string, duration: number, state: "ready" | "partial" | "refused",
 *   error: string, why: Why, bytes: number, modified: string, width: number, height: number, number: number, version: string, away: boolean, taken: string, recording: {video_ids: string[], part: number} | null}} Video
 * @typedef {import("./reasons.js").Why} Why
 * @typedef {{path: string, videos: number, away: string, why: Why, watched: boolean, patterns: string[]}} Root
 * @typedef {{video_ids: string[], paths: string[], bytes: number, wasted: number}} Copies
 * @typedef {{kind: "subtitle" | "speech" | "text" | "chapter", language: string, cues: number}} Track
 * @typedef {{stream: number | null, about: string, held_as: string, used: boolean, said: string}} HeldPart
 * @typedef {Video & {fps: number | null, playable: boolean, stream_ready: boolean, tracks: Track[], holds: HeldPart[], subtitles: string[], unread: string[], says: {kind: string, text: string}[]}} VideoDetails
 * @typedef {{start: number, end: number, kind: string}} Shot
 * @typedef {{start: number, end: number, text: string, kind: string, language: string, form: string}} Cue
 * @typedef {{times: number[], scores: number[]}} Curve
 * @typedef {{video: string, reason: string, why: Why}} Refused
 * @typedef {{job: string, library: string, sources: string[], state: "queued" | "running" | "done" | "failed" | "cancelled", done: number,
 *   total: number, share: number, seconds_left: number | null, step: string, video: string, refused: Refused[], added: number, copies: number, error: string}} Job
 * @typedef {{videos: number, folders: {path: string, parent: string, videos: number}[], days: {day: string, videos: number}[],
 *   lengths: {low: number, high: number | null, videos: number}[], cameras: {camera: string, videos: number}[],
 *   places: {latitude: number, longitude: number, videos: number}[], tags: {tag: string, videos: number}[],
 *   evidence: {by: string, videos: number}[]}} Facets
 * @typedef {{videos: {video_id: string, duration: number}[], tags: {tag: string, videos: number}[]}} Completions
 * @typedef {{kind: "same" | "part", certainty: number, sides: {video: Video, start: number, end: number}[]}} NearCopies
 * @typedef {{video_id: string, version?: string}} OfVideo a version makes addresses that may be kept for ever.
 */

/** What the server refused, in its own words. */
export class ApiError extends Error {
  /**
   * @param {string} code one of the API's error codes.
   * @param {string} message
   * @param {string} [field] the wrong field of the request, with dots.
   * @param {import("./waiting.js").WorkProgress | null} [progress] of what is waited for.
   */
  constructor(code, message, field = "", progress = null) {
    super(message);
    this.code = code;
    this.field = field;
    this.progress = progress;
  }
}

/** The server could not be reached. */
export class Unreachable extends Error {}

/** Says "down" and "up" as the server goes and comes back. */
export const connection = new EventTarget();

const FIRST_RETRY = 500;
const LAST_RETRY = 5000;
let down = false;

/** Ask for a sign of life, ever less often, until there is one. */
async function waitForServer() {
  down = true;
  connection.dispatchEvent(new Event("down"));
  for (let wait = FIRST_RETRY; ; wait = Math.min(wait * 1.5, LAST_RETRY)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const alive = await fetch("healthz", { cache: "no-store" }).then((answer) => answer.ok, () => false);
    if (alive) break;
  }
  down = false;
  connection.dispatchEvent(new Event("up"));
}

/**
 * @param {string} path
 * @param {RequestInit} [options]
 * @returns {Promise<Response>}
 */
async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    if (!down) void waitForServer();
    throw new Unreachable(t("the server does not answer"));
  }
  if (!response.ok) throw refusal(response.status, await response.json().catch(() => null));
  return response;
}

/** What the errors of the server mean, by their codes.
 * @type {Record<string, string>} */
export const SAID = {
  invalid_value: t("The server cannot do anything with this."),
  not_found: t("This is not in the library, or no longer."),
  method: t("The server does not know this request."),
  too_large: t("This is larger than the server takes."),
  unauthorised: t("A token is needed."),
  forbidden: t("This is not allowed here."),
  busy: t("The server is busy; in a moment it has room again."),
  unavailable: t("This is not possible with the library or the file as it is."),
  internal: t("The server failed on this; its log says more."),
  version: t("The page and the server do not fit together; load the page again."),
  media_type: t("The server does not take files of this kind."),
  checksum: t("Something was damaged on its way; send it again."),
  range: t("The file ends before that part."),
};

/** What the server refused, in the reader's language: its own words, which name the value and the remedy, are English.
 * @param {string} code @param {string} field @param {string} words */
function inWords(code, field, words) {
  if (language === "en" && words) return words;
  const label = questionFields.value.find(({ name }) => field === name || field === `filter.${name}`)?.label;
  const said = [label && `${t(label)}:`, SAID[code] ?? t("the server answered {status}", { status: code })].filter(Boolean).join(" ");
  return words ? t("{said} (In the words of the server: {words})", { said, words }) : said;
}

/** What the server refused, without names of the API for fields that nobody wrote by hand here.
 * @param {number} status @param {any} answer */
function refusal(status, answer) {
  const { code = String(status), message = "", field = "", longest = 0, progress = null } = answer?.error ?? {};
  if (status === 401) location.reload(); // to the form for the token
  const said = longest ? t("Too long: at most {n} characters can be given.", { n: longest.toLocaleString(language) })
    : field.endsWith(".picture") ? t("A picture of this search is not on the server, or no longer: choose it again.") : inWords(code, field, message);
  return new ApiError(code, said, field, progress);
}

const JSON_TYPE = { "Content-Type": "application/json" };

/** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function getJson(path, signal) {
  return (await request(path, { signal })).json();
}

/** @param {string} path @param {unknown} body @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function postJson(path, body, signal) {
  return (await request(path, { method: "POST", headers: JSON_TYPE, body: JSON.stringify(body), signal })).json();
}

/** @typedef {Record<string, string | number | boolean | undefined>} Parameters those that are undefined or empty are left out. */

/** @param {string} path @param {Parameters} parameters */
function addressOf(path, parameters) {
  const given = Object.entries(parameters).flatMap(([name, value]) => (value === undefined || value === "" ? [] : [[name, String(value)]]));
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** @param {string} video @param {string} what @param {Parameters} [parameters] */
const videoUrl = (video, what, parameters = {}) => addressOf(`api/videos/${encodeURIComponent(video)}${what}`, parameters);

/** Milliseconds are enough, and the same still then has the same address.
 * @param {number} seconds */
const rounded = (seconds) => Math.round(seconds * 1000) / 1000;

export const url = {
  /** @param {OfVideo} video @param {number} time @param {number} [width] */
  still: ({ video_id, version }, time, width = 480) =>
    videoUrl(video_id, "/still", { time: rounded(time), width, v: version }),
  /** @param {OfVideo & {start: number, end: number}} span @param {number} count @param {number} width of each */
  strip: ({ video_id, start, end, version }, count, width) =>
    videoUrl(video_id, "/strip", { start: rounded(start), end: rounded(end), count, width, v: version }),
  /** @param {string} picture */
  picture: (picture) => `api/pictures/${encodeURIComponent(picture)}`,
  /** @param {string} video */
  stream: (video) => videoUrl(video, "/stream"),
  /** @param {string} video @param {number} start @param {number} end */
  clip: (video, start, end) => videoUrl(video, "/clip", { start: rounded(start), end: rounded(end), mode: "exact" }),
};

/** @returns {Promise<Field[]>} */
export const fields = async () => (await getJson("api/fields")).fields;

/** @returns {Promise<LibraryInfo>} */
export const library = () => getJson("api/library");

/** @param {import("./asked.js").Asked} asked @param {AbortSignal} signal @returns {Promise<Answer>} */
export const search = (asked, signal) => postJson("api/search", asked, signal);

/** @param {Query} query @param {string} video @param {AbortSignal} [signal] @returns {Promise<Curve>} */
export const curve = (query, video, signal) => postJson("api/curve", { query, video_id: video }, signal);

/** @param {string} video @param {AbortSignal} [signal] @returns {Promise<VideoDetails>} */
export const video = (video, signal) => getJson(videoUrl(video, ""), signal);

/** Why the stream of a video is not given; null where it is.
 * @param {string} video @param {AbortSignal} signal @returns {Promise<ApiError | null>} */
export async function streamRefusal(video, signal) {
  try {
    await (await request(videoUrl(video, "/stream"), { headers: { Range: "bytes=0-0" }, signal })).arrayBuffer();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  return null;
}

/** @param {string} video @param {AbortSignal} [signal] @returns {Promise<Shot[]>} */
export const shots = async (video, signal) => (await getJson(videoUrl(video, "/shots"), signal)).shots;

/** @param {string} video @param {AbortSignal} [signal] @returns {Promise<Cue[]>} */
export const cues = async (video, signal) => (await getJson(videoUrl(video, "/cues"), signal)).cues;

/** @returns {Promise<Root[]>} */
export const roots = async () => (await getJson("api/roots")).roots;

/** @returns {Promise<Copies[]>} */
export const duplicates = async () => (await getJson("api/duplicates")).duplicates;

/** @returns {Promise<Facets>} */
export const facets = () => getJson("api/facets");

/** Videos and tags whose names begin or go on so.
 * @param {string} text @param {AbortSignal} signal @returns {Promise<Completions>} */
export const completions = (text, signal) => getJson(addressOf("api/completions", { text }), signal);

/** Videos that show the same, as far as that is known; or compare those that were not compared yet.
 * @param {boolean} [find]
 * @returns {Promise<{copies: NearCopies[], comparing: import("./waiting.js").WorkProgress | null, error: string}>} */
export const nearCopies = async (find) => (await request("api/near-copies", find ? { method: "POST" } : {})).json();

export const endComparison = () => request("api/near-copies/comparison", { method: "DELETE" });

/** Encode a video again, or only read its subtitles and text.
 * @param {string} video @param {boolean} pictures @returns {Promise<Job>} */
export const processAgain = (video, pictures) => postJson(videoUrl(video, "/again", { pictures }), {});

/** Give a track of a video its right language.
 * @param {string} video @param {Track} track @param {string} language */
export const sayLanguage = (video, { kind, language: before }, language) =>
  request(videoUrl(video, "/language"), { method: "PUT", headers: JSON_TYPE, body: JSON.stringify({ kind, before, language }) });

/** @returns {Promise<string[]>} queries to try */
export const examples = async () => (await getJson("api/examples")).texts;

/** @param {string} video */
export const openFolder = (video) => request(videoUrl(video, "/folder"), { method: "POST" });

/** @param {string} video */
export const removeVideo = (video) => request(videoUrl(video, ""), { method: "DELETE" });

/** @param {string} video */
export const restoreVideo = (video) => request(videoUrl(video, "/restore"), { method: "POST" });

const TUS = { "Tus-Resumable": "1.0.0" };

/** @param {File} file @returns {Promise<string>} address of the upload */
export async function beginUpload(file) {
  const name = btoa(String.fromCharCode(...new TextEncoder().encode(file.name)));
  const headers = { ...TUS, "Upload-Length": String(file.size), "Upload-Metadata": `filename ${name}` };
  const begun = (await request("api/uploads", { method: "POST", headers })).headers.get("Location") ?? "";
  return `api/uploads/${begun.slice(begun.lastIndexOf("/") + 1)}`; // below the page, wherever a proxy has it
}

/** How much of a video is there, and where it lies on the server when it is whole.
 * @param {string} address @returns {Promise<{offset: number, path: string}>} */
export const uploadState = (address) => getJson(address);

/** @param {string} address */
export const cancelUpload = (address) => request(address, { method: "DELETE", headers: TUS });

/** Send bytes of a video; gives how many are there then. Not by fetch, which does not say how many were sent.
 * @param {string} address @param {Blob} part @param {number} offset @param {(bytes: number) => void} progress @param {AbortSignal} signal
 * @returns {Promise<number>} */
export function sendPart(address, part, offset, progress, signal) {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open("PATCH", address);
    sending.responseType = "json";
    for (const [name, value] of Object.entries({ ...TUS, "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" }))
      sending.setRequestHeader(name, value);
    sending.upload.addEventListener("progress", (event) => progress(offset + event.loaded));
    sending.addEventListener("load", () => {
      const { response, status } = sending;
      if (status === 204) resolve(Number(sending.getResponseHeader("Upload-Offset")));
      else reject(refusal(status, response));
    });
    for (const end of ["error", "abort"]) sending.addEventListener(end, () => reject(new Unreachable(t("the connection broke off"))));
    signal.addEventListener("abort", () => sending.abort());
    sending.send(part);
  });
}

/**
 * @param {{offset: number, limit: number, state: string, text: string, sort?: string, descending?: boolean}} fields
 * @param {AbortSignal} [signal]
 * @returns {Promise<{total: number, videos: Video[]}>}
 */
export const videos = (fields, signal) => getJson(addressOf("api/videos", fields), signal);

/** What people keep in the library.
 * @param {KeptKind} kind @returns {Promise<Kept[]>} */
export const kept = async (kind) => (await getJson(addressOf("api/kept", { kind }))).entries;

/** Up to which number of a video saved searches were checked for what is new, by name.
 * @returns {Promise<Record<string, number>>} */
export const alerted = async () => (await getJson("api/kept/alerted")).alerted;

/** The latest video that was there when saved searches were opened last, by name.
 * @returns {Promise<Record<string, number>>} */
export const openedSearches = async () => (await getJson("api/kept/opened")).opened;

/** Note that a saved search is opened, also where the page is left for it.
 * @param {string} name @param {number} version number of the latest video */
export const openSearch = (name, version) => request("api/kept/opened", { method: "PUT", headers: JSON_TYPE, body: JSON.stringify({ name, version }), keepalive: true });

/** Characters of a request that goes on when the page is left: browsers let 64 KiB do so, all requests together. */
const OUTLIVES = 10_000;

/** Keep something; with a version, only in place of that one.
 * @param {KeptKind} kind @param {string} name @param {unknown} value @param {number} [version] @returns {Promise<Kept>} */
export async function keep(kind, name, value, version) {
  const body = JSON.stringify({ kind, name, value, version });
  return (await request("api/kept", { method: "PUT", headers: JSON_TYPE, body, keepalive: body.length < OUTLIVES })).json();
}

/** Delete an entry; with a version, only that one. Nothing happens to one that is gone already.
 * @param {KeptKind} kind @param {string} name @param {number} [version] */
export async function unkeep(kind, name, version) {
  try {
    await request(addressOf("api/kept", { kind, name, version }), { method: "DELETE" });
  } catch (error) {
    if (!(error instanceof ApiError && error.code === "not_found")) throw error;
  }
}

/** @returns {Promise<Concept[]>} */
export const concepts = async () => (await getJson("api/concepts")).concepts;

/** Keep what the marks of a query teach.
 * @param {string} title @param {Query} query @returns {Promise<Concept>} */
export const teach = (title, query) => postJson("api/concepts", { title, query });

/** @param {Blob} picture @returns {Promise<string>} its id */
export async function sendPicture(picture) {
  const headers = { "Content-Type": picture.type };
  const response = await request("api/pictures", { method: "POST", headers, body: picture });
  return (await response.json()).picture;
}

/**
 * @typedef {{export: string, state: "running" | "done" | "failed" | "cancelled", file: string, error: string,
 *   share: number | null, seconds_left: number | null}} ExportState
 */

/** @param {{format: string, title: string, moments: unknown[], options: Record<string, string | boolean>}} fields @returns {Promise<ExportState>} */
export const beginExport = (fields) => postJson("api/exports", fields);

/** @param {ExportState} of @returns {Promise<ExportState>} */
export const exportState = (of) => getJson(`api/exports/${of.export}`);

/** @param {ExportState} of */
export const cancelExport = (of) => request(`api/exports/${of.export}`, { method: "DELETE" });

/** @param {ExportState} of */
export const exportFile = (of) => `api/exports/${of.export}/file`;

/**
 * @typedef {{video_id: string, start: number, end: number, version: string, away: boolean, looked: boolean}} CitedMoment
 * @typedef {{sentences: {text: string, cites: CitedMoment[]}[], untold: boolean, left_out: number, cause: string, searches: string[],
 *   failed: string[], stills: number}} FilmAnswer
 * @typedef {{id: string, question: string, state: "queued" | "running" | "done" | "failed" | "cancelled", model: string, host: string,
 *   sent: {moments: number, stills: number, bytes: number, letters: number}[], answer: FilmAnswer | null, error: string}} QuestionState
 */

/** Ask a model about the films.
 * @param {string} question @returns {Promise<QuestionState>} */
export const beginQuestion = (question) => postJson("api/questions", { question });

/** @param {QuestionState} of @returns {Promise<QuestionState>} */
export const questionState = (of) => getJson(`api/questions/${of.id}`);

/** End the work on a question, also where the page is left.
 * @param {QuestionState} of */
export const cancelQuestion = (of) => request(`api/questions/${of.id}`, { method: "DELETE", keepalive: true });

/** Submit a picture of a video to the evaluation server.
 * @param {string} video_id @param {number} start @returns {Promise<{verdict: string, description: string}>} */
export const submit = (video_id, start) => postJson("api/dres/submissions", { video_id, start });

/** @returns {Promise<Job[]>} */
export const jobs = async () => (await getJson("api/jobs")).jobs;

/** @param {string[]} sources @param {string} library its name; empty: the only one @returns {Promise<Job>} */
export const startJob = (sources, library) => postJson("api/jobs", { sources, library: library || undefined });

/** @param {Job} job */
export const cancelJob = (job) => request(`api/jobs/${job.job}`, { method: "DELETE" });
