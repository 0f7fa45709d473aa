// A search is asked again where the library changed under its answer.

import { answer } from "./results.js";
import { isEmpty } from "../base/asked.js";
import { currentSearch, libraryInfo, view } from "../base/store.js";

/** Whether the answer that is shown is of the library as it was before. */
let isOld = false;

/** @param {import("../base/api.js").LibraryInfo | null} info */
const contentOf = (info) => info && JSON.stringify([info.videos, info.seconds, info.segments, info.evidence, info.models]);

function askAgain() {
  currentSearch.value = { ...currentSearch.value };
}

/** Videos came in, went or were encoded again: what was found is found again when it is next looked at, so that
 * nothing moves under anyone's hands; at once where nothing was found. */
export function libraryChanged() {
  if (isEmpty(currentSearch.value)) return;
  isOld = true;
  if (view.value === "search" && !answer.value?.moments.length) askAgain();
}

export function startRenewing() {
  libraryInfo.onChange((now, before) => { if (contentOf(now) !== contentOf(before)) libraryChanged(); });
  answer.onChange(() => { isOld = false; });
  view.onChange((now) => { if (now === "search" && isOld) askAgain(); });
}
