// Elements made one by one: data only ever becomes text nodes and attributes, never markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element. Properties that begin with "on" are listeners, `class` and `data-…`, `aria-…` are attributes,
 * `true` is an attribute without a value, `false` and `null` none at all.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "value") /** @type {any} */ (element).value = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...nodes(children));
  return element;
}

/**
 * Put children in place of those that are there.
 *
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/** @param {ParentNode} within */
const controlsOf = (within) => [...within.querySelectorAll(/** @type {"button"} */ ("button, select, input"))];

/** Put children in place of those that are there; the control that has the focus has it again, by its place from the end,
 * or where none is left, the one before the element.
 * @param {Element} element @param {...(Child | Child[])} children */
export function refill(element, ...children) {
  const before = controlsOf(element);
  const at = before.findIndex((control) => control === document.activeElement);
  fill(element, ...children);
  const after = controlsOf(element);
  if (at >= 0) (after[Math.max(after.length - before.length + at, 0)] ?? controlBefore(element))?.focus();
}

/** Take an element out of the page; if the focus was in it, the control before it has it.
 * @param {Element} element */
export function takeAway(element) {
  const next = element.contains(document.activeElement) ? controlBefore(element) : null;
  element.remove();
  next?.focus();
}

/** The control before an element: without one that has the focus, a key goes on at the top of the page.
 * @param {Element} element */
const controlBefore = (element) => controlsOf(document).findLast((control) =>
  control.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING && !control.disabled && control.checkVisibility({ visibilityProperty: true }));

/** Set a state, or take it away. An empty value, which toggleAttribute sets, is none to a screen reader.
 * @param {Element} element @param {"aria-invalid" | "aria-current"} state @param {boolean} on */
export function setState(element, state, on) {
  if (on) element.setAttribute(state, "true");
  else element.removeAttribute(state);
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * The element with an id; its absence is a mistake in index.html.
 *
 * @template {HTMLElement} E
 * @param {string} id
 * @param {new () => E} kind
 * @returns {E}
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`index.html has no ${kind.name} with the id ${id}`);
  return found;
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * An SVG element.
 *
 * @param {string} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {...Node} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

// Strokes on a field of 20 x 20.
const ICONS = {
  add: "M10 4v12M4 10h12",
  added: "M4 10.5l4 4 8-9",
  right: "M4 10.5l4 4 8-9",
  wrong: "M5 5l10 10M15 5L5 15",
  keep: "M6 3.5h8v13l-4-3.5-4 3.5z",
  like: "M3 8c2.3-3 4.7-3 7 0s4.7 3 7 0M3 13c2.3-3 4.7-3 7 0s4.7 3 7 0",
  picture: "M3 5h14v10H3zM3 13l4-4 3.5 3.5 2-2L17 14M13 7.6v.1",
  filter: "M3 6h14M6 10h8M8.5 14h3",
  grid: "M3.5 4h5v5h-5zM11.5 4h5v5h-5zM3.5 11.5h5v5h-5zM11.5 11.5h5v5h-5z",
  rows: "M3.5 4.5h13M3.5 7.5h4v4h-4zM9 7.5h4v4H9zM14.5 7.5h2v4h-2M3.5 15h13",
  close: "M5 5l10 10M15 5L5 15",
  previous: "M12.5 4.5L7 10l5.5 5.5",
  next: "M7.5 4.5L13 10l-5.5 5.5",
  up: "M4.5 12.5L10 7l5.5 5.5",
  down: "M4.5 7.5L10 13l5.5-5.5",
  play: "M6.5 4.5l9 5.5-9 5.5z",
  pause: "M7 4.5v11M13 4.5v11",
  muted: "M3.5 8v4H6l4 3.5v-11L6 8zM13 8l4 4M17 8l-4 4",
  sound: "M3.5 8v4H6l4 3.5v-11L6 8zM13 7.5c1.3 1.3 1.3 3.7 0 5M15 5.5c2.4 2.4 2.4 6.6 0 9",
  loop: "M5 9V8a2.5 2.5 0 012.5-2.5H15M12.5 3L15 5.5 12.5 8M15 11v1a2.5 2.5 0 01-2.5 2.5H5M7.5 17L5 14.5 7.5 12",
  again: "M16 10a6 6 0 11-2-4.5M14.5 2.5v3.5H11",
  full: "M4 8V4h4M12 4h4v4M16 12v4h-4M8 16H4v-4",
  link: "M8.5 11.5l3-3M9 6.5l1.5-1.5a3.2 3.2 0 014.5 4.5L13.5 11M11 13.5L9.5 15A3.2 3.2 0 015 10.5L6.5 9",
  download: "M10 3.5v9M6 9l4 4 4-4M4 16.5h12",
  search: "M9 3.5a5.5 5.5 0 100 11 5.5 5.5 0 000-11M13 13l4 4",
  sun: "M10 6.5a3.5 3.5 0 100 7 3.5 3.5 0 000-7M10 2v2M10 16v2M2 10h2M16 10h2M4.5 4.5l1.3 1.3M14.2 14.2l1.3 1.3M15.5 4.5l-1.3 1.3M5.8 14.2l-1.3 1.3",
  moon: "M16 11.5A6.5 6.5 0 018.5 4 6.5 6.5 0 1016 11.5z",
  auto: "M10 3.5a6.5 6.5 0 100 13zM10 3.5a6.5 6.5 0 010 13",
  remove: "M4.5 6h11M8 6V4h4v2M6 6l.7 10h6.6L14 6",
  about: "M10 3a7 7 0 100 14 7 7 0 000-14M10 9.5v4M10 6.5v.1",
  keys: "M2.5 6h15v9h-15zM5.5 9v.1M8.5 9v.1M11.5 9v.1M14.5 9v.1M6.5 12h7",
  globe: "M10 3a7 7 0 100 14 7 7 0 000-14M3 10h14M10 3c-4 4-4 10 0 14M10 3c4 4 4 10 0 14",
  grip: "M7.5 5v.1M12.5 5v.1M7.5 10v.1M12.5 10v.1M7.5 15v.1M12.5 15v.1",
};

/** @typedef {keyof typeof ICONS} IconName */

/**
 * @param {IconName} name
 * @returns {SVGElement} decoration only: whatever holds it has a label.
 */
export function icon(name) {
  return svg("svg", { viewBox: "0 0 20 20", class: "icon", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/**
 * A button of an icon alone.
 *
 * @param {IconName} name
 * @param {string} label said to a screen reader and shown as a tip.
 * @param {(event: MouseEvent) => void} onclick
 * @param {Record<string, unknown>} [more]
 * @returns {HTMLButtonElement}
 */
export function iconButton(name, label, onclick, more = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...more }, icon(name));
}
