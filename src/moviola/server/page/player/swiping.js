// A finger on the video: down closes the player, sideways goes to another moment.

const FAR = 60; // px
const stillMotion = window.matchMedia("(prefers-reduced-motion: reduce)");

/**
 * @param {HTMLElement} screen follows the finger.
 * @param {{down: () => void, sideways: (by: number) => void}} does
 */
export function startSwiping(screen, { down, sideways }) {
  /** @type {PointerEvent | null} */
  let from = null;
  let swiped = false;
  const move = (/** @type {number} */ x, /** @type {number} */ y) => { screen.style.translate = stillMotion.matches ? "" : `${x}px ${y}px`; };
  const by = (/** @type {PointerEvent} */ event) => {
    const [x, y] = [event.clientX - (from?.clientX ?? 0), event.clientY - (from?.clientY ?? 0)];
    return Math.abs(x) > Math.abs(y) ? { x, y: 0 } : { x: 0, y: Math.max(y, 0) };
  };
  const end = () => { from = null; screen.style.translate = ""; };
  screen.addEventListener("pointerdown", (event) => {
    swiped = false;
    from = event.isPrimary && event.pointerType !== "mouse" ? event : null; // a second finger zooms
  });
  screen.addEventListener("pointermove", (event) => { if (from && event.isPrimary) { const { x, y } = by(event); move(x, y); } });
  screen.addEventListener("pointercancel", end);
  screen.addEventListener("pointerup", (event) => {
    if (!from || !event.isPrimary) return;
    const { x, y } = by(event);
    end();
    swiped = Math.max(Math.abs(x), y) > FAR;
    if (!swiped) return;
    if (x) sideways(x < 0 ? 1 : -1);
    else down();
  });
  // The end of a swipe is no tap, which would play or pause.
  screen.addEventListener("click", (event) => { if (swiped) event.stopPropagation(); }, true);
}
