// The collection, written to a file: its format, and what can be chosen of that format.

import * as api from "../base/api.js";
import { collection, collectionName } from "./collecting.js";
import { fill, h, icon, iconButton, refill } from "../base/dom.js";
import { reasonOf } from "../base/format.js";
import { t } from "../base/language.js";
import { libraryInfo, remembered } from "../base/store.js";
import { progressBar, saidProgress } from "../base/waiting.js";

const POLL = 500; // ms

/** @typedef {{element: HTMLElement, value: () => string | boolean | null, set: (value: string | boolean) => void}} Choice null: as it comes. */

/** What was chosen last. */
const last = remembered("moviola.export", { format: "", options: /** @type {Record<string, string | boolean>} */ ({}) });

/** @param {string} label @param {[string, string][]} values and what they are called; the empty one is as it comes. @returns {Choice} */
function oneOf(label, values) {
  const select = h("select", { "aria-label": label, title: label }, values.map(([value, name]) => h("option", { value }, name)));
  return { element: select, value: () => select.value || null, set: (value) => { select.value = String(value); } };
}

/** @returns {Choice} */
function counting() {
  const { element, value, set } = oneOf(t("Timecode"), [["", t("counted as the videos")], ["drop", t("drop-frame")], ["non-drop", t("non-drop")]]);
  return { element, value: () => (value() === null ? null : value() === "drop"), set: (drop) => set(drop ? "drop" : "non-drop") };
}

/** @returns {Choice} */
function startTimecode() {
  const input = h("input", { type: "text", class: "timecode", value: "01:00:00:00", pattern: "[0-9]{2}:[0-9]{2}:[0-9]{2}[:;][0-9]{2}", "aria-label": t("Timecode of the first frame"), title: t("Timecode of the first frame, hh:mm:ss:ff") });
  return { element: input, value: () => input.value.trim() || null, set: (value) => { input.value = String(value); } };
}

/** @returns {Choice} */
function titleCards() {
  const box = h("input", { type: "checkbox" });
  return { element: h("label", { class: "check" }, box, t("title cards")), value: () => box.checked || null, set: (value) => { box.checked = Boolean(value); } };
}

/** What can be chosen, by the name that the server has for it: a format heeds some.
 * @type {Record<string, () => Choice>} */
const CHOICES = {
  rate: () => oneOf(t("Frames a second"), [["", t("rate of the videos")], ...["23.976", "24", "25", "29.97", "30", "50", "59.94", "60"].map((rate) => /** @type {[string, string]} */ ([rate, t("{rate} fps", { rate })]))]),
  drop_frame: counting,
  start_timecode: startTimecode,
  mode: () => oneOf(t("How clips are cut"), [["exact", t("cut exactly")], ["key-frames", t("copied from key frames")]]),
  titles: titleCards,
};

/** What the formats are called, by the name that the server has for them; the others have no words in theirs.
 * @type {Record<string, string>} */
const TITLES = {
  csv: t("Table (CSV)"), edl: t("EDL, CMX 3600: cuts"), "edl-markers": t("EDL: markers on the cuts"),
  "edl-markers-video": t("EDL: markers in one video"), vtt: t("Chapters of one video (WebVTT)"),
  "vtt-videos": t("Chapters, a file per video (WebVTT)"), "vtt-film": t("Chapters of the film (WebVTT)"),
  film: t("One film of all (MP4)"), clips: t("Clips (MP4)"), sheet: t("Contact sheet (PNG)"),
};

/** Format, what can be chosen of it, and the button that writes.
 * @param {HTMLElement} failure says why nothing was written. */
export function exportForm(failure) {
  const formats = libraryInfo.value?.export_formats ?? [];
  const select = h("select", { "aria-label": t("Format") }, formats.map((format) => h("option", { value: format.name }, TITLES[format.name] ?? format.title)));
  const button = h("button", { type: "submit", class: "main" }, icon("download"), t("Export"));
  const going = h("div", { class: "jobs" });
  const choices = h("span", { class: "export-choices" });
  /** @type {Map<string, Choice>} */
  let chosen = new Map();
  const make = (/** @type {string} */ name, /** @type {() => Choice} */ made) => {
    const choice = made();
    const before = last.value.options[name];
    if (before !== undefined) choice.set(before);
    return choice;
  };
  if (formats.some(({ name }) => name === last.value.format)) select.value = last.value.format;
  const choose = () => {
    const heeded = formats.find((format) => format.name === select.value)?.options ?? [];
    chosen = new Map(Object.entries(CHOICES).filter(([name]) => heeded.includes(name)).map(([name, made]) => [name, chosen.get(name) ?? make(name, made)]));
    fill(choices, [...chosen.values()].map((choice) => choice.element));
  };
  select.addEventListener("change", choose);
  choose();
  const form = h("form", { class: "export-form" }, select, choices, button, going);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const options = Object.fromEntries([...chosen].map(([name, choice]) => [name, choice.value()]).filter(([, value]) => value !== null));
    const others = Object.entries(last.value.options).filter(([name]) => !chosen.has(name));
    last.value = { format: select.value, options: { ...Object.fromEntries(others), ...options } };
    button.disabled = true;
    void save(select.value, options, failure, going).finally(() => { button.disabled = false; });
  });
  return form;
}

/** @param {string} format @param {Record<string, string | boolean>} options @param {HTMLElement} failure @param {HTMLElement} going */
async function save(format, options, failure, going) {
  fill(failure);
  const moments = collection.value.map(({ video_id, start, end, score, note, query }, i) => ({
    video_id, start, end, rank: i + 1, ...(score !== null && { score }), ...(query && { title: query }), ...(note && { note }),
  }));
  let cancelled = false;
  const cancel = (/** @type {api.ExportState} */ state) => { cancelled = true; void api.cancelExport(state).catch(() => {}); };
  try {
    let state = await api.beginExport({ format, title: collectionName.value, moments, options });
    while (state.state === "running") {
      drawProgress(going, state, cancel);
      await new Promise((resolve) => setTimeout(resolve, POLL));
      state = await api.exportState(state).catch((error) => {
        if (error instanceof api.Unreachable) return state; // the export goes on without this page
        throw error;
      });
    }
    if (state.state === "failed") throw new Error(state.error || t("the server's log says more"));
    h("a", { href: api.exportFile(state), download: state.file }).click();
  } catch (error) {
    if (cancelled) return;
    fill(failure, h("div", { class: "failure" }, h("strong", {}, t("Not exported")), h("p", {}, reasonOf(error))));
  } finally {
    refill(going);
  }
}

/** @param {HTMLElement} place @param {api.ExportState} state @param {(state: api.ExportState) => void} cancel */
function drawProgress(place, state, cancel) {
  refill(place, h("article", { class: "job", "aria-label": t("Export") }, h("div", { class: "job-head" }, h("strong", {}, t("exporting")),
    h("span", { class: "job-video" }, saidProgress(state)), iconButton("close", t("Cancel the export"), () => cancel(state))), progressBar(state.share, t("Progress of the export"))));
}
