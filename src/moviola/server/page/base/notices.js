// Short messages at the foot of the page, below what is said while the server is away.

import { connection } from "./api.js";
import { byId, h, takeAway } from "./dom.js";
import { t } from "./language.js";

const SHOWN = 5000; // ms
const MOST = 3;
const notices = byId("notices", HTMLDivElement);

/**
 * @param {string} text
 * @param {{label: string, run: () => void, signal?: AbortSignal}} [action] something to do about it,
 *   until the signal takes the notice away.
 */
export function notify(text, action) {
  /** @type {EventTarget | null} */
  let before = null;
  const button = action && h("button", {
    type: "button", onfocus: (/** @type {FocusEvent} */ event) => { before = event.relatedTarget; },
    onclick: () => { action.run(); dismiss(); if (before instanceof HTMLElement) before.focus(); },
  }, action.label);
  const notice = h("div", { class: "notice" }, h("span", {}, text), button);
  const dismiss = () => takeAway(notice);
  for (const shown of notices.querySelectorAll(".notice")) if (!action && shown.textContent === text) shown.remove(); // said once
  notices.append(notice);
  if (notices.children.length > 1 + MOST) notices.children[1]?.remove();
  setTimeout(dismiss, action ? 2 * SHOWN : SHOWN);
  action?.signal?.addEventListener("abort", dismiss);
}

/** Put the notices into what is on the full screen, or into the dialog on top: what lies behind is not seen, or, behind
 * a modal dialog, neither clicked nor announced.
 * @param {MutationRecord[]} changed dialogs that were opened or closed */
function toTop(changed) {
  const open = /** @type {Element[]} */ ([...document.querySelectorAll("dialog[open]")]);
  const latest = changed.map(({ target }) => /** @type {Element} */ (target)).findLast((dialog) => open.includes(dialog));
  const top = document.fullscreenElement ?? latest ?? open.at(-1) ?? document.body;
  if (notices.parentElement !== top) top.append(notices);
}

export function startNotices() {
  const dialogs = new MutationObserver(toTop);
  document.addEventListener("fullscreenchange", () => toTop([]));
  for (const dialog of document.querySelectorAll("dialog")) dialogs.observe(dialog, { attributeFilter: ["open"] });
  const banner = byId("offline", HTMLDivElement);
  connection.addEventListener("down", () => { banner.textContent = t("The server does not answer. What you see stays; the page goes on as soon as it is back."); });
  connection.addEventListener("up", () => { banner.textContent = ""; notify(t("The server is back")); });
}
