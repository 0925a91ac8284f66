// Modules without a page: upload order, selection, formatting and sorting.

import assert from "node:assert/strict";
import { fileAddress, folderOf, nameOf, query, read } from "../../server/assets/dashboard/address.mjs";
import { dropped, unreadable } from "../../server/assets/dashboard/collect.mjs";
import { kindOfName, kindOfType, needsConversion } from "../../server/assets/dashboard/kinds.mjs";
import { numbered } from "../../server/assets/dashboard/lost.mjs";
import { snippetOf } from "../../server/assets/dashboard/snippet.mjs";
import { healthOf } from "../../server/assets/dashboard/health.mjs";
import { LARGE_BYTES, Queue } from "../../server/assets/dashboard/queue.mjs";
import { filtered, sorted, sortedInSlices } from "../../server/assets/dashboard/order.mjs";
import { lastOf, pieces, roundUp, sumOf } from "../../server/assets/dashboard/series.mjs";
import { snippets } from "../../server/assets/dashboard/programs.mjs";
import { sizeOf, sizeText } from "../../server/assets/dashboard/sizes.mjs";
import { Selection } from "../../server/assets/dashboard/selection.mjs";
import { bytes, count, duration } from "../../server/assets/dashboard/text.mjs";

const found = (name, size, folder = "") => ({ file: { name, size }, folder });
/** A file and a folder as a drop gives them. A folder gives two entries at a time, and fails on request. */
const fileEntry = (name, isThere = true) => ({ name, isDirectory: false, file: (done, fail) => (isThere ? done({ name }) : fail(new Error("gone"))) });
const folderEntry = (name, entries, failsAt = []) => ({
  name,
  isDirectory: true,
  createReader: () => {
    let at = 0;
    return {
      readEntries: (done, fail) => {
        if (failsAt[0] === at && failsAt.shift() === at) return fail(new Error("busy"));
        done(entries.slice(at, at += 2));
      },
    };
  },
});
const transferOf = (...entries) => ({ items: entries.map((entry) => ({ kind: "file", webkitGetAsEntry: () => entry })), files: [] });

const names = (batch) => batch.map((item) => item.file.name);

