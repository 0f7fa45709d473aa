// The choice of a language in the bar.

import { byId, h, icon } from "./dom.js";
import { LANGUAGES, choose, language, t, translate } from "./language.js";

export function startLanguage() {
  translate(document);
  const select = h("select", { "aria-label": t("Language"), title: t("Language"), onchange: () => choose(select.value) },
    Object.entries(LANGUAGES).map(([code, name]) => h("option", { value: code, lang: code, selected: code === language }, name)));
  byId("bar-end", HTMLDivElement).append(h("span", { class: "icon-button language" }, icon("globe"), select));
}
