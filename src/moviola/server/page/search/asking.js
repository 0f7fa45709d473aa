// A question about the films, which a model answers in sentences that cite moments: what is sent is said before, the work can be cancelled, and each citation plays.

import * as api from "../base/api.js";
import { byId, fill, h, icon, iconButton } from "../base/dom.js";
import { reasonOf, size, spanClock, title } from "../base/format.js";
import { plural, quoted, t } from "../base/language.js";
import { openPlayer } from "../base/opening.js";
import { libraryInfo } from "../base/store.js";
import { causeOf } from "./looking.js";

const POLL = 500; // ms

const dialog = byId("asking", HTMLDialogElement);
const question = h("textarea", { rows: "2", dir: "auto", "aria-label": t("Your question"), placeholder: t("Who carries the ladder, and when?"), "aria-describedby": "asking-sends", required: true });
const button = h("button", { type: "submit", class: "main" });
const cancel = h("button", { type: "button", class: "plain", hidden: true, onclick: () => void end() }, t("Cancel"));
const sends = h("p", { id: "asking-sends", class: "muted" });
const status = h("p", { role: "status", class: "muted" });
const failure = h("div", { role: "alert" });
const said = h("div", { class: "said-of-films" });
const form = h("form", {}, question, sends, h("div", { class: "asking-buttons" }, button, cancel));

/** The question that is worked on, once the server has it; null: none.
 * @type {api.QuestionState | null} */
let going = null;
/** Grows with each question and cancellation: what belongs to one before is not shown. */
let turn = 0;

/** Show the form, with a question where none is written or worked on yet.
 * @param {string} words */
export function showAsking(words) {
  const looker = libraryInfo.value?.looker;
  if (!looker) return;
  question.maxLength = libraryInfo.value?.limits?.query_characters ?? 2000;
  if (!question.value && !button.disabled) question.value = words;
  const { model, host, longest_side: side, question_stills: stills } = looker;
  fill(button, t("Ask {model}", { model }));
  sends.textContent = plural(stills, "Sends your question, names of videos, at most {n} still ({side} pixels), and what is said or written there, to {model} at {host}", "Sends your question, names of videos, at most {n} stills ({side} pixels), and what is said or written there, to {model} at {host}", { side, model, host });
  if (!dialog.open) dialog.showModal();
  question.focus();
}

/** End the work on a question, also where the page is left. */
async function end() {
  const one = going;
  turn += 1;
  setWorking(false);
  status.textContent = t("Cancelled.");
  if (one) await api.cancelQuestion(one).catch(() => {}); // it has ended, or the server is away
}

/** Whether one is worked on: it can be cancelled then, and no other can be asked.
 * @param {boolean} on */
function setWorking(on) {
  const held = document.activeElement === cancel || document.activeElement === button;
  going = null;
  cancel.hidden = !on;
  button.disabled = on;
  status.textContent = on ? t("The model is looking…") : "";
  if (held) (on ? cancel : question).focus();
}

/** @param {api.QuestionState} state */
function howFar({ state, sent }) {
  if (state === "queued") return t("Waits for another question…");
  const [stills, letters, bytes] = /** @type {const} */ (["stills", "letters", "bytes"]).map((what) => sent.reduce((sum, one) => sum + one[what], 0));
  const looking = t("The model is looking…");
  return stills ? `${looking} ${plural(stills, "{n} still ({size}) and {letters} letters sent", "{n} stills ({size}) and {letters} letters sent", { size: size(bytes ?? 0), letters: letters ?? 0 })}` : looking;
}

async function ask() {
  const mine = (turn += 1);
  fill(failure);
  fill(said);
  setWorking(true);
  try {
    let state = await api.beginQuestion(question.value);
    if (mine !== turn) return void api.cancelQuestion(state).catch(() => {});
    while (state.state === "queued" || state.state === "running") {
      going = state;
      status.textContent = howFar(state);
      await new Promise((resolve) => setTimeout(resolve, POLL));
      if (mine !== turn) return;
      state = await api.questionState(state).catch((error) => {
        if (error instanceof api.Unreachable) return state; // the work goes on without this page
        throw error;
      });
      if (mine !== turn) return;
    }
    if (state.state === "failed") throw new Error(state.error);
    setWorking(false);
    if (state.answer) fill(said, answerOf(state.answer, state.model));
  } catch (error) {
    if (mine !== turn) return;
    setWorking(false);
    fill(failure, h("div", { class: "failure" }, h("strong", {}, t("No answer")), h("p", {}, reasonOf(error))));
  }
}

/** @param {api.FilmAnswer} answer @param {string} model */
function answerOf(answer, model) {
  const cited = answer.sentences.flatMap((sentence) => sentence.cites);
  const sentences = answer.sentences.map(({ text, cites }) => h("p", {}, h("span", { dir: "auto" }, text), cites.map((one) => [" ", citation(one, cited)]).flat()));
  const searched = answer.searches.map(quoted).join(", ");
  return [
    answer.untold ? h("p", { class: "untold" }, t("The films do not say.")) : null,
    answer.cause ? h("p", { class: "untold" }, t("No answer: {cause}.", { cause: causeOf(answer.cause) })) : null,
    ...sentences,
    h("ul", { class: "notes" },
      sentences.length ? h("li", {}, t("Whether a moment shows what a sentence of {model} says was not checked: play it.", { model })) : null,
      answer.left_out ? h("li", {}, plural(answer.left_out, "{n} sentence is not shown: without a moment that exists.", "{n} sentences are not shown: without a moment that exists.")) : null,
      searched ? h("li", {}, t("Searched for {words}.", { words: searched })) : null),
  ];
}

/** A moment, which plays.
 * @param {api.CitedMoment} one @param {api.CitedMoment[]} all */
function citation(one, all) {
  const play = () => openPlayer(all, all.indexOf(one));
  return h("button", { type: "button", class: "citation", title: one.video_id, onclick: play }, icon("play"), h("span", { dir: "auto" }, title(one.video_id)), ` ${spanClock(one)}`);
}

fill(dialog, h("div", { class: "dialog-head" }, h("h2", { id: "asking-title" }, t("Ask about the films")), iconButton("close", t("Close"), () => dialog.close())), form, status, failure, said);
form.addEventListener("submit", (event) => { event.preventDefault(); if (!button.disabled && question.value.trim()) void ask(); });
question.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
window.addEventListener("pagehide", () => { if (going) void end(); }); // nobody would see the answer
