// What happens over time, and how much is stored: plots, quotas, standing.

import { standingFacts } from "./account.mjs";
import { choice } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { query } from "./address.mjs";
import { ownAccount, usage, usageHistory } from "./manage.mjs";
import { facts, glances, nothing, page, panel, part, table } from "./parts.mjs";
import { plot } from "./plot.mjs";
import { go } from "./router.mjs";
import { lastOf, sumOf } from "./series.mjs";
import { bytes, count, duration, number } from "./text.mjs";

const HOUR_MS = 3_600_000;
/** Spans of time: name, words, step, and how far back. @type {[string, string, "minute" | "hour" | "day", number][]} */
const SPANS = [["hour", "Last hour", "minute", HOUR_MS], ["day", "Last day", "hour", 24 * HOUR_MS], ["week", "Last week", "hour", 168 * HOUR_MS], ["month", "Last 30 days", "day", 720 * HOUR_MS], ["year", "Last year", "day", 365 * 24 * HOUR_MS]];

const MINUTES = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const HOURS = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const DAYS = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
/** How times are written, by step. */
const WRITTEN = { minute: MINUTES, hour: HOURS, day: DAYS };

/** Milliseconds of a processor, in words. @param {number} ms */
const work = (ms) => (ms < 1000 ? `${number(Math.round(ms))} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms / 1000));
const whole = (/** @type {number} */ value) => number(Math.round(value * 100) / 100);

/** The plots of an answer. @param {any} answer */
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
    drawn("Requests", `${number(sumOf(points, "requests"))} in all`, [{ name: "Requests", values: values("requests") }], whole),
    drawn("Egress and ingress", `${bytes(sumOf(points, "bytesOut"))} out, ${bytes(sumOf(points, "bytesIn"))} in`, [{ name: "Out", values: values("bytesOut") }, { name: "In", values: values("bytesIn"), class: "second" }], bytes),
    drawn("Stored", stored === null ? "not counted yet" : `${bytes(stored)} now`, [{ name: "Stored", values: values("storedBytes") }], bytes),
    drawn("Files", objects === null ? "not counted yet" : `${number(objects)} now`, [{ name: "Files", values: values("objectCount") }], whole),
    drawn("Errors", hasRefusals ? `${count(sumOf(points, "errors"), "error")}, ${count(sumOf(points, "refusals"), "refusal")}` : count(sumOf(points, "errors"), "error"),
      [{ name: "Errors of the server", values: values("errors"), class: "bad" }, ...(hasRefusals ? [{ name: "Refusals", values: values("refusals"), class: "second" }] : [])], whole),
    drawn("Pictures made", `${number(sumOf(points, "images"))} in all`, [{ name: "Pictures", values: values("images") }], whole),
    drawn("Time for pictures", `${work(sumOf(points, "imageMs"))} of processor time`, [{ name: "Time", values: values("imageMs") }], work),
  ];
}

/** @param {any} place @param {any} frame */
export async function view(place, frame) {
  const { bucket } = place;
  const [name, , step, back] = SPANS.find(([it]) => it === place.values.get("over")) ?? SPANS[1];
  const addressOf = (/** @type {string} */ it, /** @type {string} */ over) => `/-/usage${it === "" ? "" : `/${encodeURIComponent(it)}`}${query({ over: over === "day" ? null : over })}`;
  const buckets = (await frame.loaded).map((/** @type {any} */ it) => it.bucketName);
  const it = page(bucket === "" ? "Usage" : `Usage of ${bucket}`, { about: "Requests, traffic, and what is stored." });
  const history = part(() => usageHistory({ step, bucketName: bucket, from: step === "minute" ? null : new Date(Date.now() - back).toISOString() }, it.stopped), (answer) => (answer.points.length === 0
    ? nothing("chart", "Nothing was counted yet", "Counts come by the minute.")
    : [
      answer.since && step === "minute" && make("p", { class: "faint" }, "Minutes are counted since the server started, ", new Date(answer.since).toLocaleTimeString("en-GB"), "."),
      glances([
        ["Requests", number(sumOf(answer.points, "requests"))], ["Out", bytes(sumOf(answer.points, "bytesOut"))], ["In", bytes(sumOf(answer.points, "bytesIn"))],
        ["Errors", number(sumOf(answer.points, "errors"))], ["Pictures", number(sumOf(answer.points, "images")), work(sumOf(answer.points, "imageMs"))],
      ]),
      make("div", { class: "plots" }, plots(answer)),
    ]));
  const room = part(async () => ({ counted: await usage(it.stopped), account: await ownAccount() }), ({ counted, account }) => {
    const { total } = counted;
    const limit = (/** @type {number} */ used, /** @type {number | null} */ max, /** @type {(value: number) => string} */ words, /** @type {string} */ what) => (max === null || max === undefined ? [words(used), make("small", null, " no limit")]
      : make("div", { class: "quota" }, make("progress", { max: max || 1, value: Math.min(used, max), class: used >= max * 0.9 ? "full" : null, "aria-label": what }), make("small", null, `${words(used)} of ${words(max)}`)));
    return [
      facts([
        ...standingFacts(account),
        ...(total ? /** @type {[string, any][]} */ ([["Stored", limit(total.totalBytes, total.storageBytesMax, bytes, "Bytes of the account")], ["Files", limit(total.objectCount, total.objectCountMax, number, "Files of the account")]]) : []),
      ]),
      table("What buckets hold", [["Bucket"], ["Files", "number"], ["Stored", "number"], ["Quota", "wide"]], counted.buckets.map((/** @type {any} */ one) => [
        make("a", { href: addressOf(one.bucketName, name) }, one.bucketName), number(one.objectCount), bytes(one.totalBytes),
        one.quotaBytes || one.quotaObjects ? [one.quotaBytes ? limit(one.totalBytes, one.quotaBytes, bytes, `Bytes of ${one.bucketName}`) : null, one.quotaObjects ? limit(one.objectCount, one.quotaObjects, number, `Files of ${one.bucketName}`) : null] : "none",
      ])).element,
    ];
  });
  it.element.append(
    make("div", { class: "choosers" },
      choice("Bucket", { change: (/** @type {any} */ event) => go(addressOf(event.target.value, name)) }, [["", "all buckets"], ...buckets.map((/** @type {string} */ one) => [one, one])], bucket),
      choice("Period", { change: (/** @type {any} */ event) => go(addressOf(bucket, event.target.value)) }, SPANS.map(([one, words]) => /** @type {[string, string]} */ ([one, words])), name)),
    make("div", null, history.element),
    panel("Room", {}, room.element));
  return it;
}
