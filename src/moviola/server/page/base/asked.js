// A question: as it is typed here, as the JSON that the server, links and saved searches have, and in a few words.

import { clock, title } from "./format.js";
import { t } from "./language.js";

/**
 * The JSON of a query (POST /api/search): terms, then later steps, what must not be there, marks on the answer. A first
 * part with exclusions or marks of its own stands in `first`, in place of terms.
 *
 * @typedef {{text: string, weight?: number, plain?: boolean}} TextTerm
 * @typedef {TextTerm | {video_id: string, time: number, weight?: number} | {picture: string, weight?: number}} Term
 * @typedef {{video_id: string, start: number, end: number}} Marked
 * @typedef {{terms?: Term[], first?: Part, then?: Step[], without?: Excluded[], right?: Marked[], wrong?: Marked[], concept?: string}} Part
 * @typedef {Part & {gap?: number | null}} Step
 * @typedef {string | Part} Excluded
 * @typedef {import("./api.js").Band} Band
 * @typedef {{query: string | Part, filter?: Record<string, string>, videos?: string[], by?: string, refine?: boolean,
 *   min_score?: number | Band, top_k?: number, per_video?: number, weak?: boolean, check?: number}} Asked
 *
 * The same with a place for all that can be typed, also where nothing is yet.
 * @typedef {Part & {terms: Term[], then: Step[], without: Excluded[], right: Marked[], wrong: Marked[]}} Query
 * @typedef {{query: Query, filter: Record<string, string>, videos: string[], by: string, refine: boolean, min_score: number | Band}} Search
 */

export const GAP = 60;

/** @type {Readonly<Query>} */
const NO_QUERY = Object.freeze({ terms: [], then: [], without: [], right: [], wrong: [] });
/** @type {Readonly<Search>} */
export const NOTHING = Object.freeze({ query: NO_QUERY, filter: {}, videos: [], by: "all", refine: true, min_score: 0 });

/** Names that a score may have instead of a number. */
const BANDS = ["strong", "possible", "weak"];

/** What pictures were called where they came from, by their names on the server.
 * @type {Map<string, string>} */
export const pictureNames = new Map();

/** @param {Term} term @returns {term is TextTerm} */
export const isText = (term) => "text" in term;

/** Whether a part is some words and nothing else: what a field can hold.
 * @param {Excluded | Step} part */
export function wordsOnly(part) {
  if (typeof part === "string") return true;
  const { terms = [], gap: _, ...more } = /** @type {Step} */ (part);
  const [term] = terms;
  return terms.length === 1 && Object.keys(more).length === 0 && term !== undefined && isText(term) && !term.plain;
}

/** The words of such a part.
 * @param {Excluded | Step | undefined} part @returns {string} */
export const wordsIn = (part) => (typeof part === "string" ? part : part?.terms?.filter(isText)[0]?.text ?? "");

/** The words of a search: its first text.
 * @param {Search} search */
export const textOf = ({ query }) => query.terms.find(isText)?.text ?? "";

/** Terms of the query beside these words: pictures, moments, other texts.
 * @param {Search} search @returns {Term[]} */
export function examplesOf({ query }) {
  const words = query.terms.find(isText);
  return query.terms.filter((term) => term !== words);
}

/** @param {Excluded | Part} part */
const says = (part) =>
  typeof part === "string" ? part.trim() !== ""
    : Boolean(part.terms?.some((term) => !isText(term) || term.text.trim()) || part.first || part.right?.length || part.wrong?.length || part.concept);

/** Whether there is something to look for.
 * @param {Search} search */
export const isEmpty = ({ query }) => !says(query);

// ---- JSON --------------------------------------------------------------------------------------------------

/** @param {unknown} value @returns {value is Record<string, any>} */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** A part as its JSON should be: what is no list of objects is none.
 * @param {unknown} value @returns {Query} */
function partOf(value) {
  const part = isObject(value) ? value : {};
  const list = (/** @type {string} */ name) => (Array.isArray(part[name]) ? part[name].filter(isObject) : []);
  const without = Array.isArray(part.without) ? part.without : [];
  return {
    ...part, ...(part.first && { first: partOf(part.first) }), then: list("then").map(tidy), right: list("right"), wrong: list("wrong"),
    terms: list("terms"), without: without.flatMap((one) => (typeof one === "string" ? [one] : isObject(one) ? [tidy(one)] : [])),
  };
}

/** The JSON of a part, without what says nothing.
 * @param {unknown} value @returns {any} */
function tidy(value) {
  const { terms, first, then, without, right, wrong, ...more } = partOf(value);
  const said = terms.filter((term) => !isText(term) || String(term.text).trim());
  const lists = { terms: said, then: then.filter(says), without: without.filter(says), right, wrong };
  return { ...Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length)), ...(first && { first: tidy(first) }), ...more };
}

/** The search of a question. A model looks at moments where a button is pressed, never by a link or a saved search.
 * @param {{query?: unknown, check?: unknown} & Record<string, unknown>} asked @returns {Search} */
