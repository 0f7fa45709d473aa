// From a tile to the player: the picture grows from one to the other, where the browser can and the reader wants motion.

const stillness = window.matchMedia("(prefers-reduced-motion: reduce)");
const NAME = "view-transition-name";

/** Change what is shown; what has the picture before and what has it then are taken for one.
 * @param {HTMLElement | undefined} from @param {string} to selector @param {() => void} change */
export function grow(from, to, change) {
  if (!from || stillness.matches || !("startViewTransition" in document)) return change();
  from.style.setProperty(NAME, "picture");
  const transition = document.startViewTransition(() => {
    from.style.removeProperty(NAME);
    change();
    /** @type {HTMLElement | null} */ (document.querySelector(to))?.style.setProperty(NAME, "picture");
  });
  transition.ready.catch(() => {}); // another one began, or the page is hidden: shown without motion
  transition.finished.finally(() => { /** @type {HTMLElement | null} */ (document.querySelector(to))?.style.removeProperty(NAME); }).catch(() => {});
}
