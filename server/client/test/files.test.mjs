// Operations on files, each against the server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Trug, TrugError } from "@trug/client";
import { base, bytes, holds, key, newBucket, trug } from "./server.mjs";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
  "base64",
);
/** Names that are no plain URL path. */
const HOSTILE = [
  "a?b=c&d.txt",
  "a#b.txt",
  "100%.txt",
  "a%2Fb.txt",
  "a%20b.txt",
  "with space.txt",
  "a+b.txt",
  "...",
  "a..b",
  "..hidden",
  "🦀 é ü.txt",
  "a;b,c.txt",
  "'quoted' \"twice\".txt",
  "<img src=x onerror=alert(1)>.txt",
  "CON",
  "日本語/ファイル.txt",
  "deep/ ?/#/%/x",
  "{bucket}",
  "a&b=c",
  "~!@$^*()_+|`",
];

/** Collects an async iterable. */
async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

test("upload stores content of every kind, and reports what is stored", async () => {
  const pics = await newBucket();
  const file = new File([PNG], "dot.png", { type: "image/png" });
  const stored = await pics.upload("2026/", file);
  assert.equal(stored.key, "2026/dot.png");
  assert.equal(stored.url, pics.url("2026/dot.png"));
  assert.equal(stored.contentType, "image/png");
  assert.equal(stored.size, PNG.length);
  const body = bytes(100_000);
  const kinds = {
    blob: new Blob([body]),
    bytes: body,
    buffer: body.buffer.slice(0, 100_000),
    stream: new Blob([body]).stream(),
  };
  for (const [name, content] of Object.entries(kinds)) {
    assert.equal((await pics.upload(`kinds/${name}.bin`, content)).key, `kinds/${name}.bin`);
    assert.ok(await holds(pics, `kinds/${name}.bin`, body), name);
  }
  await pics.upload("text.txt", "some text");
  assert.equal(await (await pics.download("text.txt")).text(), "some text");
  assert.equal((await pics.upload("", new Blob(["x"]))).key.split(".")[0], "file");
  assert.equal((await pics.upload("empty.bin", new Uint8Array())).size, 0);
});

test("upload options select name, replacement, type and thumbnail", async () => {
  const pics = await newBucket();
  const file = new File([PNG], "dot.png");
  assert.equal((await pics.upload("a.png", file)).renamed, false);
  assert.equal((await pics.upload("a.png", file)).key, "a (1).png");
  assert.equal((await pics.upload("a.png", file, { overwrite: true })).key, "a.png");
  assert.match((await pics.upload("", file, { randomizeName: true })).key, /^[0-9a-f-]{36}\.png$/);
  assert.equal((await pics.upload("t.png", file, { thumbnail: true })).thumbnailUrl, pics.url("t_thumb.webp"));
  assert.equal((await pics.upload("notes", "text", { contentType: "text/markdown" })).contentType, "text/markdown");
  await assert.rejects(pics.upload("a/../b.txt", "x"), { code: "bad_path" });
});

test("upload progress rises from 0 to the length of the file", async () => {
  const pics = await newBucket();
  const seen = [];
  await pics.upload("big.bin", bytes(5_000_000), { onProgress: (progress) => seen.push(progress) });
  const sent = seen.map((it) => it.sentBytes);
  assert.deepEqual(
    sent,
    [...sent].sort((one, other) => one - other),
  );
  assert.ok(seen.length > 10, `${seen.length} reports`);
  assert.ok(sent[0] < 1_000_000, `starts at ${sent[0]}`);
  assert.deepEqual(
    { ...seen.at(-1), bytesPerSecond: 0 },
    { sentBytes: 5_000_000, totalBytes: 5_000_000, ratio: 1, bytesPerSecond: 0 },
  );
  assert.ok(seen.at(-1).bytesPerSecond > 0);
});