export function searchOf({ query, check: _, ...options }) {
  const right = Object.entries(options).filter(([name, value]) => !(name in NOTHING) || typeof value === typeof NOTHING[/** @type {keyof Search} */ (name)] || (name === "min_score" && BANDS.includes(String(value))));
  const { filter, videos, ...others } = { ...NOTHING, ...Object.fromEntries(right) };
  const texts = isObject(filter) ? Object.entries(filter).filter(([, text]) => typeof text === "string") : [];
  return {
    ...others, query: typeof query === "string" ? { ...NO_QUERY, terms: [{ text: query }] } : partOf(query),
    filter: Object.fromEntries(texts), videos: Array.isArray(videos) ? videos.map(String) : [],
  };
}

/** The question of a search: what the server is asked, and what is saved.
 * @param {Search} search @returns {Asked} */
export function askedBy({ query, ...options }) {
  const part = tidy(query);
  const [term] = part.terms ?? [];
  if (part.terms?.length === 1) part.terms = [(({ weight: _, ...alone }) => alone)(term)];
  const isPlain = Object.keys(part).length === 1 && part.terms?.length === 1 && isText(term) && !term.plain;
  const given = Object.entries(options).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(NOTHING[/** @type {keyof Search} */ (name)]));
  return { query: isPlain ? term.text : part, ...Object.fromEntries(given) };
}

// ---- links -------------------------------------------------------------------------------------------------

/** Parameters of a link that are not of the question. */
const OF_THE_PAGE = ["play", "shown", "name"];

/** What a text is as JSON; itself where it is none.
 * @param {string} text @returns {unknown} */
function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * A search as the parameters of a link: the fields of its question, texts as they stand, others as JSON.
 *
 * @param {Search} search
 * @returns {URLSearchParams}
 */
export function parametersOf(search) {
  const { query, ...options } = askedBy(search);
  const fields = Object.entries(isEmpty(search) ? options : { query, ...options });
  return new URLSearchParams(fields.map(([name, value]) => [name, typeof value === "string" && valueOf(value) === value ? value : JSON.stringify(value)]));
}

/**
 * What a link asks; what cannot be read in it is left out.
 *
 * @param {URLSearchParams} parameters
 * @returns {Search}
 */
export const linkedSearch = (parameters) =>
  searchOf(Object.fromEntries([...parameters].filter(([name]) => !OF_THE_PAGE.includes(name)).map(([name, text]) => [name, valueOf(text)])));

/** @param {number} seconds */
export const short = (seconds) => String(Math.round(seconds * 1000) / 1000);

/** A moment as VIDEO@START-END; none where it is not written so.
 * @param {string} text @returns {Marked[]} */
export function spanOf(text) {
  const [, video_id, start, end] = /^(.+)@([\d.]+)-([\d.]+)$/s.exec(text) ?? [];
  return video_id && Number(start) < Number(end) ? [{ video_id, start: Number(start), end: Number(end) }] : [];
}

// ---- words -------------------------------------------------------------------------------------------------

/** @param {Term} term */
export function nameOf(term) {
  if (isText(term)) return term.text;
  return "picture" in term ? pictureNames.get(term.picture) ?? t("picture") : `${title(String(term.video_id))} ${clock(Number(term.time))}`;
}

/** @param {{right?: Marked[], wrong?: Marked[]}} marks */
export const marksIn = ({ right = [], wrong = [] }) =>
  [right.length && t("{n} right", { n: right.length }), wrong.length && t("{n} wrong", { n: wrong.length })].filter(Boolean).join(", ");

/** A part in a few words.
 * @param {Excluded} part @returns {string} */
export function describePart(part) {
  if (typeof part === "string") return part.trim();
  const terms = (part.terms ?? []).filter((term) => says({ terms: [term] })).map((term) => (isText(term) ? term.text.trim() : t("like {what}", { what: nameOf(term) })));
  const base = [part.concept && `@${part.concept}`, part.first && describePart(part.first), ...terms].filter(Boolean).join(" + ");
  return [
    base || marksIn(part),
    ...(part.then ?? []).filter(says).map((step) => t("then {what}", { what: describePart(step) })),
    ...(part.without ?? []).filter(says).map((one) => t("without {what}", { what: describePart(one) })),
  ].join(", ");
}

/** A search in a few words.
 * @param {Search} search */
export const describe = ({ query }) => describePart(query);

/**
 * All words that are looked for, lower case, for marking them where they are said.
 *
 * @param {Search} search
 * @returns {Set<string>}
 */
export function wordsOf({ query }) {
  /** @param {Part} part @returns {string[]} */
  const texts = (part) => [...(part.terms ?? []).filter(isText).map((term) => term.text), ...(part.first ? texts(part.first) : []), ...(part.then ?? []).flatMap(texts)];
  return new Set(texts(query).join(" ").toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []);
}
