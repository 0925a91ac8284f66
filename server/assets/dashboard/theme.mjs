// Light or dark theme: the preference of the system, or the one chosen in the dashboard.

import { preferences } from "./dom.mjs";

/** Whether the theme is dark. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Switches the theme, and stores the choice. */
export function turnOver() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("trug-theme", theme);
  } catch {
    preferences.set("theme", null);
  }
}
