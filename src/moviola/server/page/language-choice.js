// The choice of a language in the bar, and what of the page is written in its HTML.

import { byId, h, icon } from "./dom.js";
import { LANGUAGES, choose, language, t } from "./language.js";

/** @typedef {import("./language.js").Language} Language */

/** Put what stands in the HTML, marked with data-t, into the page's language.
 * @param {ParentNode} root */
function translate(root) {
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.textContent ?? "");
  for (const element of root.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(element.getAttribute("aria-label") ?? ""));
}

export function startLanguage() {
  translate(document);
  const select = h("select", { "aria-label": t("Language"), title: t("Language"), onchange: () => choose(/** @type {Language} */ (select.value)) },
    Object.entries(LANGUAGES).map(([code, name]) => h("option", { value: code, lang: code, selected: code === language }, name)));
  byId("bar-end", HTMLDivElement).append(h("span", { class: "icon-button language" }, icon("globe"), select));
}
