// Answers of the server that tests tell a page, where waiting for real ones would take days.

const HOUR_MS = 3_600_000;

/** Points of usage over time: a day's rise and fall. @param {URL} url */
export function history(url) {
  const step = url.searchParams.get("step");
  const ms = { minute: 60_000, hour: HOUR_MS, day: 24 * HOUR_MS }[step];
  const end = Math.floor(Date.UTC(2026, 10, 23, 12) / ms) * ms;
  const length = { minute: 60, hour: 24, day: 30 }[step];
  const points = Array.from({ length }, (_, index) => {
    const time = end - (length - 1 - index) * ms;
    const wave = 1 + Math.sin((index / length) * Math.PI * 4) + (index % 7) / 7;
    return {
      time: new Date(time).toISOString(), requests: Math.round(1200 * wave), errors: index % 11 === 0 ? 3 : 0, refusals: Math.round(12 * wave), bytesOut: Math.round(8e7 * wave), bytesIn: Math.round(6e6 * wave),
      images: Math.round(90 * wave), imageMs: Math.round(4200 * wave), objectCount: index < 3 ? null : 12_000 + index * 40, storedBytes: index < 3 ? null : 5e9 + index * 3e7,
    };
  });
  return { success: true, step, from: points[0].time, to: points.at(-1).time, ...(step === "minute" ? { since: points[0].time } : {}), points };
}

const entry = (number, action, more = {}) => ({
  id: `e${number}`, time: new Date(Date.UTC(2026, 10, 23, 12) - number * 700_000).toISOString(), action, actor: { kind: "session", id: "ses_1", name: "olga", account: "acc_olga" },
  bucketName: null, target: null, detail: null, address: "127.0.0.1", requestId: `r${number}`, ...more,
});

/** Entries of the audit log, of which some are asked for. @param {URL} url */
export function audit(url) {
  const all = [
    entry(1, "bucket.change", { bucketName: "desk", detail: "access: private" }), entry(2, "key.create", { target: "phone", detail: "upload in desk/calls/" }),
    entry(3, "session.refused", { actor: { kind: "server", id: "", name: "" }, target: "olga", address: "203.0.113.9", requestId: null }),
    entry(4, "job.begin", { bucketName: "desk", target: "emptyBucket", actor: { kind: "key", id: "key_1", name: "backup" } }), entry(5, "account.invite", { target: "carl" }),
    entry(6, "key.delete", { target: "old one" }), entry(7, "compaction.begin", { actor: { kind: "operator", id: "", name: "command line" }, address: "" }),
  ];
  const prefix = url.searchParams.get("action") ?? "";
  const actor = url.searchParams.get("actor");
  const found = all.filter((it) => it.action.startsWith(prefix) && (!actor || [it.actor.id, it.actor.account].includes(actor)));
  const isSecond = url.searchParams.get("before") === "more";
  return { success: true, entries: isSecond ? [entry(8, "bucket.create", { bucketName: "desk" })] : found, nextCursor: isSecond || prefix || actor ? null : "more" };
}

/** A store with dead bytes and a damaged file. */
export function storage() {
  const segment = (id, live, dead, more = {}) => ({ id, kind: "log", bytes: live + dead, liveBytes: live, deadBytes: dead, objects: 900 + id, sealed: true, verifiedAt: "2026-11-20T03:00:00.000Z", damageCount: 0, ...more });
  return {
    success: true, health: "writable", disk: { totalBytes: 500e9, freeBytes: 310e9, reserveBytes: 5e9 }, index: { bytes: 41e6, waitingChanges: 812, condemned: false },
    kinds: [{ kind: "log", segments: 14, liveBytes: 11e9, deadBytes: 3.2e9 }, { kind: "compacted", segments: 30, liveBytes: 29e9, deadBytes: 1e9 }, { kind: "big", segments: 812, liveBytes: 92e9, deadBytes: 0 }],
    segments: [segment(12, 3e8, 7e8), segment(13, 6e8, 4e8, { damageCount: 1 }), segment(44, 1e8, 1e6, { sealed: false, verifiedAt: null })], segmentsTruncated: true,
    retained: { files: 3, bytes: 2.5e9, nextReleaseAt: "2026-11-23T13:00:00.000Z" }, verifiedSince: "2026-11-20T03:00:00.000Z", lastBackup: { at: "2026-10-02T02:00:00.000Z", to: "/backup/trug", damageCount: 0 }, damageCount: 1,
    damage: [{ bucketName: "desk", path: "2026/letter.txt", file: "seg-0000000d.log", offset: 1_234_567, what: "the body does not have its checksum", whatToDo: "Bring the file back from a backup, or delete it.", foundAt: "2026-11-22T03:00:00.000Z" }],
    compaction: { wouldFree: 1.1e9, wouldCopy: 9e8, segments: 2 },
  };
}

/** Lets a page be told these. */
export async function tell(page) {
  await page.route("**/api/usage/history?*", (route) => route.fulfill({ json: history(new URL(route.request().url())) }));
  await page.route("**/api/audit?*", (route) => route.fulfill({ json: audit(new URL(route.request().url())) }));
  await page.route("**/api/storage", (route) => route.fulfill({ json: storage() }));
}
