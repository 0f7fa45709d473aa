// Suggestions while a query is typed: taught names after "@", else videos and tags that are called so.

import * as api from "../base/api.js";
import { textOf } from "../base/asked.js";
import { fill, h } from "../base/dom.js";
import { clock, title } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { changeSearch, currentSearch } from "../base/store.js";
import { alsoIn } from "../base/within.js";

/** @typedef {{name: string, about: string, take: () => void}} Offer */

const MOST = 8;
const [LEAST, LONGEST] = [2, 200]; // letters of a video's or a tag's name; the server takes no more
const TYPING = 120; // ms
const NAME = /(^|\s)@([\p{L}\p{M}\p{N}-]*)$/u; // before the caret

/** Offer names in a field; the list stands beside it.
 * @param {HTMLInputElement} input @param {(text: string) => void} taken called with the text that has the name in it
 * @returns {HTMLElement} */
export function suggestions(input, taken) {
  const list = h("ul", { class: "suggestions", role: "listbox", id: `${input.id}-names`, "aria-label": t("Suggestions"), hidden: true });
  /** @type {Offer[]} */
  let offered = [];
  let at = -1;
  let timer = 0;
  let asking = new AbortController();

  const typed = () => NAME.exec(input.value.slice(0, input.selectionStart ?? input.value.length))?.[2];

  const close = () => {
    clearTimeout(timer);
    asking.abort();
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };

  const draw = () => {
    fill(list, offered.map(({ name, about, take }, i) => h("li", {
      role: "option", id: `${list.id}-${i}`, "aria-selected": String(i === at),
      onpointerdown: (/** @type {Event} */ event) => event.preventDefault(), onclick: () => { close(); take(); },
    }, h("strong", { dir: "auto" }, name), h("span", { class: "muted", dir: "auto" }, about))));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    if (at < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", `${list.id}-${at}`);
    list.children[at]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };

  /** @param {Offer[]} offers @param {number} first which one Enter takes; -1: none yet */
  const show = (offers, first) => {
    [offered, at] = [offers.slice(0, MOST), first];
    list.classList.toggle("in-line", first < 0); // in a line of their own: they must not lie over what stands below
    if (offered.length) draw();
    else close();
  };

  /** @param {string} name @param {string} begun in whose place it comes */
  const complete = (name, begun) => {
    const caret = input.selectionStart ?? input.value.length;
    input.value = `${input.value.slice(0, caret - begun.length)}${name} ${input.value.slice(caret).trimStart()}`;
    taken(input.value);
  };

  /** @param {string} begun */
  const offerTaught = async (begun) => {
    const known = await api.concepts().catch(() => []);
    if (typed() !== begun) return; // more was typed meanwhile
    const wanted = begun.toLowerCase();
    const found = known.filter(({ name, title }) => name.startsWith(wanted) || title.toLowerCase().startsWith(wanted));
    if (found.some(({ name }) => name === wanted)) return close();
    show(found.map(({ name, title }) => ({ name: `@${name}`, about: title, take: () => complete(name, begun) })), 0);
  };

  /** @param {AbortSignal} signal */
  const offerNamed = async (signal) => {
    const text = input.value.trim();
    const { videos, tags } = await api.completions(text, signal).catch(() => ({ videos: [], tags: [] }));
    if (signal.aborted || text !== input.value.trim()) return;
    show([
      ...videos.map(({ video_id, duration }) => ({ name: title(video_id), about: `${t("in this video")}, ${clock(duration)}`, take: () => { taken(""); alsoIn(video_id); } })),
      ...tags.map(({ tag, videos }) => ({ name: tag, about: `${t("tag")}, ${plural(videos, "{n} video", "{n} videos")}`, take: () => { taken(""); tagged(tag); } })),
    ], -1);
  };

  const offer = () => {
    close();
    const begun = typed();
    if (begun !== undefined) return void offerTaught(begun);
    const { length } = input.value.trim();
    if (length < LEAST || length > LONGEST) return;
    asking = new AbortController();
    timer = window.setTimeout(() => void offerNamed(asking.signal), TYPING);
  };

  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-expanded", "false");
  input.setAttribute("aria-controls", list.id);
  input.addEventListener("input", offer);
  // A line of its own stays: things below must not move away under a click.
  input.addEventListener("blur", () => { if (!list.classList.contains("in-line")) close(); });
  currentSearch.onChange((search, before) => {
    const text = textOf(search);
    if (text !== textOf(before) && text !== input.value.trim()) close();
  });
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return event.key === "Enter" ? close() : undefined;
    const now = offered[at];
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const least = list.classList.contains("in-line") ? -1 : 0; // of names after "@" one is always chosen
    if (move && (at < offered.length - 1 || move < 0 || least === 0)) { at = Math.min(Math.max(least, at + move), offered.length - 1); draw(); }
    else if ((event.key === "Enter" || event.key === "Tab") && now) { close(); now.take(); }
    else if (event.key === "Escape") close();
    else return event.key === "Enter" || move ? close() : undefined; // on with what is typed, down to the results
    event.preventDefault();
    event.stopPropagation();
  });
  return list;
}

/** Only videos with a tag.
 * @param {string} tag */
function tagged(tag) {
  const { filter } = currentSearch.value;
  changeSearch({ filter: { ...filter, tag: [...(filter.tag?.split("\n") ?? []).filter((one) => one !== tag), tag].join("\n") } });
}
