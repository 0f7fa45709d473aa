// "In this video", from wherever a video is shown.

import { byId, iconButton } from "./dom.js";
import { on } from "./keyboard.js";
import { t } from "./language.js";
import { closePlayer, opened } from "./opening.js";
import { changeSearch, currentSearch, view } from "./store.js";

/** Look in one video, for what is asked already or will be.
 * @param {string} video */
export function inThisVideo(video) {
  if (opened.value) closePlayer();
  view.value = "search";
  changeSearch({ videos: [video] });
  byId("words", HTMLInputElement).focus();
  window.scrollTo({ top: 0 });
}

/** In one more video than those that are looked in.
 * @param {string} video */
export function alsoIn(video) {
  const { videos } = currentSearch.value;
  if (!videos.includes(video)) changeSearch({ videos: [...videos, video] });
}

/** @param {() => void} onclick @param {Record<string, unknown>} [more] */
export const withinButton = (onclick, more) => iconButton("search", t("Search in this video (s)"), onclick, more);

/** The video of what has the focus. */
function withinFocused() {
  const video = document.activeElement?.closest("[data-video]")?.getAttribute("data-video");
  if (video) inThisVideo(video);
}

const playing = () => opened.value?.moments[opened.value.index]?.video_id;

export function startWithin() {
  const onclick = () => { const video = playing(); if (video) inThisVideo(video); };
  byId("player", HTMLDialogElement).querySelector(".player-head .spring")?.after(withinButton(onclick));
  on("results", { within: withinFocused });
  on("collection", { within: withinFocused });
  on("player", { within: onclick });
}
