// How it is with the store on its disk, for operators: room, what is dead, damage and what to do, compaction and scrub.

import { filesAddress, folderOf } from "./address.mjs";
import { startJob } from "./api.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { jobList } from "./jobs.mjs";
import { complain, note } from "./live.mjs";
import { storage } from "./manage.mjs";
import { badge, button, command, facts, glances, page, panel, part, table, when } from "./parts.mjs";
import { bytes, count, number } from "./text.mjs";

/** Kinds of segments, in words. @type {Record<string, string>} */
const KINDS = { log: "As written", compacted: "Compacted", big: "Large files, each its own" };
/** Work on the whole store. */
const KINDS_OF_WORK = ["compact", "scrub"];
/** A backup, and a look at everything, are old after so long. */
const OLD_MS = 8 * 86_400_000;

/** How much of a bar is what. @param {string} label @param {[string, number, string][]} pieces class, amount, words */
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
    writable: ["healthy", "good", "It takes writes."], full: ["full", "warn", "Uploads are refused until there is room: delete something and compact, or give it a larger disk."],
    read_only: ["read only", "bad", "It takes no writes since one failed. Look into the server's log, then start it again."],
  }[/** @type {"full"} */ (it.health)] ?? [it.health, "bad", ""]);
  return [badge(word, kind), make("small", null, ` ${what}`)];
}

/** A time, and whether it is long ago. @param {string | null} iso @param {string} never */
const age = (iso, never) => [iso === null ? badge(never, "warn") : when(iso), iso !== null && Date.now() - Date.parse(iso) > OLD_MS && badge("long ago", "warn")];

