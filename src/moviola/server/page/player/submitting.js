// Submitting what the player shows to an evaluation (DRES), and its verdict.

import * as api from "../base/api.js";
import { clock, reasonOf, title } from "../base/format.js";
import { t } from "../base/language.js";
import { notify } from "../base/notices.js";
import { libraryInfo } from "../base/store.js";

export const canSubmit = () => Boolean(libraryInfo.value?.additions.includes("dres"));

let waits = false;

/** @param {string} video @param {number} time */
export async function submitPicture(video, time) {
  if (!canSubmit()) return notify(t("No evaluation: start the server with --dres"));
  if (waits) return;
  waits = true;
  /** @type {Record<string, string>} */
  const verdicts = { correct: t("correct"), wrong: t("wrong"), undecided: t("not decided"), pending: t("waits for a judge") };
  const named = { video: title(video), time: clock(time, 1) };
  try {
    const { verdict, description } = await api.submit(video, time);
    notify([t("{video} {time} submitted: {verdict}", { ...named, verdict: verdicts[verdict] ?? verdict }), description].filter(Boolean).join(" · "));
  } catch (error) {
    notify(t("{video} {time} not submitted: {reason}", { ...named, reason: reasonOf(error) }));
  } finally {
    waits = false;
  }
}
