// What this client may do. With a token that only reads, what changes the library is not offered.

import { byId, h } from "./dom.js";
import { t } from "./language.js";
import { libraryInfo } from "./store.js";

const why = () => t("Your token only reads: you can search, watch and export, but not change the library.");

/** Whether several libraries are served as one: what belongs to one of them is not offered. */
export const areSeveral = () => (libraryInfo.value?.libraries.length ?? 1) > 1;

export const mayOnlyRead = () => libraryInfo.value?.right === "read";

export function showRight() {
  if (!mayOnlyRead()) return;
  byId("bar-end", HTMLDivElement).prepend(h("a", { class: "reading", href: "sign-in", title: `${why()} ${t("Sign in with another one")}` }, t("reading only")));
}

/** In place of what would bring videos in. */
export const readingNote = () => h("p", { class: "muted hint" }, why(), " ", h("a", { href: "sign-in" }, t("Sign in with another one")));
