// Light, dark, or as the system has it.

import { byId, fill, iconButton } from "./dom.js";
import { t } from "./language.js";
import { remembered } from "./store.js";

/** @typedef {"auto" | "light" | "dark"} Theme */

const theme = remembered("moviola.theme", /** @type {Theme} */ ("auto"));
/** @type {Record<Theme, {icon: import("./dom.js").IconName, next: Theme, label: string}>} */
const THEMES = {
  auto: { icon: "auto", next: "light", label: t("Colours as the system has them; choose light") },
  light: { icon: "sun", next: "dark", label: t("Light colours; choose dark") },
  dark: { icon: "moon", next: "auto", label: t("Dark colours; choose as the system has them") },
};

const holder = document.createElement("span");

function draw() {
  const now = THEMES[theme.value] ? theme.value : "auto";
  document.documentElement.dataset.theme = now;
  const { icon, next, label } = THEMES[now];
  fill(holder, iconButton(icon, label, () => { theme.value = next; holder.querySelector("button")?.focus(); }));
}

export function startTheme() {
  byId("bar-end", HTMLDivElement).append(holder);
  theme.onChange(draw);
  draw();
}