test("hostile names round-trip through every operation", async () => {
  const odd = await newBucket();
  for (const name of HOSTILE) {
    for (const resume of ["never", "always"]) {
      const stored = await odd.upload(name, "content", { resume, overwrite: true });
      assert.equal(stored.key, name, resume);
      assert.equal(stored.url, (await odd.copy(name, name, { onConflict: "rename" })) && stored.url);
      assert.equal(await (await fetch(stored.url)).text(), "content", name);
    }
    assert.equal(await (await odd.download(name)).text(), "content", name);
    assert.equal((await odd.delete(name)).deletedCount, 1, name);
    assert.equal((await odd.restore(name)).path, name);
  }
  const keys = (await all(odd.list())).map((it) => it.key);
  for (const name of HOSTILE) assert.ok(keys.includes(name), name);
  for (const name of ["?", "#", "%"]) assert.ok((await odd.search(name)).hits.every((hit) => hit.key.includes(name)));
  for (const path of ["../photos/x", "a/./b", ".."]) {
    await assert.rejects(odd.delete(path), { name: "TrugError", code: "bad_path" }, path);
    assert.throws(() => odd.url(path), { code: "bad_path" });
  }
  assert.throws(() => trug.bucket("..").url("x"), { code: "bad_path" });
});

test("list covers all pages, folders and limits", async () => {
  const pics = await newBucket();
  const files = Array.from({ length: 25 }, (_, at) => new File([`${at}`], `${at}.txt`));
  const results = await pics.uploadMany("many", files, { concurrency: 8 });
  assert.ok(results.every((it) => it.ok && it.result.key === `many/${it.file.name}`));
  await pics.upload("z.txt", "z");
  const found = await all(pics.list({ prefix: "many/" }));
  assert.equal(found.length, 25);
  assert.deepEqual(Object.keys(found[0]), ["type", "key", "size", "lastModified", "etag"]);
  assert.equal((await all(pics.list({ limit: 7 }))).length, 7);
  assert.deepEqual(
    (await all(pics.list({ delimiter: "/" }))).map((it) => `${it.type} ${it.key}`),
    ["folder many/", "file z.txt"],
  );
  assert.deepEqual(
    (await all(pics.list({ delimiter: "/", prefix: "ma" }))).map((it) => it.key),
    ["many/"],
  );
});

test("list follows continuation tokens", async () => {
  const pages = [];
  const paged = async (url, init) => {
    pages.push(url);
    return fetch(String(url).replace("maxKeys=1000", "maxKeys=2"), init);
  };
  const pics = await newBucket();
  for (const name of ["a", "b", "c", "d", "e"]) await pics.upload(name, name);
  const client = new Trug({ url: base, key, fetch: paged });
  assert.deepEqual(
    (await all(client.bucket(pics.name).list())).map((it) => it.key),
    ["a", "b", "c", "d", "e"],
  );
  assert.equal(pages.length, 3);
});

test("search finds names with typing errors", async () => {
  const pics = await newBucket();
  await pics.upload("2026/beach.txt", "x");
  await pics.upload("2026/forest.txt", "x");
  const page = await pics.search("baech", { limit: 5 });
  assert.deepEqual(
    page.hits.map((hit) => hit.key),
    ["2026/beach.txt"],
  );
  assert.equal((await pics.search("txt", { parent: "2026/", offset: 1 })).hits.length, 1);
});

test("move and copy report the new location, and conflicts", async () => {
  const pics = await newBucket();
  await pics.upload("a.txt", "a");
  await pics.upload("b.txt", "b");
  assert.equal((await pics.move("a.txt", "c/a.txt")).path, "c/a.txt");
  await assert.rejects(pics.copy("c/a.txt", "b.txt"), { status: 409, code: "already_exists" });
  assert.deepEqual((await pics.copy("c/a.txt", "b.txt", { onConflict: "rename" })).renamed, true);
  await pics.copy("c/a.txt", "b.txt", { onConflict: "overwrite" });
  assert.equal(await (await pics.download("b.txt")).text(), "a");
});

