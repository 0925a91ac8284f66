// Accessibility of the current view, checked by axe.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Kinds of text whose contrast was determined, in any view. The rule takes two thirds of the time of axe on long pages. */
const checked = new Set();

/**
 * Serious violations. Where a view was checked in the other theme, `onlyColours` skips what does not depend on the theme.
 * @param {any} page @param {{onlyColours?: boolean}} [how]
 */
export async function findings(page, { onlyColours = false } = {}) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const unchecked = (await page.evaluate(textKinds)).filter((kind) => !checked.has(kind));
  if (onlyColours && unchecked.length === 0) return [];
  const { serious, contrasted } = await page.evaluate(audit, { unchecked, onlyColours });
  for (const kind of contrasted) checked.add(kind);
  return serious;
}

/**
 * Runs in the page. Returns the kinds of visible text: names, classes and all that decides contrast, from the root down.
 * Keeps the first element of each kind.
 */
function textKinds() {
  const kinds = new Map([[null, ""]]);
  window.firstOfKind = new Map();
  for (const it of document.querySelectorAll("*")) {
    const { color, backgroundColor, backgroundImage, fontSize, fontWeight, opacity, textShadow } = getComputedStyle(it);
    const kind = [kinds.get(it.parentElement), it.tagName, it.getAttribute("class"), color, backgroundColor, backgroundImage, fontSize, fontWeight, opacity, textShadow].join(" ");
    kinds.set(it, kind);
    const hasText = it.matches("input, select, textarea") || [...it.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== "");
    if (hasText && !window.firstOfKind.has(kind) && it.checkVisibility({ opacityProperty: true, visibilityProperty: true })) window.firstOfKind.set(kind, it);
  }
  return [...window.firstOfKind.keys()];
}

/** Runs in the page. Returns violations, and the kinds of text whose contrast was determined: axe skips disabled controls, for example. */
async function audit({ unchecked, onlyColours }) {
  const CONTRAST = "color-contrast";
  const MARK = "data-unchecked-contrast";
  for (const kind of unchecked) window.firstOfKind.get(kind).setAttribute(MARK, "");
  window.axe.configure({ rules: [{ id: CONTRAST, selector: `[${MARK}]` }] });
  const contrast = await window.axe.run(document, { runOnly: CONTRAST, resultTypes: ["violations", "passes"], elementRef: true });
  for (const kind of unchecked) window.firstOfKind.get(kind).removeAttribute(MARK);
  const rules = onlyColours ? { runOnly: "link-in-text-block" } : { rules: { [CONTRAST]: { enabled: false } } };
  const others = await window.axe.run(document, { resultTypes: ["violations"], ...rules });
  const determined = new Set([...contrast.violations, ...contrast.passes].flatMap((it) => it.nodes.map((node) => node.element)));
  const serious = [...contrast.violations, ...others.violations].filter((it) => ["serious", "critical"].includes(it.impact));
  return {
    contrasted: unchecked.filter((kind) => determined.has(window.firstOfKind.get(kind))),
    serious: serious.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`),
  };
}
