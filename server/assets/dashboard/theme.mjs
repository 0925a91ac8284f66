// Light or dark: the preference of the system, or the one chosen here.

import { preferences } from "./dom.mjs";

/** Whether it is dark now. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Turns it over, and keeps that. */
export function turnOver() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("trug-theme", theme);
  } catch {
    preferences.set("theme", null);
  }
}
