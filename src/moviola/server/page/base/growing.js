// From a tile to the player: the picture grows from where it was to where it is, where the reader wants motion.
// Not a view transition: that shows what is new a frame later, and keys that are pressed meanwhile would go to the old.

const stillness = window.matchMedia("(prefers-reduced-motion: reduce)");
const TIME = 180; // ms

/** Change what is shown; an element then grows out of the place that another one had.
 * @param {Element | undefined} from @param {string} to selector @param {() => void} change */
export function grow(from, to, change) {
  const before = from?.getBoundingClientRect();
  change();
  const element = document.querySelector(to);
  const now = element?.getBoundingClientRect();
  if (stillness.matches || !element || !before?.width || !now?.width) return;
  const [x, y] = [before.left + before.width / 2 - now.left - now.width / 2, before.top + before.height / 2 - now.top - now.height / 2];
  const scale = before.width / now.width;
  element.animate([{ transform: `translate(${x}px, ${y}px) scale(${scale})` }, { transform: "none" }], { duration: TIME, easing: "ease-out" });
}
