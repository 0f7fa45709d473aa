// Bars of a number of videos each, of which neighbours are chosen: by drag, or by the arrows with Shift.

import { fill, h } from "../base/dom.js";
import { plural } from "../base/language.js";

/** @typedef {{label: string, videos: number}} Bin */

let made = 0;

/** @param {string} name @param {(first: number, last: number) => void} choose @param {() => void} clear */
export function histogram(name, choose, clear) {
  const id = `bars-${++made}`;
  const [from, said, to] = [h("span"), h("span", { class: "bars-said" }), h("span")];
  /** @type {Bin[]} */
  let bins = [];
  /** @type {[number, number] | null} */
  let chosen = null;
  let [active, anchor, dragging] = [0, 0, false];

  /** @param {number} first @param {number} last */
  const text = (first, last) => {
    const videos = bins.slice(first, last + 1).reduce((total, bin) => total + bin.videos, 0);
    const [low, high] = [bins[first]?.label, bins[last]?.label];
    return `${low === high ? low : `${low} – ${high}`}: ${plural(videos, "{n} video", "{n} videos")}`;
  };
  const show = () => {
    [...bars.children].forEach((bar, i) => {
      bar.setAttribute("aria-selected", String(chosen !== null && i >= chosen[0] && i <= chosen[1]));
      bar.classList.toggle("active", i === active);
    });
    if (bins.length) bars.setAttribute("aria-activedescendant", `${id}-${active}`);
    said.textContent = chosen ? text(...chosen) : document.activeElement === bars ? text(active, active) : "";
  };
  /** @param {number} place */
  const extend = (place) => { active = place; chosen = [Math.min(anchor, place), Math.max(anchor, place)]; show(); };
  const settle = () => { dragging = false; if (chosen) choose(...chosen); };
  const at = (/** @type {PointerEvent} */ event) => {
    const box = bars.getBoundingClientRect();
    return Math.min(Math.max(Math.floor(((event.clientX - box.left) / box.width) * bins.length), 0), bins.length - 1);
  };
  const onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const next = { ArrowLeft: active - 1, ArrowRight: active + 1, Home: 0, End: bins.length - 1 }[event.key];
    if (event.key === "Delete") clear();
    else if (event.key === "Enter" || event.key === " ") { extend((anchor = active)); settle(); }
    else if (next === undefined || !bins[next]) return;
    else if (event.shiftKey) { extend(next); settle(); }
    else { active = anchor = next; show(); }
    event.preventDefault();
    event.stopPropagation();
  };
  const bars = h("div", {
    class: "bars", role: "listbox", tabindex: "0", "aria-label": name, "aria-multiselectable": "true", "aria-orientation": "horizontal",
    onkeydown, onfocus: () => show(), onblur: () => show(), onpointerup: () => dragging && settle(), onpointercancel: () => { dragging = false; },
    onpointerdown: (/** @type {PointerEvent} */ event) => { dragging = true; bars.setPointerCapture(event.pointerId); extend((anchor = at(event))); },
    onpointermove: (/** @type {PointerEvent} */ event) => { const place = at(event); if (dragging) extend(place); else bars.title = text(place, place); },
  });
  return {
    element: h("div", {}, bars, h("div", { class: "bars-ends" }, from, said, to)),
    /** @param {Bin[]} now @param {[number, number] | null} chosen_ */
    draw(now, chosen_) {
      chosen = chosen_;
      if (JSON.stringify(now) !== JSON.stringify(bins)) {
        bins = now;
        active = anchor = chosen?.[0] ?? 0;
        const most = Math.max(1, ...bins.map((bin) => bin.videos));
        fill(bars, bins.map((bin, i) => {
          const bar = h("div", { role: "option", id: `${id}-${i}`, "aria-label": text(i, i) });
          bar.style.setProperty("--share", String(bin.videos && Math.max(0.06, bin.videos / most)));
          return bar;
        }));
        [from.textContent, to.textContent] = [bins[0]?.label ?? "", bins.at(-1)?.label ?? ""];
      }
      show();
    },
  };
}
