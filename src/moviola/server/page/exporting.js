// The collection, written to a file: its format, and what can be chosen of that format.

import * as api from "./api.js";
import { collection, collectionName } from "./collecting.js";
import { fill, h, icon } from "./dom.js";
import { libraryInfo } from "./store.js";

/** @typedef {{element: HTMLElement, value: () => string | boolean | null}} Choice null: as it comes. */

/** @param {string} label @param {[string, string][]} values and what they are called; the empty one is as it comes. @returns {Choice} */
function oneOf(label, values) {
  const select = h("select", { "aria-label": label, title: label }, values.map(([value, name]) => h("option", { value }, name)));
  return { element: select, value: () => select.value || null };
}

/** @returns {Choice} */
function counting() {
  const { element, value } = oneOf("Timecode", [["", "counted as the videos"], ["drop", "drop-frame"], ["non-drop", "non-drop"]]);
  return { element, value: () => (value() === null ? null : value() === "drop") };
}

/** @returns {Choice} */
function startTimecode() {
  const input = h("input", { type: "text", class: "timecode", value: "01:00:00:00", pattern: "[0-9]{2}:[0-9]{2}:[0-9]{2}[:;][0-9]{2}", "aria-label": "Timecode of the first frame", title: "Timecode of the first frame, hh:mm:ss:ff" });
  return { element: input, value: () => input.value.trim() || null };
}

/** @returns {Choice} */
function titleCards() {
  const box = h("input", { type: "checkbox" });
  return { element: h("label", { class: "check" }, box, "title cards"), value: () => box.checked || null };
}

/** What can be chosen, by the name that the server has for it: a format heeds some.
 * @type {Record<string, () => Choice>} */
const CHOICES = {
  rate: () => oneOf("Frames a second", [["", "rate of the videos"], ...["23.976", "24", "25", "29.97", "30", "50", "59.94", "60"].map((rate) => /** @type {[string, string]} */ ([rate, `${rate} fps`]))]),
  drop_frame: counting,
  start_timecode: startTimecode,
  mode: () => oneOf("How clips are cut", [["exact", "cut exactly"], ["key-frames", "copied from key frames"]]),
  titles: titleCards,
};

/** Format, what can be chosen of it, and the button that writes.
 * @param {HTMLElement} failure says why nothing was written. */
export function exportForm(failure) {
  const formats = libraryInfo.value?.export_formats ?? [];
  const select = h("select", { "aria-label": "Format" }, formats.map((format) => h("option", { value: format.name }, format.title)));
  const button = h("button", { type: "submit", class: "main" }, icon("download"), "Export");
  const choices = h("span", { class: "export-choices" });
  /** @type {Map<string, Choice>} */
  let chosen = new Map();
  const choose = () => {
    const heeded = formats.find((format) => format.name === select.value)?.options ?? [];
    chosen = new Map(Object.entries(CHOICES).filter(([name]) => heeded.includes(name)).map(([name, make]) => [name, chosen.get(name) ?? make()]));
    fill(choices, [...chosen.values()].map((choice) => choice.element));
  };
  select.addEventListener("change", choose);
  choose();
  const form = h("form", { class: "export-form" }, select, choices, button);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const options = Object.fromEntries([...chosen].map(([name, choice]) => [name, choice.value()]).filter(([, value]) => value !== null));
    button.disabled = true;
    void save(select.value, options, failure).finally(() => { button.disabled = false; });
  });
  return form;
}

/** @param {string} format @param {Record<string, string | boolean>} options @param {HTMLElement} failure */
async function save(format, options, failure) {
  fill(failure);
  const moments = collection.value.map(({ video_id, start, end, score, note, query }, i) => ({
    video_id, start, end, rank: i + 1, ...(score !== null && { score }), ...(query && { title: query }), ...(note && { note }),
  }));
  try {
    const { name, content } = await api.exportMoments({ format, title: collectionName.value, moments, options });
    const link = h("a", { href: URL.createObjectURL(content), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch (error) {
    fill(failure, h("div", { class: "failure" }, h("strong", {}, "Not exported"), h("p", {}, error instanceof Error ? error.message : String(error))));
  }
}
