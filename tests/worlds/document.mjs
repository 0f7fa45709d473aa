// A document just good enough for scripts of the page to run in node: elements that hold what they are given.

function element(tag = "") {
  const children = [];
  const known = {
    tag, children, heard: {}, dataset: {}, hidden: false, value: "", textContent: "",
    addEventListener: (name, listener) => { known.heard[name] = listener; },
    append: (...more) => children.push(...more),
    prepend: (...more) => children.unshift(...more),
    replaceChildren: (...others) => children.splice(0, children.length, ...others),
    get firstElementChild() { return children.length ? { remove: () => children.shift() } : null; },
    querySelector: () => null,
    querySelectorAll: () => [],
  };
  return new Proxy(known, {
    get: (_, name) => (name in known || typeof name === "symbol" || name === "then" ? known[name] : () => element()),
    getPrototypeOf: () => globalThis.HTMLElement.prototype,
  });
}

const KINDS = ["Node", "HTMLElement", "HTMLDivElement", "HTMLFormElement", "HTMLInputElement", "HTMLAnchorElement", "HTMLButtonElement", "HTMLDialogElement", "File"];
for (const kind of KINDS) globalThis[kind] = class { static [Symbol.hasInstance](value) { return typeof value === "object"; } };
const storage = {};
Object.assign(globalThis, {
  window: globalThis,
  addEventListener: () => {},
  localStorage: { getItem: (name) => storage[name] ?? null, setItem: (name, value) => { storage[name] = value; } },
  location: { hash: "", reload: () => {} },
  matchMedia: () => ({ matches: false, addEventListener: () => {} }),
  document: {
    documentElement: element(), body: element(), activeElement: null, addEventListener: () => {},
    createElement: element, createElementNS: (_, tag) => element(tag), getElementById: element, querySelector: () => null, querySelectorAll: () => [],
  },
});

/** Answer requests as a server would: a list of pairs of a beginning, METHOD and path, and what gives the answer.
 * An answer with a `status` is a refusal. */
export function serve(routes) {
  globalThis.fetch = async (path, { method = "GET", body } = {}) => {
    const [, answer] = routes.find(([begins]) => `${method} /${path}`.startsWith(begins)) ?? [];
    if (!answer) throw new Error(`${method} ${path} was not expected`);
    const said = answer(body ? JSON.parse(body) : undefined, path);
    const { status = 200, headers = {} } = said;
    return { ok: status < 400, status, headers: { get: (name) => headers[name] ?? null }, json: async () => said };
  };
}

/** What a request that waits is answered with, until nothing waits any more. */
export const settled = () => new Promise((resolve) => setTimeout(resolve));
