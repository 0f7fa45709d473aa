// A search as a link has it, and in a few words.

import { clock, title } from "./format.js";
import { t } from "./language.js";
import { GAP, NOTHING } from "./store.js";

/** @typedef {import("./store.js").Search} Search */
/** @typedef {import("./store.js").Likeness} Likeness */

const MARKS = /** @type {const} */ (["right", "wrong"]);

/** @param {number} seconds */
export const short = (seconds) => String(Math.round(seconds * 100) / 100);

/**
 * A search as the parameters of a link.
 *
 * @param {Search} search
 * @returns {URLSearchParams}
 */
export function parametersOf(search) {
  const found = new URLSearchParams();
  if (search.text.trim()) found.set("q", search.text.trim());
  if (search.weight !== 1) found.set("weight", String(search.weight));
  for (const like of search.likes)
    if (like.kind === "moment") found.append("like", `${like.video_id}@${short(like.time)}`);
    else found.append("picture", `${like.id}~${like.name}`);
  for (const step of search.then) if (step.text.trim()) found.append("then", `${step.gap ?? "any"}~${step.text.trim()}`);
  for (const text of search.not) if (text.trim()) found.append("not", text.trim());
  for (const [name, value] of Object.entries(search.filter)) found.set(`in.${name}`, value);
  for (const video of search.videos) found.append("video", video);
  if (search.by !== "all") found.set("by", search.by);
  if (search.minScore) found.set("min", String(search.minScore));
  if (!search.refine) found.set("coarse", "1");
  for (const mark of MARKS) for (const one of search[mark]) found.append(mark, `${one.video_id}@${short(one.start)}-${short(one.end)}`);
  return found;
}

/**
 * What a link asks; what cannot be read in it is left out.
 *
 * @param {URLSearchParams} parameters
 * @returns {Search}
 */
export function searchOf(parameters) {
  const all = (/** @type {string} */ name) => parameters.getAll(name);
  const filters = [...parameters].filter(([name]) => name.startsWith("in."));
  return {
    text: parameters.get("q") ?? "", weight: Number(parameters.get("weight")) || 1,
    likes: [...all("like").flatMap(momentLike), ...all("picture").map(pictureLike)],
    then: all("then").map(stepOf), not: all("not"),
    filter: Object.fromEntries(filters.map(([name, value]) => [name.slice("in.".length), value])),
    videos: all("video"), by: parameters.get("by") ?? NOTHING.by,
    refine: parameters.get("coarse") !== "1", minScore: Number(parameters.get("min")) || 0,
    right: all("right").flatMap(spanOf), wrong: all("wrong").flatMap(spanOf),
  };
}

/** A moment as VIDEO@START-END; none where it is not written so.
 * @param {string} text @returns {import("./store.js").Marked[]} */
export function spanOf(text) {
  const [, video_id, start, end] = /^(.+)@([\d.]+)-([\d.]+)$/s.exec(text) ?? [];
  return video_id && Number(start) < Number(end) ? [{ video_id, start: Number(start), end: Number(end) }] : [];
}

/** @param {string} text @returns {Likeness[]} */
function momentLike(text) {
  const at = text.lastIndexOf("@");
  const time = Number(text.slice(at + 1));
  return at > 0 && Number.isFinite(time) ? [{ kind: "moment", video_id: text.slice(0, at), time }] : [];
}

/** @param {string} text @returns {Likeness} */
function pictureLike(text) {
  const [id = "", ...name] = text.split("~");
  return { kind: "picture", id, name: name.join("~") || "picture" };
}

/** @param {string} text */
function stepOf(text) {
  const [, gap, words] = /^(\d+(?:\.\d+)?|any)~(.*)$/s.exec(text) ?? [];
  return gap === undefined ? { text, gap: GAP } : { text: words ?? "", gap: gap === "any" ? null : Number(gap) };
}

/** A search in a few words.
 * @param {Search} search */
export function describe({ text, likes, then, not }) {
  const alike = likes.map((like) => t("like {what}", { what: like.kind === "moment" ? `${title(like.video_id)} ${clock(like.time)}` : like.name }));
  return [
    [text.trim(), ...alike].filter(Boolean).join(" + "),
    ...then.filter((step) => step.text.trim()).map((step) => t("then {what}", { what: step.text.trim() })),
    ...not.filter((one) => one.trim()).map((one) => t("without {what}", { what: one.trim() })),
  ].join(", ");
}
