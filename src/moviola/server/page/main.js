// Puts the parts together, once it is known which library this is.

import * as api from "./base/api.js";
import { isEmpty } from "./base/asked.js";
import { rememberCollection } from "./collection/collecting.js";
import { startCollection } from "./collection/collection.js";
import { byId, fill, h, iconButton } from "./base/dom.js";
import { startDropping } from "./library/dropping.js";
import { toggleFilters } from "./search/filters.js";
import { startHistory } from "./search/history.js";
import { reasonOf } from "./base/format.js";
import { on, showKeys, startKeyboard } from "./base/keyboard.js";
import { t } from "./base/language.js";
import { startLanguage } from "./base/language-choice.js";
import { startLibraryView } from "./library/library-view.js";
import { startNotices } from "./base/notices.js";
import { startPlayer } from "./player/player.js";
import { addExclusion, addStep, askFilms, focusSearch, startQuery } from "./search/query.js";
import { drawResults, focusResults, startResults } from "./search/results.js";
import { startRenewing } from "./search/renewing.js";
import { showRight } from "./base/rights.js";
import { rememberKnown } from "./search/saved.js";
import { rememberSeen } from "./base/seen.js";
import { currentSearch, libraryInfo, questionFields, view } from "./base/store.js";
import { startTheme } from "./base/theme.js";
import { rememberRecent } from "./search/welcome.js";
import { startWithin } from "./base/within.js";

/** @typedef {import("./base/store.js").View} View */

const VIEWS = /** @type {View[]} */ (["search", "collection", "library"]);

function drawView() {
  for (const name of VIEWS) {
    byId(`${name}-view`, HTMLElement).hidden = name !== view.value;
    const link = byId(`to-${name}`, HTMLAnchorElement);
    if (name === view.value) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.body.dataset.view = view.value;
}

function drawBox() {
  document.body.classList.toggle("is-asking", !isEmpty(currentSearch.value));
}

function listenForKeys() {
  const show = (/** @type {View} */ name) => () => { view.value = name; };
  on("anywhere", {
    search: focusSearch, results: focusResults, filters: () => { view.value = "search"; void toggleFilters(); }, then: addStep, not: addExclusion, ask: () => void askFilms(),
    showSearch: show("search"), showCollection: show("collection"), showLibrary: show("library"),
  });
}

async function start() {
  startLanguage();
  startTheme();
  startNotices();
  const [info, fields] = await Promise.all([api.library(), api.fields()]);
  questionFields.value = fields;
  libraryInfo.value = info;
  const collections = rememberCollection(info.name);
  rememberSeen(info.name);
  rememberRecent(info.name);
  rememberKnown(info.name);
  byId("to-judging", HTMLAnchorElement).hidden = !info.additions.includes("judging");
  byId("bar-end", HTMLDivElement).prepend(
    h("span", { class: "library-name", title: t("The library that is searched") }, info.name), iconButton("keys", t("Keys (?)"), showKeys));
  showRight();
  byId("skip", HTMLButtonElement).addEventListener("click", focusResults);
  await collections.catch(() => {}); // the server went away just now, which the page says
  // From here on nothing is awaited: what is typed before the address is read would be lost.
  startKeyboard();
  listenForKeys();
  startQuery();
  startDropping();
  startPlayer();
  startWithin();
  startResults();
  startCollection();
  startLibraryView();
  view.onChange(drawView);
  currentSearch.onChange(drawBox);
  startHistory();
  startRenewing(); // after the history, in which the place that is gone to stands by then
  drawView();
  drawBox();
  drawResults(); // now that it is known whether the address asks for something
  if (view.value === "search" && isEmpty(currentSearch.value) && matchMedia("(hover: hover)").matches) focusSearch();
}

start().catch((error) => {
  fill(byId("failure", HTMLDivElement), h("div", { class: "failure" }, h("strong", {}, t("The page cannot start")), h("p", {}, reasonOf(error))));
});
