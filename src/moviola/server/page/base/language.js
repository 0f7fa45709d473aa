// The page's messages in the reader's language. English stands in the code and is the key of every message;
// other languages are files in languages/, of which one at most is loaded. Right-to-left data stays right by dir="auto".

/** Languages of the page, each by its own name: English, and those that have a file, which the server lists.
 * @type {Record<string, string>} */
export const LANGUAGES = { en: "English", ...JSON.parse(document.documentElement.dataset.languages ?? "{}") };

/** @typedef {string} Language */
/** @typedef {Record<string, string | string[] | Record<string, string>>} Messages a message with a number has a singular and a
 *   plural form, or one for each category of Intl.PluralRules where a language has more */

const KEY = "moviola.language";

/** The language that the reader chose on this page, else the first of the browser's that there is.
 * @returns {Language} */
function chosen() {
  const wanted = navigator.languages.map((code) => code.split("-")[0] ?? "");
  try {
    wanted.unshift(localStorage.getItem(KEY) ?? "");
  } catch {
    // storage is switched off
  }
  return wanted.find((code) => code in LANGUAGES) ?? "en";
}

/** @param {Language} name
 * @returns {Promise<Messages>} */
async function load(name) {
  if (name === "en") return {};
  const answer = await fetch(new URL(`../languages/${name}.json`, import.meta.url));
  return answer.ok ? answer.json() : {};
}

export const language = chosen();
// Every module that has messages imports this one, so that none of them runs before its messages are there.
const messages = await load(language).catch(() => /** @type {Messages} */ ({}));
document.documentElement.lang = language;
const plurals = new Intl.PluralRules(language);

/** What a language is called in that of the page.
 * @param {string} tag of BCP 47 */
export function languageName(tag) {
  try {
    return new Intl.DisplayNames([language], { type: "language" }).of(tag) ?? tag;
  } catch {
    return tag; // none of BCP 47
  }
}

/** Choose a language; the page is opened again in it, at the same place.
 * @param {Language} name */
export function choose(name) {
  localStorage.setItem(KEY, name);
  location.reload();
}

const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC]/;

/** A value that is written from right to left, apart from the signs and numbers beside it.
 * @param {string} value */
const apart = (value) => (RIGHT_TO_LEFT.test(value) ? `\u2068${value}\u2069` : value);

/** A message with its values.
 * @param {string} text @param {Record<string, string | number>} values */
export const filled = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => (values[name] === undefined ? whole : apart(String(values[name]))));

/**
 * A message in the page's language.
 *
 * @param {string} text in English, with {names} where values go; always written out, so that a test can collect it
 * @param {Record<string, string | number>} [values]
 */
export function t(text, values = {}) {
  const message = messages[text];
  return filled(typeof message === "string" ? message : text, values);
}

/** Words in the quotation marks of the page's language.
 * @param {string} text */
export const quoted = (text) => t("“{text}”", { text });

/**
 * A message about a number of things, which is {n}.
 *
 * @param {number} n
 * @param {string} one as "{n} moment"
 * @param {string} many as "{n} moments"; the key of both forms in a language's file
 * @param {Record<string, string | number>} [values]
 */
export function plural(n, one, many, values = {}) {
  const found = messages[many];
  /** @type {Record<string, string | undefined>} */
  const forms = Array.isArray(found) ? { one: found[0], other: found[1] } : typeof found === "object" ? found : { one, other: many };
  const text = forms[plurals.select(n)] ?? forms.other ?? many;
  return filled(text, { n: n.toLocaleString(language), ...values });
}

/** Put what stands in the HTML, marked with data-t, into the page's language.
 * @param {ParentNode} root */
export function translate(root) {
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.textContent ?? "");
  for (const element of root.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(element.getAttribute("aria-label") ?? ""));
}
