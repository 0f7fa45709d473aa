// Times, sizes, names and errors as people read them.

import { language, plural, t } from "./language.js";

/**
 * Seconds as m:ss or h:mm:ss, with tenths where they are asked for.
 *
 * @param {number} seconds
 * @param {number} [digits] behind the point
 */
export function clock(seconds, digits = 0) {
  const scale = 10 ** digits;
  const whole = Math.round(seconds * scale) / scale;
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = (whole % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

/**
 * Seconds written as 12.5, 1:02 or 1:02:03; null where it is something else.
 *
 * @param {string} text
 * @returns {number | null}
 */
export function seconds(text) {
  if (!/^(\d+:){0,2}\d+([.,]\d+)?$/.test(text.trim())) return null;
  return text.trim().replace(",", ".").split(":").reduce((total, part) => total * 60 + Number(part), 0);
}

/** Digits behind the point by which the ends of a span differ, be it one frame.
 * @param {{start: number, end: number}} span */
export const digitsOf = ({ start, end }) => [2, 0.099, 0.0099].filter((length) => end - start < length).length;

/** @param {{start: number, end: number}} span @param {number} [least] digits */
export function spanClock(span, least = 0) {
  const digits = Math.max(digitsOf(span), least);
  return `${clock(span.start, digits)}–${clock(span.end, digits)}`;
}

/** A span as it is read aloud.
 * @param {{start: number, end: number}} span */
export const spanWords = (span) => t("{start} to {end}", { start: clock(span.start, digitsOf(span)), end: clock(span.end, digitsOf(span)) });

/** @type {Record<string, string>} */
let renamed = {};

/** Take the names of files that are no longer called as their ids.
 * @param {Record<string, string>} [names] by id */
export const nameAsNow = (names = {}) => { renamed = names; };

/** The name that the file of a video has now, or the last part of its id. What follows a point in it is part of the name:
 * an id has no suffix where it needs none.
 * @param {string} video */
export const title = (video) => renamed[video] ?? (video.slice(video.lastIndexOf("/") + 1) || video);

/** A number as the reader's language writes it.
 * @param {number} value @param {number} [digits] behind the point */
export const number = (value, digits = 0) => value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** The day of a time, as the reader's language writes it.
 * @param {string} time ISO 8601 */
export const day = (time) => new Date(`${time.slice(0, 10)}T00:00Z`).toLocaleDateString(language, { timeZone: "UTC", dateStyle: "medium" });

/** A share in whole percent.
 * @param {number} share from 0 to 1 */
export const share = (share) => share.toLocaleString(language, { style: "percent", maximumFractionDigits: 0 });

/** @param {number} seconds for example of a whole library. */
export function long(seconds) {
  if (seconds >= 2 * 3600) return t("{n} hours", { n: number(seconds / 3600, 1) });
  return seconds >= 120 ? t("{n} minutes", { n: number(seconds / 60) }) : plural(Math.round(seconds), "{n} second", "{n} seconds");
}

/** A score in whole percent, rounded down: no moment seems to reach a band that it is not in.
 * @param {number} score */
export function percent(score) {
  const nearest = Math.round(100 * score);
  return nearest / 100 > score ? nearest - 1 : nearest;
}

/** @param {number} bytes */
export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${number(bytes / 1000 ** step, step ? 1 : 0)} ${units[step]}`;
}

/** Letters of scripts without spaces between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/**
 * A text with the words that were looked for marked: as words of their own, in scripts without spaces anywhere.
 *
 * @param {string} text
 * @param {Set<string>} words lower case
 * @returns {(Node | string)[]}
 */
export function marked(text, words) {
  const longest = [...words].filter((word) => word).sort((a, b) => b.length - a.length);
  if (!longest.length) return [text];
  const one = longest.map((word) => {
    const plain = word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
    return UNSPACED.test(word) ? plain : `(?<![\\p{L}\\p{N}])${plain}(?![\\p{L}\\p{N}\\p{M}])`;
  }).join("|");
  return text.split(new RegExp(`(${one})`, "giu")).map((part, i) => {
    if (i % 2 === 0) return part;
    const mark = document.createElement("mark");
    mark.textContent = part;
    return mark;
  });
}

/** Words of an answer's moment, and those of its reasons, as they stand in what is said and written.
 * @param {Set<string>} words @param {{why: {words: string[]}[]}} moment */
export const wordsWith = (words, { why }) => new Set([...words, ...why.flatMap((reason) => reason.words.map((word) => word.toLowerCase()))]);

/** What an error says.
 * @param {unknown} error */
export const reasonOf = (error) => (error instanceof Error ? error.message : String(error));
