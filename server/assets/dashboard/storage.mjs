// The storage page for operators: disk usage, damage, compaction, scrub and backup.

import { filesAddress, folderOf } from "./address.mjs";
import { startJob } from "./api.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { jobList } from "./jobs.mjs";
import { complain, note } from "./live.mjs";
import { storage } from "./manage.mjs";
import { badge, button, command, facts, glances, page, panel, part, table, when } from "./parts.mjs";
import { bytes, count, duration, number } from "./text.mjs";

/** Segment types, in words. @type {Record<string, string>} */
const KINDS = { log: "Log segments", compacted: "Compacted segments", big: "Large objects" };
/** Legend of the disk bar, by class. @type {Record<string, string>} */
const LEGEND = { live: "In use", dead: "Reclaimable", other: "Other files", free: "Free" };
/** Kinds of maintenance jobs. */
const KINDS_OF_WORK = ["compact", "scrub"];
/** Prices of a million requests to a remote store, in USD. @type {Record<string, number>} */
const REQUEST_PRICES = { create: 5, upload: 5, list: 5, read: 0.4 };
/** Age after which a backup or a full verification is marked as old. */
const OLD_MS = 8 * 86_400_000;

/** A bar of shares. @param {string} label @param {[string, number, string][]} pieces class, amount, words */
function bar(label, pieces) {
  const total = pieces.reduce((sum, [, amount]) => sum + Math.max(0, amount), 0) || 1;
  return make("div", { class: "bar-of", role: "img", "aria-label": `${label}: ${pieces.map(([, , words]) => words).join(", ")}` }, pieces.map(([name, amount]) => {
    const piece = make("i", { class: name });
    piece.style.width = `${(Math.max(0, amount) / total) * 100}%`;
    return piece;
  }));
}

/** @param {any} it */
function health(it) {
  const [word, kind, what] = /** @type {[string, "good" | "warn" | "bad", string]} */ ({
    writable: ["Healthy", "good", "Accepting writes"], full: ["Full", "warn", "Disk full: uploads are refused. Delete files and compact, or enlarge the disk."],
    read_only: ["Read-only", "bad", "Read-only since a write failed. Check the server log, then restart."],
  }[/** @type {"full"} */ (it.health)] ?? [it.health, "bad", ""]);
  return [badge(word, kind), make("small", null, ` ${what}`)];
}

/** A time, marked if it is old. @param {string | null} iso @param {string} never */
const age = (iso, never) => [iso === null ? badge(never, "warn") : when(iso), iso !== null && Date.now() - Date.parse(iso) > OLD_MS && badge("More than a week ago", "warn")];

