// Videos that show the same, side by side: one can be kept, the other taken out.

import * as api from "../base/api.js";
import { h, iconButton, refill } from "../base/dom.js";
import { clock, reasonOf, size, title } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { latest } from "../base/latest.js";
import { openPlayer } from "../base/opening.js";
import { libraryInfo, view } from "../base/store.js";
import { progressBar, saidProgress } from "../base/waiting.js";
import { takeOut } from "./videos.js";

const MOST = 50; // pairs

const list = h("ul", { class: "twins" });
const summary = h("summary", {});
const folded = h("details", { class: "copies" }, summary, list);
const FEW = 3; // pairs that are shown at once
const PAUSE = 1000; // ms
const going = h("article", { class: "job", "aria-label": t("Compare all videos"), hidden: true });
let drawn = "";
let later = 0;
const said = h("p", { class: "muted", role: "status" });
const compare = h("button", { type: "button", class: "quiet", onclick: () => void find() }, t("Compare all videos"));
const section = h("section", { "aria-labelledby": "twins-title", hidden: true },
  h("div", { class: "table-head" }, h("h2", { id: "twins-title" }, t("Videos that show the same")), said, compare), going, folded);

/** @param {api.NearCopies["sides"][number]} side @param {api.Video} other */
function half({ video, start, end }, other) {
  const name = title(video.video_id);
  const span = { video_id: video.video_id, version: video.version, start, end };
  const play = h("button", { type: "button", class: "opener", "aria-label": t("Play {name}", { name }), onclick: () => openPlayer([span]) },
    h("img", { class: "still", alt: "", loading: "lazy", src: api.url.still(span, (start + end) / 2, 320) }));
  const keep = libraryInfo.value?.can_ingest && h("button", { type: "button", class: "plain", "aria-label": t("Keep {name} and take {other} out of the library", { name, other: title(other.video_id) }), onclick: () => void takeOut(other) }, t("Keep this one"));
  return h("div", {}, play, h("strong", { dir: "auto" }, name), h("span", { class: "path", dir: "auto" }, video.path),
    h("span", { class: "muted" }, `${clock(start)}–${clock(end)} / ${clock(video.duration)}, ${video.width} × ${video.height}, ${size(video.bytes)}`), keep);
}

/** @param {api.NearCopies} pair */
function row({ sides }) {
  const [one, other] = sides;
  return one && other ? h("li", {}, half(one, other.video), half(other, one.video)) : null;
}

/** Known copies, and how far a comparison is.
 * @param {Awaited<ReturnType<typeof api.nearCopies>>} known */
function draw({ copies: pairs, comparing, error }) {
  if (JSON.stringify(pairs) !== drawn) {
    drawn = JSON.stringify(pairs);
    refill(list, pairs.slice(0, MOST).map(row));
    folded.open ||= pairs.length <= FEW;
  }
  const mayCompare = Boolean(libraryInfo.value?.can_ingest);
  compare.hidden = !mayCompare || comparing !== null;
  said.textContent = error || (pairs.length || comparing ? "" : t("None known."));
  summary.textContent = plural(pairs.length, "{n} pair", "{n} pairs");
  folded.hidden = pairs.length === 0;
  section.hidden = !pairs.length && !mayCompare && !comparing;
  going.hidden = comparing === null;
  if (!comparing) return;
  const cancel = mayCompare && iconButton("close", t("Cancel"), () => void api.endComparison().then(showTwins, sayWhy));
  refill(going, h("div", { class: "job-head" }, h("strong", {}, t("Comparing…")), h("span", { class: "muted" }, saidProgress(comparing)), h("span", { class: "spring" }), cancel),
    progressBar(comparing.share, t("Comparing…")));
  clearTimeout(later);
  later = window.setTimeout(() => { if (view.value === "library") void showTwins(); }, PAUSE);
}

/** @param {unknown} error */
const sayWhy = (error) => { said.textContent = reasonOf(error); };

const newest = latest();

async function find() {
  compare.disabled = true;
  said.textContent = t("Comparing…");
  try {
    const known = await newest(api.nearCopies(true));
    if (known) draw(known);
  } catch (error) {
    sayWhy(error);
  } finally {
    compare.disabled = false;
  }
}

export async function showTwins() {
  const known = await newest(api.nearCopies().catch(() => null)); // the server is away, which the page says
  if (known) draw(known);
}

export const twinsSection = () => section;
