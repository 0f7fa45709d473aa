// The collection that is worked on: moments that were put aside, in order, with notes.
//
// Collections are kept in the library, under names. This browser holds what it has not been able to keep there yet:
// where the library cannot be written to, its own ones, beside those of the library.

import * as api from "../base/api.js";
import { reasonOf } from "../base/format.js";
import { t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { Observable, libraryInfo, remembered } from "../base/store.js";

/** @typedef {{id: string, video_id: string, start: number, end: number, score: number | null, query: string, note: string}} Item */
/** @typedef {{name: string, version: number, items: Item[], unsaved: boolean}} State version 0: not in the library. */

const UNTITLED = t("Untitled");
const PAUSE = 500; // ms without a key after which a note that is being written goes to the library
const channel = new BroadcastChannel("moviola.collections");

export const collection = new Observable(/** @type {Item[]} */ ([]));

/** Under which name it is kept; what exported files are called.
 * @type {Observable<string>} */
export const collectionName = new Observable(UNTITLED);

/** All collections of the library, and those that this browser alone has. */
export const collectionNames = new Observable(/** @type {string[]} */ ([]));

let mirror = new Observable(/** @type {State | null} */ (null));
/** What the library does not have as it is here. */
let own = new Observable(/** @type {State[]} */ ([]));
/** The version in the library that a collection was read or kept as, by its name.
 * @type {Map<string, number>} */
const versions = new Map();
/** How often it was changed; what the library has is that many changes old. */
let changes = 0;
let kept = 0;
let saving = Promise.resolve();
let savingSoon = 0;
/** Notes that the library does not have yet, by the ids of their moments: what is shown of another version has them.
 * @type {Map<string, string>} */
const notes = new Map();
/** Moments that were taken out and may be put back, with the collection that each is from.
 * @type {Set<{name: string, item: Item, place: number}>} */
const takenOut = new Set();

/** @param {{video_id: string, start: number, end: number, title?: string, note?: string}} moment @returns {Item} */
const itemOf = ({ video_id, start, end, title = "", note = "" }) => ({ id: newId(), video_id, start, end, score: null, query: title, note });

const newId = () => crypto.randomUUID?.() ?? String(Math.random());

/** @param {string} name @returns {number} 0: not in the library. */
const versionOf = (name) => versions.get(name) ?? 0;

const isKeptInLibrary = () => Boolean(libraryInfo.value?.writable);

/** Whether the collection that is shown can be deleted: one of a library that cannot be written to stays there. */
export const isOwn = () => isKeptInLibrary() || !versionOf(collectionName.value);

/** Whether the library may have another version than the one that a change is based on.
 * @param {unknown} error @returns {error is api.ApiError} */
const isOutdated = (error) => error instanceof api.ApiError && error.code === "unavailable";

function remember() {
  const state = { name: collectionName.value, version: versionOf(collectionName.value), items: collection.value, unsaved: changes > kept };
  mirror.value = state;
  if (state.unsaved) own.value = [...own.value.filter((other) => other.name !== state.name), state];
  else forget(state.name);
}

/** @param {string} name of a collection that the library has, or that is no more. */
function forget(name) {
  if (own.value.some((other) => other.name === name)) own.value = own.value.filter((other) => other.name !== name);
}

/** @param {string} name @param {Item[]} items @param {number} version @param {boolean} [unsaved] */
function show(name, items, version, unsaved = false) {
  if (name !== collectionName.value) notes.clear();
  versions.set(name, version);
  collectionName.value = name;
  kept = changes;
  if (unsaved) changes += 1;
  collection.value = items;
  remember();
}

/** @param {api.Kept} entry */
function showKept(entry) {
  const theirs = entry.name === collectionName.value ? sameIds(itemsOf(entry), collection.value) : itemsOf(entry);
  const items = theirs.map((item) => ({ ...item, note: notes.get(item.id) ?? item.note }));
  show(entry.name, items, entry.version);
  if (items.some(({ note }, index) => note !== theirs[index]?.note)) change(items);
}

/** Another version of a collection, its moments by the ids that they have: the same moments, or those of the same
 * videos, whose ends were moved.
 * @param {Item[]} items @param {Item[]} known @returns {Item[]} */
function sameIds(items, known) {
  const left = new Set(known);
  const found = new Map();
  const same = [
    (/** @type {Item} */ a, /** @type {Item} */ b) => a.video_id === b.video_id && a.start === b.start && a.end === b.end,
    (/** @type {Item} */ a, /** @type {Item} */ b) => a.video_id === b.video_id,
  ];
  for (const isSame of same)
    for (const item of items) {
      const before = found.has(item) ? undefined : [...left].find((other) => isSame(item, other));
      if (before) found.set(item, before.id);
      if (before) left.delete(before);
    }
  return items.map((item) => ({ ...item, id: found.get(item) ?? item.id }));
}

/** Items in the words of the API.
 * @param {Item[]} items */
const valueOf = (items) => ({
  moments: items.map(({ video_id, start, end, query, note }) => ({ video_id, start, end, title: query.slice(0, 500), note: note.slice(0, 5000) })),
});

/** @param {api.Kept} entry @returns {Item[]} */
const itemsOf = ({ value }) => /** @type {{moments: Parameters<typeof itemOf>[0][]}} */ (value).moments.map(itemOf);

/** @param {Item[]} items */
function change(items) {
  changeHere(items);
  save();
}

/** Change the collection in this browser. One of a library that cannot be written to stays as it is: what is changed
 * is a copy of it.
 * @param {Item[]} items */
function changeHere(items) {
  if (!isOwn()) callShown(freeName(collectionName.value));
  changes += 1;
  collection.value = items;
  remember();
}

/** The collection that is shown is another one than that of the library from now on.
 * @param {string} name that the library does not have. */
function callShown(name) {
  versions.delete(name);
  collectionName.value = name;
}

/** @param {string} name @param {Iterable<string>} [names] of the library
 * @returns {string} the same, with a number if there is a collection of that name. */
function freeName(name, names = collectionNames.value) {
  const taken = new Set([...names, ...own.value.map((other) => other.name)]);
  let [free, number] = [name, 2];
  while (taken.has(free)) free = `${name} ${number++}`;
  return free;
}

export function save() {
  clearTimeout(savingSoon);
  return inTurn(push).catch(() => {});
}

/** Talk with the library after all that was begun before: what it answers is never older than what is known of it.
 * @template T @param {() => Promise<T>} talk @returns {Promise<T>} */
function inTurn(talk) {
  const done = saving.then(talk);
  saving = done.then(() => {}, () => {});
  return done;
}

/** Keep the collection in the library as it is now. If it has changed elsewhere, that version is shown. */
async function push() {
  if (changes === kept || !isKeptInLibrary()) return;
  const [name, pushed, written] = [collectionName.value, changes, [...notes]];
  try {
    const entry = await api.keep("collection", name, valueOf(collection.value), versionOf(name));
    versions.set(name, entry.version);
    if (collectionName.value !== name) return;
    kept = pushed;
    for (const [id, note] of written) if (notes.get(id) === note) notes.delete(id);
    if (!collectionNames.value.includes(name)) await readNames();
    channel.postMessage(name);
  } catch (error) {
    if (isOutdated(error)) await meetTheirs(name, error.message);
    else if (!(error instanceof api.Unreachable)) notify(t("Not kept in the library: {why}", { why: reasonOf(error) }));
  }
  remember();
}

/** The library has another version than this one was made from: that is shown. If it has none any more, this one is
 * kept again, since it may be the only one.
 * @param {string} name @param {string} why */
async function meetTheirs(name, why) {
  const entry = (await api.kept("collection")).find((other) => other.name === name);
  if ((entry?.version ?? 0) === versionOf(name)) return notify(t("Not kept in the library: {why}", { why }));
  if (entry && JSON.stringify(valueOf(itemsOf(entry))) === JSON.stringify(valueOf(collection.value))) {
    notes.clear();
    return show(name, collection.value, entry.version); // kept by this page as it was left, which it did not hear any more
  }
  if (entry) {
    showKept(entry);
    return notify(t("“{name}” was changed elsewhere meanwhile; that is shown now", { name }));
  }
  versions.delete(name);
  notify(t("“{name}” was renamed or deleted elsewhere meanwhile; as you see it, it is kept again", { name }));
  save();
}

async function readNames() {
  const entries = await api.kept("collection");
  if (!isKeptInLibrary()) standBeside(entries);
  collectionNames.value = [...new Set([...entries, ...own.value].map(({ name }) => name))];
  return entries;
}

/** Another collection of the library, or a new one.
 * @param {string} name */
export async function openCollection(name) {
  if (name === collectionName.value) return;
  await save();
  showNamed(name, await readNames());
}

/** Show what there is under a name, or a new one.
 * @param {string} name @param {api.Kept[]} entries */
function showNamed(name, entries) {
  const held = own.value.find((other) => other.name === name);
  const entry = entries.find((other) => other.name === name);
  if (held) {
    show(name, held.items, held.version, true);
    save();
  } else if (entry) showKept(entry);
  else show(name, [], 0);
}

export async function newCollection() {
  await save();
  await readNames();
  return openCollection(freeName(UNTITLED));
}

/** @param {string} name @returns {Promise<string>} why it cannot be called so; empty where it is. */
export async function renameCollection(name) {
  const before = collectionName.value;
  if (name === before) return "";
  if (!name || collectionNames.value.includes(name)) return name ? t("There is a collection “{name}” already", { name }) : t("Give it a name");
  versions.delete(name);
  for (const taken of takenOut) if (taken.name === before) taken.name = name;
  collectionName.value = name;
  await inTurn(async () => {
    const versionBefore = versionOf(before);
    forget(before);
    if (versionBefore) changes += 1;
    remember();
    if (!versionBefore) return;
    await push();
    if (versionOf(name)) await api.unkeep("collection", before, versionBefore).catch((error) => {
      if (!isOutdated(error)) throw error;
      notify(t("“{name}” was changed elsewhere meanwhile, and stays beside this one", { name: before }));
    });
    await readNames();
  });
  return "";
}

/** Away with the collection; another one is shown. */
export async function deleteCollection() {
  const [name, items] = [collectionName.value, collection.value];
  await save();
  try {
    if (versionOf(name) && isKeptInLibrary()) await api.unkeep("collection", name, versionOf(name));
  } catch (error) {
    if (isOutdated(error)) return meetTheirs(name, error.message);
    throw error;
  }
  forget(name);
  const entries = await readNames();
  const names = collectionNames.value;
  showNamed(names.includes(name) ? name : names[0] ?? UNTITLED, entries);
  const undo = () => { show(name, [], 0); change(items); };
  notify(t("“{name}” is deleted", { name }), { label: t("Undo"), run: undo });
}

/** Begin where this browser left off, with what the library has now.
 * @param {string} library */
export async function rememberCollection(library) {
  mirror = remembered(`moviola.kept-collection:${library}`, /** @type {State | null} */ (null));
  own = remembered(`moviola.own-collections:${library}`, /** @type {State[]} */ ([]));
  const before = own.value.find(({ name }) => name === mirror.value?.name) ?? mirror.value ?? takenOver(library);
  if (before) show(before.name, before.items, before.version, before.unsaved);
  channel.addEventListener("message", ({ data }) => { void inTurn(() => readAgain(data)).catch(() => {}); });
  api.connection.addEventListener("up", save);
  window.addEventListener("pagehide", save);
  return inTurn(async () => {
    const entries = await readNames();
    const entry = entries.find((other) => other.name === collectionName.value) ?? (before?.items.length || !isKeptInLibrary() ? undefined : entries[0]);
    if (before?.unsaved) save();
    else if (entry && changes === kept) showKept(entry);
  });
}

/** Collections of this browser whose names the library has, too, get other names: both can be shown.
 * @param {api.Kept[]} entries */
function standBeside(entries) {
  const names = new Set(entries.map(({ name }) => name));
  for (const state of own.value.filter(({ name }) => names.has(name))) {
    const name = freeName(state.name, names);
    own.value = own.value.map((other) => (other === state ? { ...state, name, version: 0 } : other));
    if (state.name !== collectionName.value) continue;
    callShown(name);
    remember();
  }
}

/** A collection was changed in another tab.
 * @param {string} name */
async function readAgain(name) {
  const entry = (await readNames()).find((other) => other.name === name);
  if (entry && name === collectionName.value && entry.version > versionOf(name) && changes === kept) showKept(entry);
}

/** What earlier versions of this page kept in the browser alone, once.
 * @param {string} library @returns {State | null} */
function takenOver(library) {
  const [items, title] = [`moviola.collection:${library}`, `moviola.collection-title:${library}`].map((key) => {
    const text = localStorage.getItem(key);
    localStorage.removeItem(key);
    return text && JSON.parse(text);
  });
  return items?.length ? { name: title || t("From this browser"), version: 0, items, unsaved: true } : null;
}

/** @typedef {{video_id: string, start: number, end: number, score?: number}} Span */

/** @param {Span} span */
function find(span) {
  const close = (/** @type {number} */ a, /** @type {number} */ b) => Math.abs(a - b) < 0.05;
  return collection.value.find((item) => item.video_id === span.video_id && close(item.start, span.start) && close(item.end, span.end));
}

/** @param {Span} span */
export const isCollected = (span) => find(span) !== undefined;

/** Put a moment in, or take it out if it is in.
 * @param {Span} span @param {string} [query] what it was found by */
export function collect(span, query = "") {
  const inside = find(span);
  if (inside) return discard(inside.id);
  const { video_id, start, end, score = null } = span;
  change([...collection.value, { id: newId(), video_id, start, end, score, query, note: "" }]);
  notify(t("In “{name}”", { name: collectionName.value }));
}

/** @param {string} id */
export function discard(id) {
  const place = collection.value.findIndex((other) => other.id === id);
  const item = collection.value[place];
  if (!item) return;
  change(collection.value.filter((other) => other !== item));
  const taken = { name: collectionName.value, item, place };
  takenOut.add(taken);
  notify(t("Taken out of the collection"), { label: t("Undo"), run: () => void putBack(taken).catch((error) => notify(error.message)) });
}

/** Back to its place, in the collection that it was taken out of: another one may be shown by now, and more may have
 * been changed since.
 * @param {{name: string, item: Item, place: number}} taken */
async function putBack(taken) {
  takenOut.delete(taken);
  const { item, place } = taken;
  if (taken.name === collectionName.value) return change(collection.value.toSpliced(place, 0, item));
  const held = own.value.find((other) => other.name === taken.name);
  if (held) return void (own.value = own.value.map((other) => (other === held ? { ...held, items: held.items.toSpliced(place, 0, item) } : other)));
  const entry = (await readNames()).find((other) => other.name === taken.name);
  const items = entry ? itemsOf(entry) : [];
  await api.keep("collection", taken.name, valueOf(items.toSpliced(place, 0, item)), entry?.version ?? 0);
  await readNames();
  channel.postMessage(taken.name);
}

/** @param {string} id @param {Partial<Item>} part */
export function changeItem(id, part) {
  change(collection.value.map((item) => (item.id === id ? { ...item, ...part } : item)));
}

/** A note as it is being written: in this browser at once, in the library as soon as the keys rest.
 * @param {string} id @param {string} note */
export function writeNote(id, note) {
  notes.set(id, note);
  changeHere(collection.value.map((item) => (item.id === id ? { ...item, note } : item)));
  clearTimeout(savingSoon);
  savingSoon = window.setTimeout(save, PAUSE);
}

/** Move an item to a place.
 * @param {string} id @param {number} to */
export function moveItem(id, to) {
  const item = collection.value.find((other) => other.id === id);
  if (!item || to < 0 || to >= collection.value.length) return;
  const others = collection.value.filter((other) => other.id !== id);
  change([...others.slice(0, to), item, ...others.slice(to)]);
}
