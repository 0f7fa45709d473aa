// A model that looks at the best moments again: the button, which says what is sent where, and what came of it.

import { h } from "../base/dom.js";
import { plural, t } from "../base/language.js";
import { libraryInfo } from "../base/store.js";

const MOST = 10; // moments that are looked at

/** Why there is no verdict, in the words of the page; those of the server where they are others.
 * @type {Record<string, string>} */
const CAUSES = {
  "timed out": t("it took too long"), "the model refused": t("the model refused"), "an empty reply": t("an empty reply"),
  "no verdict in the reply": t("no verdict in the reply"), "a reply that is not of the chat form": t("a reply that cannot be read"),
  "the file is away": t("the file is away"), "the film cannot be read there": t("the film cannot be read there"),
  "not asked, since the model did not answer before": t("not asked, since the model did not answer before"),
  "the model cites nothing that was found, so what it says is not shown": t("the model cites nothing that was found, so what it says is not shown"),
};

/** Why there is no verdict, or no answer.
 * @param {string} cause @returns {string} */
export function causeOf(cause) {
  const [, replies] = /^no answer within (\d+) replies/.exec(cause) ?? [];
  if (replies) return t("none within {n} replies of the model", { n: replies });
  return CAUSES[cause] ?? (cause.startsWith("no answer within") ? t("it took too long") : cause);
}

/** The button that lets the model look, where the server has one and it has not looked yet.
 * @param {import("../base/api.js").Answer} found @param {(count: number) => void} look */
export function lookButton(found, look) {
  const looker = libraryInfo.value?.looker;
  const looked = found.notes.some(({ kind }) => kind === "looked" || kind === "not looked");
  if (!looker || looked || !found.moments.length) return null;
  const count = Math.min(MOST, found.moments.length);
  const { model, host, longest_side: side } = looker;
  const sent = plural(count * looker.stills, "Sends at most {n} still ({side} pixels), and what is said or written there, to {model} at {host}", "Sends at most {n} stills ({side} pixels), and what is said or written there, to {model} at {host}", { side, model, host });
  return h("span", { class: "looks" },
    h("button", { type: "button", class: "plain", "aria-describedby": "what-is-sent", onclick: () => look(count) },
      plural(count, "Let {model} look at the best one", "Let {model} look at the best {n}", { model })),
    h("span", { id: "what-is-sent", class: "muted" }, sent));
}

/** A note on a look.
 * @param {"looked" | "not looked" | "words alone"} kind @param {string} about @param {string[]} others */
export function lookNote(kind, about, others) {
  if (kind === "words alone") return t("The model judged by the words alone, “{about}”, and not by pictures or marks.", { about });
  if (kind === "not looked") {
    const [n = "", all = ""] = others;
    return t("{n} of {all} not judged: {cause}.", { n, all, cause: causeOf(about) });
  }
  const [yes = "", partly = "", no = "", all = "", right = "", known = ""] = others;
  const judged = t("{model} looked at {all}: {yes} yes, {partly} in part, {no} no.", { model: about, all, yes, partly, no });
  const worth = known === "measured" ? t("A verdict is right with a probability of {right}, as measured.", { right })
    : t("How often it is right was not measured; a probability of {right} is assumed.", { right });
  return `${judged} ${worth}`;
}
