// Puts the judging page together: who judges, what is shown.

import { byId, fill, h } from "../base/dom.js";
import { reasonOf } from "../base/format.js";
import { t } from "../base/language.js";
import { startLanguage } from "../base/language-choice.js";
import { startNotices } from "../base/notices.js";
import { startTheme } from "../base/theme.js";
import { startBatch, startKeys, stopJudging } from "./judging.js";
import { drawProgress } from "./progress.js";
import { drawSignIn, startRater } from "./sign-in.js";
import { info, rater, readInfo, signIn } from "./task.js";

const VIEWS = /** @type {const} */ (["judge", "progress"]);

/** @returns {typeof VIEWS[number]} */
const chosen = () => (location.hash === "#/progress" ? "progress" : "judge");

async function show() {
  for (const name of VIEWS) {
    byId(`${name}-view`, HTMLElement).hidden = name !== chosen();
    const link = byId(`to-${name}`, HTMLAnchorElement);
    if (name === chosen()) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  fill(byId("failure", HTMLDivElement));
  if (chosen() === "progress") {
    stopJudging();
    return drawProgress();
  }
  fill(byId("judge-view", HTMLElement));
  if (!rater.value) return drawSignIn(() => void shown());
  return startBatch();
}

/** Show what is chosen; what fails is said where it would be. */
async function shown() {
  try {
    await show();
  } catch (error) {
    fail(t("This cannot be shown"), error);
  }
}

/** @param {string} title @param {unknown} error */
function fail(title, error) {
  fill(byId("failure", HTMLDivElement), h("div", { class: "failure" }, h("strong", {}, title), h("p", {}, reasonOf(error))));
}

async function start() {
  startLanguage();
  startTheme();
  startNotices();
  info.value = await readInfo();
  if (rater.value) rater.value = await signIn(rater.value);
  startRater();
  startKeys();
  rater.onChange((name) => { if (!name) { stopJudging(); void shown(); } });
  window.addEventListener("hashchange", () => void shown());
  await shown();
}

start().catch((error) => fail(t("There is nothing to judge here"), error));
