// Usage: plots of requests, traffic and storage over time, quotas, and standing.

import { standingFacts } from "./account.mjs";
import { choice } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { query } from "./address.mjs";
import { ownAccount, usage, usageHistory } from "./manage.mjs";
import { facts, glances, nothing, page, panel, part, table } from "./parts.mjs";
import { plot } from "./plot.mjs";
import { go } from "./router.mjs";
import { lastOf, sumOf } from "./series.mjs";
import { bytes, duration, number } from "./text.mjs";

const HOUR_MS = 3_600_000;
/** Periods: name, label, step, and length in milliseconds. @type {[string, string, "minute" | "hour" | "day", number][]} */
const SPANS = [["hour", "Last hour", "minute", HOUR_MS], ["day", "Last 24 hours", "hour", 24 * HOUR_MS], ["week", "Last 7 days", "hour", 168 * HOUR_MS], ["month", "Last 30 days", "day", 720 * HOUR_MS], ["year", "Last 12 months", "day", 365 * 24 * HOUR_MS]];

const MINUTES = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const HOURS = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const DAYS = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
/** Formats of times, by step. */
const WRITTEN = { minute: MINUTES, hour: HOURS, day: DAYS };

/** CPU time as text. @param {number} ms */
const work = (ms) => (ms < 1000 ? `${number(Math.round(ms))} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms / 1000));
const whole = (/** @type {number} */ value) => number(Math.round(value * 100) / 100);

/** The plots of a usage history. @param {any} answer */
export function plots(answer) {
  const { points, step } = answer;
  const times = points.map((/** @type {any} */ point) => point.time);
  const values = (/** @type {string} */ field) => points.map((/** @type {any} */ point) => point[field] ?? null);
  const time = (/** @type {string} */ iso) => WRITTEN[/** @type {"hour"} */ (step)].format(new Date(iso));
  const drawn = (/** @type {string} */ title, /** @type {string} */ sum, /** @type {any} */ series, /** @type {any} */ format) => plot({ title, sum, times, series, format, time });
  const stored = lastOf(points, "storedBytes");
  const objects = lastOf(points, "objectCount");
  const hasRefusals = points.some((/** @type {any} */ point) => point.refusals !== undefined);
  return [
    drawn("Requests", `${number(sumOf(points, "requests"))} total`, [{ name: "Requests", values: values("requests") }], whole),
    drawn("Traffic", `${bytes(sumOf(points, "bytesOut"))} sent, ${bytes(sumOf(points, "bytesIn"))} received`, [{ name: "Sent", values: values("bytesOut") }, { name: "Received", values: values("bytesIn"), class: "second" }], bytes),
    drawn("Stored", stored === null ? "No data yet" : `${bytes(stored)} now`, [{ name: "Stored", values: values("storedBytes") }], bytes),
    drawn("Files", objects === null ? "No data yet" : `${number(objects)} now`, [{ name: "Files", values: values("objectCount") }], whole),
    drawn("Errors", hasRefusals ? `${number(sumOf(points, "errors"))} server, ${number(sumOf(points, "refusals"))} client` : `${number(sumOf(points, "errors"))} server`,
      [{ name: "Server errors (5xx)", values: values("errors"), class: "bad" }, ...(hasRefusals ? [{ name: "Client errors (4xx)", values: values("refusals"), class: "second" }] : [])], whole),
    drawn("Images generated", `${number(sumOf(points, "images"))} total`, [{ name: "Images", values: values("images") }], whole),
    drawn("Image CPU time", `${work(sumOf(points, "imageMs"))} CPU`, [{ name: "CPU time", values: values("imageMs") }], work),
  ];
}

/** @param {any} place @param {any} frame */
export async function view(place, frame) {
  const { bucket } = place;
  const [name, , step, back] = SPANS.find(([it]) => it === place.values.get("over")) ?? SPANS[1];
  const addressOf = (/** @type {string} */ it, /** @type {string} */ over) => `/-/usage${it === "" ? "" : `/${encodeURIComponent(it)}`}${query({ over: over === "day" ? null : over })}`;
  const buckets = (await frame.loaded).map((/** @type {any} */ it) => it.bucketName);
  const it = page(bucket === "" ? "Usage" : `${bucket} usage`, { about: "Requests, traffic and storage" });
  const history = part(() => usageHistory({ step, bucketName: bucket, from: step === "minute" ? null : new Date(Date.now() - back).toISOString() }, it.stopped), (answer) => (answer.points.length === 0
    ? nothing("chart", "No data yet", "Usage is updated every minute.")
    : [
      answer.since && step === "minute" && make("p", { class: "faint" }, "Per-minute data since the server started, ", new Date(answer.since).toLocaleTimeString("en-GB"), "."),
      glances([
        ["Requests", number(sumOf(answer.points, "requests"))], ["Sent", bytes(sumOf(answer.points, "bytesOut"))], ["Received", bytes(sumOf(answer.points, "bytesIn"))],
        ["Server errors", number(sumOf(answer.points, "errors"))], ["Images generated", number(sumOf(answer.points, "images")), work(sumOf(answer.points, "imageMs"))],
      ]),
      make("div", { class: "plots" }, plots(answer)),
    ]));
  const room = part(async () => ({ counted: await usage(it.stopped), account: await ownAccount() }), ({ counted, account }) => {
    const { total } = counted;
    const limit = (/** @type {number} */ used, /** @type {number | null} */ max, /** @type {(value: number) => string} */ words, /** @type {string} */ what) => (max === null || max === undefined ? [words(used), make("small", null, " · no limit")]
      : make("div", { class: "quota" }, make("progress", { max: max || 1, value: Math.min(used, max), class: used >= max * 0.9 ? "full" : null, "aria-label": what }), make("small", null, `${words(used)} of ${words(max)}`)));
    return [
      facts([
        ...standingFacts(account),
        ...(total ? /** @type {[string, any][]} */ ([["Stored", limit(total.totalBytes, total.storageBytesMax, bytes, "Account storage")], ["Files", limit(total.objectCount, total.objectCountMax, number, "Account files")]]) : []),
      ]),
      table("Storage by bucket", [["Bucket"], ["Files", "number"], ["Stored", "number"], ["Quota", "wide"]], counted.buckets.map((/** @type {any} */ one) => [
        make("a", { href: addressOf(one.bucketName, name) }, one.bucketName), number(one.objectCount), bytes(one.totalBytes),
        one.quotaBytes || one.quotaObjects ? [one.quotaBytes ? limit(one.totalBytes, one.quotaBytes, bytes, `Storage of ${one.bucketName}`) : null, one.quotaObjects ? limit(one.objectCount, one.quotaObjects, number, `Files of ${one.bucketName}`) : null] : "No limit",
      ])).element,
    ];
  });
  it.element.append(
    make("div", { class: "choosers" },
      choice("Bucket", { change: (/** @type {any} */ event) => go(addressOf(event.target.value, name)) }, [["", "All buckets"], ...buckets.map((/** @type {string} */ one) => [one, one])], bucket),
      choice("Period", { change: (/** @type {any} */ event) => go(addressOf(bucket, event.target.value)) }, SPANS.map(([one, words]) => /** @type {[string, string]} */ ([one, words])), name)),
    make("div", null, history.element),
    panel("Quotas", {}, room.element));
  return it;
}
