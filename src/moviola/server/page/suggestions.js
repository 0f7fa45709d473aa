// Names of what was taught, offered while "@" is typed.

import * as api from "./api.js";
import { fill, h } from "./dom.js";

const MOST = 8;
const NAME = /(^|\s)@([\p{L}\p{N}-]*)$/u; // before the caret

/** Offer names in a field; the list stands beside it.
 * @param {HTMLInputElement} input @param {(text: string) => void} taken called with the text that has the name in it
 * @returns {HTMLElement} */
export function suggestions(input, taken) {
  const list = h("ul", { class: "suggestions", role: "listbox", id: `${input.id}-names`, "aria-label": "Names of what was taught", hidden: true });
  /** @type {api.Concept[]} */
  let offered = [];
  let at = 0;

  const typed = () => NAME.exec(input.value.slice(0, input.selectionStart ?? input.value.length));

  const close = () => {
    offered = [];
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };

  const draw = () => {
    fill(list, offered.map((one, i) => h("li", {
      role: "option", id: `${list.id}-${i}`, "aria-selected": String(i === at),
      onpointerdown: (/** @type {Event} */ event) => { event.preventDefault(); at = i; take(); },
    }, h("strong", {}, `@${one.name}`), h("span", { class: "muted", dir: "auto" }, one.title))));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    input.setAttribute("aria-activedescendant", `${list.id}-${at}`);
  };

  const offer = async () => {
    const begun = typed()?.[2]?.toLowerCase();
    if (begun === undefined) return close();
    const known = await api.concepts().catch(() => []);
    if (typed()?.[2]?.toLowerCase() !== begun) return; // more was typed meanwhile
    offered = known.filter(({ name, title }) => name.startsWith(begun) || title.toLowerCase().startsWith(begun)).slice(0, MOST);
    at = 0;
    if (!offered.length || offered.some(({ name }) => name === begun)) close();
    else draw();
  };

  const take = () => {
    const [found, one] = [typed(), offered[at]];
    if (!found || !one) return;
    const caret = input.selectionStart ?? input.value.length;
    const before = input.value.slice(0, caret - (found[2]?.length ?? 0));
    input.value = `${before}${one.name} ${input.value.slice(caret).trimStart()}`;
    close();
    taken(input.value);
  };

  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-expanded", "false");
  input.setAttribute("aria-controls", list.id);
  input.addEventListener("input", () => void offer());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) { at = (at + move + offered.length) % offered.length; draw(); }
    else if (event.key === "Enter" || event.key === "Tab") take();
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return list;
}
