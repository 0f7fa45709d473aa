// What the library can be narrowed down by: folders, days, lengths, cameras, places, tags, with the videos that each has.

import { fill, h, iconButton } from "../base/dom.js";
import { clock, seconds } from "../base/format.js";
import { timeFacet } from "./days.js";
import { histogram } from "./histogram.js";
import { language, plural, t } from "../base/language.js";
import { circleOf, placeMap, textOf } from "./placemap.js";

/** @typedef {import("../base/api.js").Facets} Facets */
/** @typedef {(name: string, value: string) => void} SetFilter an empty value takes the filter away */
/** @typedef {{name: string, element: HTMLElement, draw: (facets: Facets, value: string) => void}} Facet */
/** @typedef {{value: string, text: string, videos: number | null, parent: string}} Choice a number that is not known is null */

/** The values of a filter that takes several, one a line.
 * @param {string} value */
const lines = (value) => value.split("\n").map((line) => line.trim()).filter(Boolean);

/** A group with a title and what takes its filter away.
 * @param {string} name @param {string} label @param {SetFilter} set @param {...Node} parts */
function group(name, label, set, ...parts) {
  const any = iconButton("close", t("Any: {what}", { what: label }), () => set(name, ""));
  const element = h("fieldset", { class: `facet facet-${name}` }, h("legend", {}, label, any), ...parts);
  /** @param {boolean} isThere @param {string} value */
  const show = (isThere, value) => { element.hidden = !isThere && !value; any.hidden = !value; };
  return { name, element, show };
}

/** Whether a folder is another one, or below it.
 * @param {string} path @param {string} above */
const isBelow = (path, above) => `${path}/`.startsWith(above.endsWith("/") ? above : `${above}/`);

/** Choices to tick; those with a parent stand below it, as in a tree.
 * @param {string} name @param {string} label @param {(facets: Facets) => Choice[]} choicesOf @param {SetFilter} set @returns {Facet} */
function choiceFacet(name, label, choicesOf, set) {
  const list = h("ul", { class: "choices" });
  const { element, show } = group(name, label, set, list);
  /** @type {Map<string, Choice[]>} */
  let below = new Map();
  let shown = "";
  let chosen = /** @type {string[]} */ ([]);

  const sync = () => { for (const box of list.querySelectorAll("input")) box.checked = chosen.includes(box.value); };
  /** A folder takes the place of those above and below it.
   * @param {HTMLInputElement} box */
  const change = ({ value, checked }) => {
    const apart = chosen.filter((other) => other !== value && (name !== "folder" || !(isBelow(other, value) || isBelow(value, other))));
    set(name, [...apart, ...(checked ? [value] : [])].join("\n"));
  };
  /** @param {Choice} choice */
  const row = ({ value, text, videos, parent }) => {
    const box = h("input", { type: "checkbox", value, onchange: () => change(box) });
    const number = videos === null ? null : h("span", { class: "figure muted", "aria-label": plural(videos, "{n} video", "{n} videos") }, videos.toLocaleString(language));
    const children = below.get(value);
    const inside = h("ul", { hidden: true });
    const toggle = children && h("button", { type: "button", class: "toggle", "aria-expanded": "false", "aria-label": t("Folders in {name}", { name: text }), onclick: () => unfold(Boolean(inside.hidden)) });
    /** @param {boolean} wide */
    const unfold = (wide) => {
      if (!inside.children.length) { fill(inside, children?.map(row) ?? []); sync(); }
      inside.hidden = !wide;
      toggle?.setAttribute("aria-expanded", String(wide));
    };
    if (children && (!parent || chosen.some((other) => isBelow(other, value)))) unfold(true);
    return h("li", {}, h("div", { class: "choice" }, toggle, h("label", { title: value }, box, h("span", { class: "choice-name", dir: "auto" }, text), number)), inside);
  };

  return {
    name, element,
    draw(facets, value) {
      chosen = lines(value);
      const known = choicesOf(facets);
      const others = chosen.filter((one) => !known.some((choice) => choice.value === one));
      const choices = [...others.map((one) => ({ value: one, text: one, videos: null, parent: "" })), ...known];
      show(known.length > 0, value);
      if (JSON.stringify(choices) !== shown) {
        shown = JSON.stringify(choices);
        below = Map.groupBy(choices, (choice) => choice.parent);
        fill(list, below.get("")?.map(row) ?? []);
      }
      sync();
    },
  };
}

/** @param {number[]} places @returns {[number, number] | null} the first and the last */
const ends = (places) => (places.length ? [places[0] ?? 0, places.at(-1) ?? 0] : null);

/** @param {SetFilter} set @returns {Facet} */
function lengthFacet(set) {
  /** @type {Facets["lengths"]} */
  let classes = [];
  const label = t("Length of the video");
  const bars = histogram(label, (first, last) => {
    const high = classes[last]?.high;
    set("video_length", `${clock(classes[first]?.low ?? 0)}..${high ? clock(high) : ""}`);
  }, () => set("video_length", ""));
  const { name, element, show } = group("video_length", label, set, bars.element);
  return {
    name, element,
    draw({ lengths }, value) {
      const [from, to] = ends(lengths.flatMap((one, i) => (one.videos ? [i] : []))) ?? [0, -1];
      classes = lengths.slice(from, to + 1);
      show(classes.length > 1, value);
      const [low, high] = value.split("..").map(seconds);
      bars.draw(classes.map((one) => ({ label: one.high ? `${clock(one.low)}–${clock(one.high)}` : t("from {length}", { length: clock(one.low) }), videos: one.videos })),
        value ? ends(classes.flatMap((one, i) => (one.low >= (low ?? 0) && (one.high ?? Infinity) <= (high ?? Infinity) ? [i] : []))) : null);
    },
  };
}

/** @param {SetFilter} set @returns {Facet} */
function placeFacet(set) {
  const map = placeMap((circle) => set("near", circle ? textOf(circle) : ""));
  const { name, element, show } = group("near", t("Place"), set, map.element);
  return { name, element, draw({ places }, value) { show(places.length > 0, value); map.draw(places, circleOf(value)); } };
}

/** All of them, in the order of the panel.
 * @param {SetFilter} set @returns {Facet[]} */
export const allFacets = (set) => [
  choiceFacet("folder", t("Folder"), ({ folders }) => folders.map(({ path, parent, videos }) => ({ value: path, text: path.slice(parent.length).replace(parent && /^[\\/]+/, "") || path, videos, parent })), set),
  timeFacet(set, group), placeFacet(set), lengthFacet(set),
  choiceFacet("camera", t("Camera"), ({ cameras }) => cameras.map(({ camera, videos }) => ({ value: `=${camera}`, text: camera, videos, parent: "" })), set),
  choiceFacet("tag", t("Tags"), ({ tags }) => tags.map(({ tag, videos }) => ({ value: tag, text: tag, videos, parent: "" })), set),
];