/** A path quoted for a shell. @param {string} path */
const quoted = (path) => (/^[\w./@:+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

export function view() {
  const it = page("Storage", { about: "Disk usage and integrity" });
  const state = part(storage, (report) => {
    const live = report.kinds.reduce((/** @type {number} */ sum, /** @type {any} */ kind) => sum + kind.liveBytes, 0);
    const dead = report.kinds.reduce((/** @type {number} */ sum, /** @type {any} */ kind) => sum + kind.deadBytes, 0);
    const { disk, index, compaction } = report;
    const folder = quoted(report.dataFolder ?? "FOLDER");
    // Includes deleted large files, which have segments of their own.
    const gain = compaction.wouldFree;
    return [
      report.damageCount > 0 && panel(`${count(report.damageCount, "damaged object")}`, { class: "danger-panel", about: "Stored data that fails its checksum. It is never served." }, damage(report)),
      panel("Overview", {},
        glances([
          ["In use", bytes(live), "Current files"], ["Reclaimable", bytes(dead), "Deleted or replaced"],
          ...(disk ? /** @type {[string, any, any][]} */ ([["Free", bytes(disk.freeBytes), `of ${bytes(disk.totalBytes)}`]]) : []),
          ["Damage", report.damageCount === 0 ? "None" : number(report.damageCount), report.damageCount === 0 ? "Found so far" : "See above"],
        ]),
        disk && [bar("Disk", [["live", live, `${bytes(live)} in use`], ["dead", dead, `${bytes(dead)} reclaimable`], ["other", disk.totalBytes - disk.freeBytes - live - dead, `${bytes(Math.max(0, disk.totalBytes - disk.freeBytes - live - dead))} of other files`], ["free", disk.freeBytes, `${bytes(disk.freeBytes)} free`]]),
          make("p", { class: "legend" }, ["live", "dead", "other", "free"].map((name) => make("span", { class: name }, LEGEND[name])))],
        facts([
          ["Data folder", make("code", null, report.dataFolder ?? "–")],
          ["State", health(report)],
          ...(disk ? /** @type {[string, any][]} */ ([["Reserve", `${bytes(disk.reserveBytes)}. Uploads are refused below this.`]]) : []),
          ...(index ? /** @type {[string, any][]} */ ([["Index", [`${bytes(index.bytes)}, ${count(index.waitingChanges, "pending change")}`, index.condemned && badge("Damaged; rebuilt at the next start", "bad")]]]) : []),
          ...(report.retained?.files > 0 ? /** @type {[string, any][]} */ ([["Restorable", [`${count(report.retained.files, "large file")}, ${bytes(report.retained.bytes)}`, report.retained.nextReleaseAt && [", next released ", when(report.retained.nextReleaseAt)]]]]) : []),
          ["Last full verification", age(report.verifiedSince, "Not completed yet")],
          ["Last backup", report.lastBackup ? [age(report.lastBackup.at, ""), ` to `, make("code", null, report.lastBackup.to), report.lastBackup.damageCount > 0 && badge(`${number(report.lastBackup.damageCount)} damaged`, "bad")] : badge("Never", "warn")],
        ])),
      report.remote && remote(report.remote),
      under,
      panel("Reclaim space", {
        about: gain === 0 ? "Nothing to reclaim" : `${bytes(gain)} reclaimable${compaction.segments > 0 ? `, by copying ${bytes(compaction.wouldCopy)} out of ${count(compaction.segments, "segment")}` : ""}.`,
        actions: [button("Reclaim now", () => begin("compact"), { class: "primary", disabled: gain === 0 })],
      }, make("p", { class: "faint" }, "Runs automatically in the background. Reclaimed files can no longer be restored."), command(`trug compact --data ${folder}`)),
      panel("Scrub", { about: "Verifies the checksums of all stored data.", actions: [button("Verify now", () => begin("scrub"), { class: "primary" })] }, command(`trug scrub --data ${folder}`)),
      panel("Back up", { about: "Consistent copy of the store while the server runs. Later runs copy only what changed." }, command(`trug backup --data ${folder} --to FOLDER`)),
      panel("Segments", { about: "Segments of the store, most reclaimable first." },
        table("Segment types", [["Type"], ["Segments", "number"], ["In use", "number"], ["Reclaimable", "number"], ["Share reclaimable", "wide"]], report.kinds.map((/** @type {any} */ kind) => [
          KINDS[kind.kind] ?? kind.kind, number(kind.segments), bytes(kind.liveBytes), bytes(kind.deadBytes), share(kind.liveBytes, kind.deadBytes)])).element,
        report.segments.length > 0 && make("details", null, make("summary", null, `${count(report.segments.length, "segment")}`), table("Segments", [["Segment"], ["Type"], ["Size", "number"], ["Files", "number"], ["Reclaimable", "number"], ["Share reclaimable", "wide"], ["Verified"]], report.segments.map((/** @type {any} */ segment) => [
          [make("code", null, segment.id), !segment.sealed && badge("Active"), segment.damageCount > 0 && badge(`${number(segment.damageCount)} damaged`, "bad")],
          KINDS[segment.kind] ?? segment.kind, bytes(segment.bytes), number(segment.objects), bytes(segment.deadBytes), share(segment.liveBytes, segment.deadBytes), when(segment.verifiedAt, "Not yet")])).element,
        report.segmentsTruncated && make("p", { class: "faint" }, "Segments with less reclaimable space are not shown."))),
    ];
  });
  const work = jobList((job) => KINDS_OF_WORK.includes(job.kind), it.stopped, { ended: () => state.load(), empty: "No maintenance running" });
  // Keeps its element when the page is redrawn.
  const under = panel("Maintenance", {}, work.element);
  const begin = async (/** @type {string} */ kind) => {
    try {
      const { job } = await startJob({ kind });
      note(kind === "compact" ? "Reclaiming space…" : "Verifying checksums…");
      work.begin(job);
    } catch (error) {
      complain(error);
    }
  };
  it.element.append(state.element);
  return it;
}

/** Replication to the remote store. @param {any} it */
function remote(it) {
  const [word, kind, what] = /** @type {[string, "good" | "warn" | "bad", string]} */ ({
    connecting: ["Connecting", "warn", "Not reached yet."], primary: ["Primary", "good", it.complete ? "" : "Earlier data is still being uploaded: no restore yet."],
    fenced: ["Fenced", "bad", "Nothing is uploaded. Another server is the primary."],
  }[/** @type {"primary"} */ (it.state)]);
  const sum = (/** @type {(row: any) => number} */ of) => it.requests.reduce((/** @type {number} */ all, /** @type {any} */ row) => all + of(row), 0);
  const [all, failed] = [sum((row) => row.succeeded + row.failed), sum((row) => row.failed)];
  const cost = sum((row) => (row.succeeded + row.failed) * (REQUEST_PRICES[row.call] ?? 0)) / 1e6;
  return panel("Remote store", { about: it.ack === "remote" ? "Writes are acknowledged when the remote store has them." : "Writes are copied there continuously." },
    glances([
      ["Lag", it.lagSeconds > 0 ? duration(it.lagSeconds) : "None", "Oldest write that is not there"], ["Not uploaded", bytes(it.unshippedBytes), it.waitingSegments > 0 ? count(it.waitingSegments, "waiting segment") : "Log data"],
      ["Requests", number(all), failed > 0 ? `${number(failed)} failed` : "Since the server started"], ["Cost of requests", `$${cost.toFixed(2)}`, "At list prices of S3"],
    ]),
    facts([
      ["Location", make("code", null, it.url ?? "–")], ["State", [badge(word, kind), what && make("small", null, ` ${what}`)]],
      ...(it.error ? /** @type {[string, any][]} */ ([["Last error", it.error]]) : []),
      ...(it.createsAtomically === false ? /** @type {[string, any][]} */ ([["Creation", [badge("Not atomic", "bad"), make("small", null, " Two primaries are not detected.")]]]) : []),
      ["Position", `Epoch ${number(it.epoch)}, chunk ${number(it.chunk)}`], ["Last restore point", when(it.lastManifestAt, "None since the server started")],
      ...(it.tier ? /** @type {[string, any][]} */ ([["On this machine", [`${bytes(it.tier.localBytes + it.tier.cachedBytes)}${it.tier.localBytesMax > 0 ? ` of ${bytes(it.tier.localBytesMax)}` : ""}`, it.tier.remoteSegments > 0 && make("small", null, ` ${bytes(it.tier.remoteBytes)} only in the remote store`)]]]) : []),
    ]));
}

/** @param {number} live @param {number} dead */
const share = (live, dead) => bar("Share reclaimable", [["live", live, `${bytes(live)} in use`], ["dead", dead, `${bytes(dead)} reclaimable`]]);

/** Damaged objects with a fix for each. @param {any} report */
function damage(report) {
  return table("Damage", [["Location", "wide"], ["Problem"], ["Fix", "wide"], ["Found"]], report.damage.map((/** @type {any} */ place) => [
    place.path ? [make("a", { href: filesAddress(place.bucketName, folderOf(place.path)) }, `${place.bucketName}/${place.path}`), make("small", null, make("code", null, `${place.file} at ${number(place.offset)}`))] : [icon("disk"), make("code", null, ` ${place.file} at ${number(place.offset)}`)],
    place.what, place.whatToDo, when(place.foundAt),
  ])).element;
}
