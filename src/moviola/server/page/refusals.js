// What the server refuses, without the API's names: it names fields of a request that nobody wrote by hand here.

import { language, t } from "./language.js";

/**
 * @param {string} field the wrong one, as the API names it
 * @param {string} message of the server
 */
export function inPlainWords(field, message) {
  const [, most] = field && message.startsWith(`${field}: `) ? /^: at most ([\d,]+) characters/.exec(message.slice(field.length)) ?? [] : [];
  if (most) return t("Too long: at most {n} characters can be given.", { n: Number(most.replaceAll(",", "")).toLocaleString(language) });
  if (/^query\..*\bpicture$/.test(field) || /^picture \w+: no longer here/.test(message)) return t("A picture of this search is not on the server, or no longer: choose it again.");
  return message;
}
