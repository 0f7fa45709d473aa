// The page's messages in the reader's language. English stands in the code and is the key of every message;
// other languages are files in languages/, of which one at most is loaded. Right-to-left data stays right by dir="auto".

/** Languages of the page, each by its own name. */
export const LANGUAGES = { en: "English", de: "Deutsch", es: "Español", zh: "中文" };

/** @typedef {keyof typeof LANGUAGES} Language */
/** @typedef {Record<string, string | [string, string]>} Messages a message with a number has a singular and a plural form */

const KEY = "moviola.language";

/** English unless the reader chose another language on this page.
 * @returns {Language} */
function chosen() {
  try {
    const kept = localStorage.getItem(KEY) ?? "en";
    return kept in LANGUAGES ? /** @type {Language} */ (kept) : "en";
  } catch {
    return "en"; // storage is switched off
  }
}

/** @param {Language} name
 * @returns {Promise<Messages>} */
async function load(name) {
  if (name === "en") return {};
  const answer = await fetch(`/static/languages/${name}.json`);
  return answer.ok ? answer.json() : {};
}

export const language = chosen();
// Every module that has messages imports this one, so that none of them runs before its messages are there.
const messages = await load(language).catch(() => /** @type {Messages} */ ({}));
document.documentElement.lang = language;

/** Choose a language; the page is opened again in it, at the same place.
 * @param {Language} name */
export function choose(name) {
  localStorage.setItem(KEY, name);
  location.reload();
}

/** @param {string} text @param {Record<string, string | number>} values */
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));

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

/**
 * A message about a number of things, which is {n}.
 *
 * @param {number} n
 * @param {string} one as "{n} moment"
 * @param {string} many as "{n} moments"; the key of both forms in a language's file
 * @param {Record<string, string | number>} [values]
 */
export function plural(n, one, many, values = {}) {
  const forms = messages[many];
  const [single, several] = Array.isArray(forms) ? forms : [one, many];
  return filled(n === 1 ? single : several, { n: n.toLocaleString(language), ...values });
}

/** Put what stands in the HTML, marked with data-t, into the page's language.
 * @param {ParentNode} root */
export function translate(root) {
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.textContent ?? "");
  for (const element of root.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(element.getAttribute("aria-label") ?? ""));
}
