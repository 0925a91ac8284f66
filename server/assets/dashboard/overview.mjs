// What one sees at a glance above the buckets: the last day, and what somebody has to look after.

import { standingBadge, STANDINGS } from "./account.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { storage, usageHistory } from "./manage.mjs";
import { spark } from "./plot.mjs";
import { lastOf, sumOf } from "./series.mjs";
import { bytes, count, number } from "./text.mjs";

const DAY_MS = 86_400_000;

/** What an operator has to look after. @param {any} told */
function concerns(told) {
  return [
    told.damageCount > 0 && `${count(told.damageCount, "damaged place")} in the store.`,
    told.health === "full" && "The disk is full: uploads are refused.",
    told.health === "read_only" && "The store takes no writes.",
  ].filter(Boolean);
}

/** @param {any} account */
export async function overview(account) {
  const [answer, told] = await Promise.all([
    usageHistory({ step: "hour", from: new Date(Date.now() - DAY_MS).toISOString() }).catch(() => null),
    account?.role === "operator" ? storage().catch(() => null) : null,
  ]);
  const points = answer?.points ?? [];
  const tile = (/** @type {string} */ name, /** @type {string} */ value, /** @type {string} */ field, className = "") => make("div", null, make("dt", null, name), make("dd", null, make("b", null, value)), spark(points.map((/** @type {any} */ point) => point[field] ?? null), className));
  const stored = lastOf(points, "storedBytes");
  return [
    ...(told ? concerns(told) : []).map((what) => make("p", { class: "concern" }, icon("warning"), what, " ", make("a", { href: "/-/storage" }, "What to do"))),
    account?.standing && account.standing !== "good" && make("p", { class: "concern" }, icon("warning"), standingBadge(account.standing), ` ${STANDINGS[account.standing] ?? ""} `, make("a", { href: "/-/usage" }, "Usage")),
    points.length > 0 && make("section", { class: "overview", "aria-label": "The last day" }, make("dl", { class: "glances" },
      tile("Requests, last day", number(sumOf(points, "requests")), "requests"), tile("Out", bytes(sumOf(points, "bytesOut")), "bytesOut"),
      tile("Stored", stored === null ? "–" : bytes(stored), "storedBytes"), tile("Errors", number(sumOf(points, "errors")), "errors", "bad")),
      make("p", null, make("a", { href: "/-/usage" }, "Usage of the last day"))),
  ];
}
