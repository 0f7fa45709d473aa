// How sure a moment is, in words: a number out of a hundred would say more than is known.

import { t } from "./language.js";
import { libraryInfo } from "./store.js";

/** @typedef {import("./api.js").Band} Band */

/** @type {Record<Band, string>} */
export const BANDS = { strong: t("strong"), possible: t("possible"), weak: t("weak") };

/** Parts of the bar below a still. */
export const BAR = { strong: 1, possible: 0.5, weak: 0.2 };

/** The band of a score.
 * @param {number} score @returns {Band} */
function bandOf(score) {
  const bands = libraryInfo.value?.bands;
  return bands && score >= bands.strong ? "strong" : bands && score >= bands.possible ? "possible" : "weak";
}

/** The band of a moment; none where it is no answer to anything.
 * @param {{band?: Band, score?: number | null}} moment @returns {Band | null} */
export const bandOfMoment = ({ band, score }) => band ?? (typeof score === "number" ? bandOf(score) : null);
