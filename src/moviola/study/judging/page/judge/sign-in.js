// The name of a rater.

import { byId, fill, h, icon } from "../base/dom.js";
import { reasonOf } from "../base/format.js";
import { plural, t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { info, parts, rater, signIn } from "./task.js";

const view = byId("judge-view", HTMLElement);
const holder = h("span", { class: "rater" });

/** @param {() => void} onSigned */
export function drawSignIn(onSigned) {
  const about = info.value;
  if (!about) return;
  const name = h("input", { id: "rater", name: "rater", autocomplete: "nickname", maxlength: "60", required: true, list: "raters", placeholder: "Anna" });
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    try {
      rater.value = await signIn(name.value);
      onSigned();
    } catch (error) {
      notify(reasonOf(error));
    }
  };
  const both = about.raters === 1 ? t("One rater judges each moment.")
    : about.raters === 2 ? t("Two raters judge each moment on their own; where they differ by more than one level, two more do.")
      : t("Four raters judge each moment on their own.");
  fill(view, h("div", { class: "sign-in" },
    h("h2", {}, t("{moments} of {queries} to judge", { moments: plural(about.moments, "{n} moment", "{n} moments"), queries: plural(about.queries, "{n} query", "{n} queries") })),
    h("p", { class: "muted" }, t("You see a query and one moment at a time, twenty in a batch, and give each a level from 0 to 4. {raters} Each answer is saved at once.", { raters: both })),
    h("form", { class: "sign-in-form", onsubmit: submit },
      h("label", { for: "rater" }, t("Your name")), name,
      h("datalist", { id: "raters" }, about.names.map((known) => h("option", { value: known }))),
      h("button", { class: "main" }, t("Begin"))),
    h("dl", { class: "guideline" }, about.levels.map(({ level, meaning }) => {
      const [word, rest] = parts(meaning);
      return h("div", {}, h("dt", {}, h("kbd", {}, level), h("strong", {}, word)), h("dd", {}, rest));
    }))));
  name.focus();
}

/** Who judges, in the bar. */
export function startRater() {
  const draw = () => fill(holder, rater.value && h("button", { type: "button", class: "quiet", title: t("Judge under another name"), onclick: () => { rater.value = ""; } }, rater.value, icon("close")));
  byId("bar-end", HTMLDivElement).prepend(holder);
  rater.onChange(draw);
  draw();
}