test("delete takes files, lists and folders of any size", async () => {
  const pics = await newBucket();
  const files = Array.from({ length: 130 }, (_, at) => new File(["x"], `${at}.txt`));
  await pics.uploadMany("folder/", files, { concurrency: 16 });
  await pics.uploadMany("", files.slice(0, 5));
  assert.deepEqual(await pics.delete("0.txt"), { deletedCount: 1 });
  assert.deepEqual(await pics.delete("0.txt"), { deletedCount: 0 });
  assert.deepEqual(await pics.delete(["0.txt", "1.txt", "2.txt"]), { deletedCount: 2 });
  assert.deepEqual(await pics.delete("folder/"), { deletedCount: 130 });
  assert.deepEqual(
    (await all(pics.list())).map((it) => it.key),
    ["3.txt", "4.txt"],
  );
  await assert.rejects(trug.bucket("no-such-bucket").delete("x"), { code: "bucket_not_found" });
});

test("restore brings back a deleted version", async () => {
  const pics = await newBucket();
  await pics.upload("a.txt", "first");
  await pics.delete("a.txt");
  const restored = await pics.restore("a.txt");
  assert.equal(restored.path, "a.txt");
  assert.equal(await (await pics.download("a.txt")).text(), "first");
  await assert.rejects(pics.restore("a.txt", { onConflict: "refuse" }), TrugError);
});

test("download reads ranges and image variants", async () => {
  const pics = await newBucket();
  await pics.upload("digits.txt", "0123456789");
  assert.equal(await (await pics.download("digits.txt", { range: [2, 4] })).text(), "234");
  assert.equal(await (await pics.download("digits.txt", { range: [7] })).text(), "789");
  await pics.upload("dot.png", PNG);
  const variant = await pics.download("dot.png", { width: 1, format: "webp" });
  assert.equal(variant.headers.get("content-type"), "image/webp");
  await assert.rejects(pics.download("missing"), { status: 404, code: "file_not_found" });
});

test("uploadMany reports each file, and the sum of the progress", async () => {
  const pics = await newBucket({ allowedTypes: ["text/plain"] });
  const files = [
    new File(["one"], "1.txt", { type: "text/plain" }),
    new File([PNG], "2.png"),
    new File(["three"], "3.txt", { type: "text/plain" }),
  ];
  const reported = [];
  let last;
  const results = await pics.uploadMany("", files, {
    onFile: (it) => reported.push(it.file.name),
    onProgress: (it) => {
      last = it;
    },
  });
  assert.deepEqual(
    results.map((it) => it.ok),
    [true, false, true],
  );
  assert.equal(results[1].error.code, "type_not_allowed");
  assert.deepEqual(reported.sort(), ["1.txt", "2.png", "3.txt"]);
  assert.equal(last.totalBytes, 8 + PNG.length);
});

test("metadata and expiry are set by uploads and changed later", async () => {
  const pics = await newBucket();
  const options = { metadata: { by: "ann b" }, cacheControl: "no-store", expiresIn: "1d" };
  for (const resume of ["never", "always"]) {
    const path = `${resume}.txt`;
    await pics.upload(path, new File(["hello"], path), { ...options, resume });
    const info = await pics.info(path);
    assert.deepEqual([info.metadata, info.cacheControl, info.size], [{ by: "ann b" }, "no-store", 5]);
    assert.ok(Math.abs(Date.parse(info.expiresAt) - Date.now() - 86_400_000) < 60_000, info.expiresAt);
    const at = new Date(Date.now() + 3_600_000);
    const changed = await pics.edit(path, { expiresAt: at, metadata: {}, contentType: "text/markdown" });
    assert.deepEqual([changed.metadata, Date.parse(changed.expiresAt)], [{}, at.getTime()]);
    assert.deepEqual([changed.contentType, changed.etag, changed.cacheControl], ["text/markdown", info.etag, "no-store"]);
    assert.equal((await pics.edit(path, { expiresIn: null })).expiresAt, null);
  }
  const refused = pics.edit("none.txt", { cacheControl: null });
  await assert.rejects(refused, (error) => error instanceof TrugError && error.code === "file_not_found");
});
