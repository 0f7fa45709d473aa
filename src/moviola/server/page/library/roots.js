// The folders of the library with how they stand, and files that lie there more than once.

import * as api from "../base/api.js";
import { fill, h } from "../base/dom.js";
import { size } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { latest } from "../base/latest.js";
import { reasonSaid } from "../base/reasons.js";

const SHOWN = 20; // groups of copies

const list = h("ul", { class: "roots" });
const copies = h("details", { class: "copies", hidden: true });

/** @param {api.Root} root */
function rootRow({ path, videos, away, why, watched, patterns }) {
  const state = away ? h("span", { class: "why" }, t("away: {why}", { why: reasonSaid(why, away) })) : watched ? t("watched") : "";
  return h("li", {}, h("span", { class: "path", dir: "auto" }, path), h("span", { class: "muted" }, plural(videos, "{n} video", "{n} videos")),
    h("span", { class: "state" }, state), patterns.length ? h("span", { class: "muted" }, t("without {patterns}", { patterns: patterns.join(", ") })) : null);
}

/** @param {api.Copies} group */
function copyRow({ paths, bytes }) {
  return h("li", {}, h("strong", {}, size(bytes)), h("ul", {}, paths.map((path) => h("li", { dir: "auto" }, path))));
}

const newest = latest();

export async function showRoots() {
  const known = await newest(Promise.all([api.roots(), api.duplicates()]).catch(() => [[], []]));
  if (!known) return;
  const [roots, groups] = known;
  fill(list, roots.map(rootRow));
  list.hidden = roots.length === 0;
  const wasted = groups.reduce((total, group) => total + group.wasted, 0);
  copies.hidden = groups.length === 0;
  fill(copies, h("summary", {}, plural(groups.length, "{n} file more than once, {size} too much", "{n} files more than once, {size} too much", { size: size(wasted) })), h("ul", {}, groups.slice(0, SHOWN).map(copyRow)));
}

export function rootsSection() {
  return h("section", { "aria-labelledby": "roots-title" }, h("h2", { id: "roots-title" }, t("Folders")), list, copies);
}