export function view() {
  const it = page("Storage", { about: "The state of all that lies on the disk." });
  const state = part(storage, (told) => {
    const live = told.kinds.reduce((/** @type {number} */ sum, /** @type {any} */ kind) => sum + kind.liveBytes, 0);
    const dead = told.kinds.reduce((/** @type {number} */ sum, /** @type {any} */ kind) => sum + kind.deadBytes, 0);
    const { disk, index, compaction } = told;
    // With large files that can come back, which take no segment that is shared.
    const gain = compaction.wouldFree;
    return [
      told.damageCount > 0 && panel(`${count(told.damageCount, "damaged place")}`, { class: "danger-panel", about: "Bytes that are not what was written. They are never sent to anybody." }, damage(told)),
      panel("Now", {},
        glances([
          ["Live", bytes(live), "what is stored"], ["Dead", bytes(dead), "deleted or replaced"],
          ...(disk ? /** @type {[string, any, any][]} */ ([["Free", bytes(disk.freeBytes), `of ${bytes(disk.totalBytes)}`]]) : []),
          ["Damage", told.damageCount === 0 ? "none" : number(told.damageCount), told.damageCount === 0 ? "known" : "see above"],
        ]),
        disk && [bar("The disk", [["live", live, `${bytes(live)} live`], ["dead", dead, `${bytes(dead)} dead`], ["other", disk.totalBytes - disk.freeBytes - live - dead, `${bytes(Math.max(0, disk.totalBytes - disk.freeBytes - live - dead))} of other files`], ["free", disk.freeBytes, `${bytes(disk.freeBytes)} free`]]),
          make("p", { class: "legend" }, ["live", "dead", "other", "free"].map((name) => make("span", { class: name }, name === "other" ? "other files" : name)))],
        facts([
          ["State", health(told)],
          ...(disk ? /** @type {[string, any][]} */ ([["Kept free", `${bytes(disk.reserveBytes)}: with less, uploads are refused`]]) : []),
          ...(index ? /** @type {[string, any][]} */ ([["Index", [`${bytes(index.bytes)}, ${count(index.waitingChanges, "change")} not in it yet`, index.condemned && badge("damaged: the next start makes it anew", "bad")]]]) : []),
          ...(told.retained?.files > 0 ? /** @type {[string, any][]} */ ([["Can come back", [`${count(told.retained.files, "large file")}, ${bytes(told.retained.bytes)}`, told.retained.nextReleaseAt && [", the first until ", when(told.retained.nextReleaseAt)]]]]) : []),
          ["All verified", age(told.verifiedSince, "not everything yet")],
          ["Last backup", told.lastBackup ? [age(told.lastBackup.at, ""), ` to `, make("code", null, told.lastBackup.to), told.lastBackup.damageCount > 0 && badge(`${number(told.lastBackup.damageCount)} damaged`, "bad")] : badge("never", "warn")],
        ])),
      under,
      panel("Give back space", {
        about: gain === 0 ? "There is nothing to gain now." : `It would free ${bytes(gain)}${compaction.segments > 0 ? `, by copying ${bytes(compaction.wouldCopy)} out of ${count(compaction.segments, "segment")}` : ""}.`,
        actions: [button("Compact now", () => begin("compact"), { class: "primary", disabled: gain === 0 })],
      }, make("p", { class: "faint" }, "It goes on by itself where enough is dead, and beside all other work. What is freed cannot be brought back afterwards."), command("trug compact --data /var/lib/trug")),
      panel("Scrub", { about: "Reads everything and compares it with its checksums.", actions: [button("Scrub now", () => begin("scrub"), { class: "primary" })] }, command("trug scrub --data /var/lib/trug")),
      panel("Back up", { about: "A copy of everything as it is at one moment, while the server works; the next to the same place copies what is new." }, command("trug backup --data /var/lib/trug --to /backup/trug")),
      panel("Segments", { about: "Files of the store. Those with the most dead bytes are first." },
        table("Kinds of segments", [["Kind"], ["Segments", "number"], ["Live", "number"], ["Dead", "number"], ["Share", "wide"]], told.kinds.map((/** @type {any} */ kind) => [
          KINDS[kind.kind] ?? kind.kind, number(kind.segments), bytes(kind.liveBytes), bytes(kind.deadBytes), share(kind.liveBytes, kind.deadBytes)])).element,
        told.segments.length > 0 && make("details", null, make("summary", null, `Each of ${count(told.segments.length, "segment")}`), table("Segments", [["Segment"], ["Kind"], ["Size", "number"], ["Files", "number"], ["Dead", "number"], ["Share", "wide"], ["Verified"]], told.segments.map((/** @type {any} */ segment) => [
          [make("code", null, segment.id), !segment.sealed && badge("being written"), segment.damageCount > 0 && badge(count(segment.damageCount, "damage", "damages"), "bad")],
          KINDS[segment.kind] ?? segment.kind, bytes(segment.bytes), number(segment.objects), bytes(segment.deadBytes), share(segment.liveBytes, segment.deadBytes), when(segment.verifiedAt, "not yet")])).element,
        told.segmentsTruncated && make("p", { class: "faint" }, "There are more, with fewer dead bytes."))),
    ];
  });
  const work = jobList((job) => KINDS_OF_WORK.includes(job.kind), it.stopped, { ended: () => state.load(), empty: "Neither compacting nor scrubbing." });
  // It stays in its place among what is drawn again.
  const under = panel("Under way", {}, work.element);
  const begin = async (/** @type {string} */ kind) => {
    try {
      const { job } = await startJob({ kind });
      note(kind === "compact" ? "Space is being given back." : "Everything is being read and compared.");
      work.begin(job);
    } catch (error) {
      complain(error);
    }
  };
  it.element.append(state.element);
  return it;
}

/** @param {number} live @param {number} dead */
const share = (live, dead) => bar("Share", [["live", live, `${bytes(live)} live`], ["dead", dead, `${bytes(dead)} dead`]]);

/** What is damaged, and what to do about it. @param {any} told */
function damage(told) {
  return table("Damage", [["Where", "wide"], ["What"], ["What to do", "wide"], ["Found"]], told.damage.map((/** @type {any} */ place) => [
    place.path ? [make("a", { href: filesAddress(place.bucketName, folderOf(place.path)) }, `${place.bucketName}/${place.path}`), make("small", null, make("code", null, `${place.file} at ${number(place.offset)}`))] : [icon("disk"), make("code", null, ` ${place.file} at ${number(place.offset)}`)],
    place.what, place.whatToDo, when(place.foundAt),
  ])).element;
}