export const tests = {
  snippets_have_only_operations_the_key_allows() {
    const s3 = { accessKeyId: "AKID", secretAccessKey: "SECRET" };
    const target = { base: "https://cdn.example", bucket: "pics", key: "trug_key", s3 };
    const all = snippets(target);
    assert.deepEqual(all.map((it) => it.id), ["curl", "javascript", "aws", "boto3", "rclone", "restic", "next"]);
    for (const { text } of all) assert.match(text, /https:\/\/cdn\.example/);
    const upload = snippets({ ...target, scopes: ["upload"], prefix: "calls/" });
    assert.deepEqual(upload.map((it) => it.id), ["curl", "javascript", "aws", "boto3", "next"]);
    const text = upload.map((it) => it.text).join("\n");
    assert.match(text, /s3:\/\/pics\/calls\//);
    assert.match(text, /AKID[^]*SECRET/);
    for (const word of ["DELETE", "s3 rm", "aws s3 ls", "download", "list-objects", "presign", "img/"]) assert.ok(!text.includes(word), word);
    assert.deepEqual(snippets({ ...target, s3: null }).map((it) => it.id), ["curl", "javascript", "next"]);
  },

  upload_batches_small_files_of_one_folder() {
    const queue = new Queue();
    queue.add([found("a", 10), found("b", 10), found("c", 10, "x/"), found("big", LARGE_BYTES), found("d", 3_999_999), found("e", 10)], "pics", "in/");
    assert.deepEqual(names(queue.take(0)), ["a", "b"]);
    assert.deepEqual(queue.take(0).map((item) => item.folder + item.file.name), ["in/x/c"]);
    assert.deepEqual(names(queue.take(0)), ["big"]);
    assert.deepEqual(names(queue.take(0)), ["d"]);
    assert.deepEqual(names(queue.take(0)), ["e"]);
    assert.deepEqual(queue.take(0), []);
    assert.equal(queue.counts.sending, 6);
    queue.add(Array.from({ length: 70 }, (_, at) => found(`${at}`, 1)), "pics", "");
    assert.deepEqual([queue.take(0).length, queue.take(0).length, queue.take(0).length], [32, 32, 6]);
  },

  async folder_read_error_is_retried_without_duplicates() {
    const letters = [..."abcde"].map((name) => fileEntry(name));
    const all = [];
    const unread = await dropped(transferOf(folderEntry("f", [...letters, folderEntry("g", [fileEntry("h")])], [4, 2])), new AbortController().signal, (found) => all.push(...found));
    assert.deepEqual(all.map(({ file, folder }) => folder + file.name), ["f/a", "f/b", "f/c", "f/d", "f/e", "f/g/h"]);
    assert.deepEqual(unread, []);
  },

  async unreadable_entries_are_reported_and_the_rest_uploaded() {
    const all = [];
    const transfer = transferOf(folderEntry("f", [fileEntry("a"), fileEntry("gone", false), fileEntry("c")], [2, 2, 2]), fileEntry("b"));
    const unread = await dropped(transfer, new AbortController().signal, (found) => all.push(...found));
    assert.deepEqual(all.map(({ file, folder }) => folder + file.name), ["b", "f/a"]);
    assert.deepEqual(unread, ["f/gone", "f/"]);
  },

  async cancelled_drop_stops_reading() {
    const stop = new AbortController();
    const all = [];
    const many = folderEntry("f", Array.from({ length: 2_000 }, (_, at) => fileEntry(`${at}`)));
    const reading = dropped(transferOf(many), stop.signal, (found) => { all.push(...found); stop.abort(); });
    await assert.rejects(reading, { name: "AbortError" });
    assert.equal(all.length, 500);
  },

  async missing_files_are_detected_among_others() {
    const item = (name, looked) => ({ file: { name, slice: () => ({ arrayBuffer: looked }) } });
    const all = [item("a", async () => new ArrayBuffer(1)), item("b", async () => { throw new Error("gone"); })];
    assert.deepEqual((await unreadable(all)).map(({ file }) => file.name), ["b"]);
  },

  invalid_file_does_not_fail_its_batch() {
    const queue = new Queue();
    queue.add([found("a", 1), found("b", 1)], "pics", "");
    queue.refused(queue.take(0), { status: 415, message: "no" }, 0);
    assert.deepEqual(names(queue.take(0)), ["a"]);
    const second = queue.take(0);
    queue.refused(second, { status: 415, message: "no" }, 0);
    assert.deepEqual([second[0].state, second[0].problem], ["failed", "no"]);
    queue.retryFailed();
    assert.deepEqual(names(queue.take(0)), ["b"]);
  },

  bytes_in_flight_return_to_zero_after_pause() {
    const queue = new Queue();
    queue.add([found("a", 140_000), found("b", 160_001), found("c", 180_003)], "pics", "");
    const batch = queue.take(0);
    for (const part of [0.1, 0.3, 0.7]) batch.forEach((item) => queue.progress(item, item.file.size * part));
    assert.equal(queue.sent, 98_000 + 112_001 + 126_002);
    batch.forEach((item) => queue.again(item));
    assert.equal(queue.sent, 0);
  },

  busy_server_is_retried_with_backoff_up_to_a_limit() {
    const queue = new Queue();
    queue.add([found("a", 1)], "pics", "");
    queue.refused(queue.take(0), { status: 429, retryAfter: 7, message: "slow" }, 0);
    assert.deepEqual(queue.take(6_999), []);
    let now = 7_000;
    let tries = 0;
    for (let batch = queue.take(now); batch.length > 0; batch = queue.take(now)) {
      queue.refused(batch, { status: 0, message: "gone" }, now);
      tries += 1;
      now += 100_000;
    }
    assert.equal(tries, 8);
    assert.equal(queue.counts.failed, 1);
  },

  unknown_upload_outcome_is_derived_from_request_end() {
    for (const [status, isLost] of [[0, true], [502, true], [504, true], [429, false], [503, false], [500, false], [415, false]]) {
      const queue = new Queue();
      queue.add([found("a", 1), found("b", 1)], "pics", "");
      queue.refused(queue.take(0), { status, message: "no" }, 5_000);
      assert.deepEqual(queue.items.map((item) => item.brokeAt), isLost ? [5_000, 5_000] : [0, 0], `${status}`);
    }
  },

  conflict_names_match_those_of_the_server() {
    const after = (name) => numbered(name, 1);
    assert.deepEqual(["a.png", "a.tar.gz", "README", ".env", "a.", "a.b c"].map(after), ["a (1).png", "a.tar (1).gz", "README (1)", ".env (1)", "a. (1)", "a.b c (1)"]);
    assert.deepEqual([numbered("a.png", 0), numbered("a.png", 12), numbered("a\nb.png", 2)], ["a.png", "a (12).png", "a\nb (2).png"]);
  },

  uploaded_byte_total_is_exact_after_any_outcome() {
    const queue = new Queue();
    queue.add([found("a", 100), found("big", LARGE_BYTES)], "pics", "");
    const [a] = queue.take(0);
    const [big] = queue.take(0);
    queue.progress(a, 60);
    queue.progress(big, 1_000);
    assert.equal(queue.sent, 1_060);
    queue.again(a);
    assert.equal(queue.sent, 1_000, "a form begins again");
    queue.again(big);
    assert.equal(queue.sent, 1_000, "a large file goes on");
    queue.drop((item) => item === big);
    assert.deepEqual([queue.sent, queue.bytes, queue.counts.waiting], [0, 100, 1]);
    queue.turn(queue.take(0)[0], "done");
    assert.equal(queue.sent, 100);
    assert.equal(queue.isBusy, false);
  },

  range_selection_starts_at_the_anchor() {
    const selection = new Selection();
    const at = (index) => "abcdef"[index];
    selection.only("c", 2);
    selection.reach(4, at);
    assert.deepEqual([...selection.names], ["c", "d", "e"]);
    selection.reach(1, at);
    assert.deepEqual([...selection.names], ["b", "c"]);
    selection.toggle("c", 2);
    selection.drop(["b"]);
    assert.equal(selection.size, 0);
  },

  sort_is_natural_caseless_folders_first_and_reversible() {
    const entry = (name, size = 0, time = "", isFolder = false) => ({ name, key: name, isFolder, size, time });
    const folder = (name) => entry(name, null, "", true);
    const entries = [
      folder("b 10"), folder("B 9"), entry("IMG_10.jpg", 3, "2026-01-02"), entry("img_9.PNG", 3, "2026-01-03"), entry("Grüße.txt", 1, "2026-01-01"), entry("a very long name", 9, "2026-01-01"),
      entry("Cargo.toml", 2, "2025-01-01"), entry("backup.tar.gz", 2, "2025-01-01"), entry("A", 1), entry("a", 1), entry("\u{ffee}", 0), entry("\u{1f600}", 0),
    ];
    const names = (order) => sorted(entries, order).map((it) => it.name);
    const folders = ["B 9", "b 10"];
    const byName = names("").slice(2);
    const inOrder = ["A", "a", "a very long name", "backup.tar.gz", "Cargo.toml", "Grüße.txt", "img_9.PNG", "IMG_10.jpg"];
    assert.deepEqual(byName.filter((name) => inOrder.includes(name)), inOrder);
    for (const column of ["name", "type", "size", "time"]) {
      const [up, down] = [names(column), names(`-${column}`)];
      assert.deepEqual(up.slice(0, 2).toSorted(), folders.toSorted(), "folders are first");
      assert.deepEqual(down, [...up.slice(0, 2).reverse(), ...up.slice(2).reverse()], `-${column} is the reverse`);
    }
    assert.deepEqual(names("size").filter((name) => inOrder.includes(name)), ["A", "a", "Grüße.txt", "backup.tar.gz", "Cargo.toml", "img_9.PNG", "IMG_10.jpg", "a very long name"]);
    assert.deepEqual(names("type").filter((name) => /\./.test(name)), ["backup.tar.gz", "IMG_10.jpg", "img_9.PNG", "Cargo.toml", "Grüße.txt"]);
    assert.deepEqual(filtered(entries, "IMG jpg").map((it) => it.name), ["IMG_10.jpg"]);
  },

  async sort_in_slices_gives_the_same_order() {
    const random = (seed) => () => (seed = (seed * 16_807) % 2_147_483_647);
    const next = random(7);
    const entries = Array.from({ length: 9_001 }, (_, index) => ({ name: `${"aBéc-_ "[next() % 7]}${next() % 300}.${["jpg", "txt"][next() % 2]}`, key: `${index}`, isFolder: next() % 5 === 0, size: next() % 50, time: `${next() % 9}` }));
    for (const order of ["", "-name", "size", "-time", "type"]) {
      const [sync, sliced] = [sorted(entries, order), await sortedInSlices(entries, order, new AbortController().signal)];
      assert.deepEqual(sliced.map((it) => [it.name, it.size, it.time]), sync.map((it) => [it.name, it.size, it.time]), order);
    }
    const stop = new AbortController();
    const sorting = sortedInSlices(Array.from({ length: 60 }, () => entries).flat(), "", stop.signal);
    stop.abort();
    await assert.rejects(sorting, { name: "AbortError" });
  },

  byte_sizes_round_trip_between_text_and_number() {
    const sizes = ["500 MB", "1.5GB", "10,000", "2 KiB", "", " 7 b "].map((text) => sizeOf(text));
    assert.deepEqual(sizes, [500_000_000, 1_500_000_000, 10_000, 2_048, null, 7]);
    for (const wrong of ["2 elephants", "GB", "-1 GB", "1 2 x", "1e3"]) assert.throws(() => sizeOf(wrong, "Storage quota"), /^Error: Storage quota: enter a number with a unit/, wrong);
    for (const size of [0, 1, 999, 1_000, 1_024, 1_500_000, 2_000_000_001, 5_000_000_000_000, null]) assert.equal(sizeOf(sizeText(size)), size);
    assert.deepEqual([1_500_000, 1_024].map(sizeText), ["1.5 MB", "1.024 kB"]);
  },

  chart_lines_have_gaps_and_scales_end_at_round_numbers() {
    assert.deepEqual(pieces([null, 1, 2, null, null, 0, null]), [[[1, 1], [2, 2]], [[5, 0]]]);
    assert.deepEqual([0, 1, 1.2, 3, 11, 24, 26, 999, 1_000, 1_001].map(roundUp), [1, 1, 2, 5, 20, 25, 50, 1_000, 1_000, 2_000]);
    const points = [{ stored: 5, out: 1 }, { stored: null, out: 2 }];
    assert.deepEqual([sumOf(points, "out"), lastOf(points, "stored"), lastOf(points, "none")], [3, 5, null]);
  },

  "playground_snippet_has_one_size_in_every_source"() {
    const address = (values) => `/p/a.jpg${query(values)}`;
    const html = snippetOf({ width: "400", height: "400", fit: "cover", format: "webp", dpr: "2", quality: "70" }, address, { width: 1_136, height: 1_624 });
    const found = [...html.matchAll(/width=(\d+)&amp;height=(\d+)/g)].map(([, width, height]) => [Number(width), Number(height)]);
    assert.equal(found.length, 7);
    for (const [width, height] of found) assert.equal(width, height);
    assert.ok(!html.includes("dpr="));
    assert.match(html, /width=800&amp;height=800&amp;fit=cover&amp;quality=70&amp;format=avif 800w/);
    assert.match(html, /<img src="[^"]*width=400&amp;height=400&amp;[^"]*format=jpg" width="400" height="400"/);
    // Nothing is enlarged, so no source is larger than the original.
    const small = snippetOf({ width: "800" }, address, { width: 1_000, height: 700 });
    assert.deepEqual([...small.matchAll(/ (\d+)w/g)].map(([, width]) => width), ["400", "800", "400", "800"]);
    assert.ok(snippetOf({ width: "5000" }, address, { width: 1_000, height: 700 }).includes("sizes=\"1000px\""));
    assert.match(snippetOf({ height: "300" }, address, null), /height=600&amp;format=avif 2x/);
  },

  health_says_the_worst_first() {
    const state = { health: "writable", damageCount: 0, disk: { freeBytes: 100, reserveBytes: 10 }, lastBackup: { at: new Date().toISOString() } };
    const said = (more) => { const { kind, text } = healthOf({ ...state, ...more }); return [kind, text]; };
    assert.deepEqual(said({}), ["good", "Healthy"]);
    assert.deepEqual(said({ health: "read_only", damageCount: 2 }), ["bad", "Uploads are off: a write failed. Check the server log, then restart."]);
    for (const [more, kind] of [[{ health: "full" }, "bad"], [{ damageCount: 1 }, "bad"], [{ disk: { freeBytes: 19, reserveBytes: 10 } }, "warn"], [{ lastBackup: null }, "warn"]]) assert.equal(said(more)[0], kind, JSON.stringify(more));
  },

  addresses_round_trip_any_name() {
    for (const key of ["a b/c#d?e&f%g.txt", "ä/日本/😀.png", "a+b", "<i>\"'"]) {
      const place = read(new URL(`http://x/-/files/pics${fileAddress("", key).slice(1)}`));
      assert.equal(place.key, key);
    }
    assert.equal(read(new URL("http://x/-/files/pics/%ff")).view, "nowhere");
    assert.equal(query({ a: 1, b: "", c: null, d: ["x", "y z"] }), "?a=1&d=x&d=y%20z");
    assert.deepEqual([folderOf("a/b/c"), folderOf("a/b/"), folderOf("a"), nameOf("a/b/"), nameOf("a/b")], ["a/b/", "a/", "", "b", "b"]);
  },

  sizes_and_times_are_short_and_kinds_follow_type_and_name() {
    assert.deepEqual([0, 999, 1_000, 15_500, 999_600, 2_000_000_000].map(bytes), ["0 B", "999 B", "1.00 kB", "15.5 kB", "1.00 MB", "2.00 GB"]);
    assert.deepEqual([count(1, "file"), count(2_000, "file"), count(2, "entry", "entries")], ["1 file", "2,000 files", "2 entries"]);
    assert.deepEqual([duration(0.2), duration(90), duration(7_300)], ["1 s", "2 min", "2 h 2 min"]);
    assert.deepEqual([kindOfName("a.PNG"), kindOfName("a.svg"), kindOfName(".png"), kindOfName("png")], ["picture", "vector", "other", "other"]);
    assert.deepEqual(["a.ppm", "a.QOI", "a.pam", "a.bmp", "a.png", "appm"].map(needsConversion), [true, true, true, false, false, false]);
    assert.deepEqual([kindOfType("text/plain; charset=utf-8", "a.html"), kindOfType("application/json", "a"), kindOfType("application/octet-stream", "a.log")], ["text", "text", "text"]);
  },
};
