// How fast the player plays.

import { h } from "../base/dom.js";
import { t } from "../base/language.js";

const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4];

/** @param {HTMLVideoElement} video */
export function speedMenu(video) {
  const label = t("Speed (< >)");
  const element = h("select", { class: "speed", "aria-label": label, title: label, onchange: () => set(Number(element.value)) },
    SPEEDS.map((speed) => h("option", { value: speed }, `${speed}×`)));
  /** @param {number} speed kept for the videos that come */
  const set = (speed) => { video.playbackRate = video.defaultPlaybackRate = speed; element.value = String(speed); };
  const change = (/** @type {number} */ by) => () => { const speed = SPEEDS[SPEEDS.indexOf(video.playbackRate) + by]; if (speed) set(speed); };
  set(1);
  return { element, faster: change(1), slower: change(-1) };
}
