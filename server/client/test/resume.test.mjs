// Resumable uploads: interruptions, restarts of the client, and results that were lost.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { Trug } from "@trug/client";
import { bytes, holds, key, newBucket, startProxy } from "./server.mjs";

const MIB = 1_048_576;
const body = bytes(20 * MIB);
let proxy;
let client;
before(async () => {
  proxy = await startProxy();
  client = new Trug({ url: proxy.url, key });
});
beforeEach(() => {
  proxy.seen = [];
  proxy.fault = () => undefined;
});
after(() => proxy.close());

/** Storage in memory. */
function memory() {
  const items = new Map();
  return {
    items,
    getItem: (name) => items.get(name) ?? null,
    setItem: (name, text) => items.set(name, text),
    removeItem: (name) => items.delete(name),
  };
}
const methods = () => proxy.seen.map((it) => it.method).join(" ");
const patches = () =>
  proxy.seen.filter((it) => it.method === "PATCH").map((it) => Number(it.headers["upload-offset"]) / MIB);
/** Returns a fault for the PATCH requests of these numbers. */
const onPatches =
  (faults) =>
  ({ method }) =>
    method === "PATCH" ? faults[patches().length] : undefined;

test("a file over 16 MiB is sent in pieces of 8 MiB", async () => {
  const pics = await newBucket();
  const seen = [];
  const stored = await client
    .bucket(pics.name)
    .upload("2026/", new File([body], "big é.bin"), { onProgress: (it) => seen.push(it) });
  assert.equal(methods(), "POST PATCH PATCH PATCH");
  assert.deepEqual(patches(), [0, 8, 16]);
  assert.deepEqual(stored, {
    name: "big é.bin",
    key: "2026/big é.bin",
    url: pics.url("2026/big é.bin"),
    thumbnailUrl: null,
    size: body.length,
  });
  assert.ok(await holds(pics, stored.key, body));
  const sent = seen.map((it) => it.sentBytes);
  assert.deepEqual(
    sent,
    [...sent].sort((one, other) => one - other),
  );
  assert.deepEqual([sent[0], sent.at(-1), seen.at(-1).ratio], [0, body.length, 1]);
});

test("resume selects pieces or a form for any size", async () => {
  const pics = client.bucket((await newBucket()).name);
  await pics.upload("small", "small", { resume: "always", contentType: "text/markdown" });
  assert.equal(methods(), "POST PATCH");
  assert.equal((await pics.download("small")).headers.get("content-type").split(";")[0], "text/markdown");
  assert.equal((await pics.upload("empty.txt", "", { resume: "always" })).size, 0);
  proxy.seen = [];
  await pics.upload("big.bin", body, { resume: "never" });
  assert.equal(methods(), "POST");
});

test("a piece that is cut off continues where the server has it", async () => {
  const pics = await newBucket();
  proxy.fault = onPatches({ 2: { cutAfter: 3 * MIB } });
  await client.bucket(pics.name).upload("cut.bin", body);
  assert.equal(methods(), "POST PATCH PATCH HEAD PATCH PATCH");
  const [, , continued] = patches();
  assert.ok(continued >= 8 && continued < 12, `continues at ${continued} MiB`);
  assert.ok(await holds(pics, "cut.bin", body));
});

test("a lost response stores a file once", async () => {
  const pics = await newBucket();
  proxy.fault = onPatches({ 3: { dropReply: true } });
  const stored = await client.bucket(pics.name).upload("once.bin", body);
  assert.equal(stored.key, "once.bin");
  assert.equal(methods(), "POST PATCH PATCH PATCH HEAD");
  const keys = [];
  for await (const { key } of pics.list()) keys.push(key);
  assert.deepEqual(keys, ["once.bin"]);
});

test("pieces are repeated after 429 and 503, and not after other errors", async () => {
  const pics = await newBucket();
  const later = { "Retry-After": "0.01" };
  proxy.fault = onPatches({ 1: { status: 503, headers: later }, 3: { status: 429, headers: later } });
  await client.bucket(pics.name).upload("busy.bin", body);
  assert.deepEqual(patches(), [0, 0, 8, 8, 16]);
  proxy.fault = ({ method }) => (method === "PATCH" ? { status: 500 } : undefined);
  await assert.rejects(client.bucket(pics.name).upload("failed.bin", body), { status: 500 });
});

test("a later call continues the upload of a File", async () => {
  const pics = await newBucket();
  const storage = memory();
  const file = () => new File([body], "film.bin", { lastModified: 1_700_000_000_000 });
  const controller = new AbortController();
  const stop = ({ sentBytes }) => {
    if (sentBytes > 9 * MIB) controller.abort();
  };
  await assert.rejects(
    client.bucket(pics.name).upload("", file(), { storage, signal: controller.signal, onProgress: stop }),
    { name: "AbortError" },
  );
  assert.equal(storage.items.size, 1);
  assert.ok(![...storage.items].flat().join().includes(key), "the key is stored");
  proxy.seen = [];
  const seen = [];
  const again = new Trug({ url: proxy.url, key });
  const stored = await again
    .bucket(pics.name)
    .upload("", file(), { storage, onProgress: (it) => seen.push(it.sentBytes) });
  // The server may still receive the aborted piece, which then costs a HEAD.
  assert.match(methods(), /^(PATCH )?HEAD PATCH /);
  assert.doesNotMatch(methods(), /POST/, "no other upload is created");
  assert.ok(seen[0] >= 8 * MIB, `continues at ${seen[0]}`);
  assert.equal(storage.items.size, 0);
  assert.ok(await holds(pics, stored.key, body));
});

test("another file, and an upload that no longer exists, start again", async () => {
  const pics = await newBucket();
  const storage = memory();
  const options = { storage, resume: "always" };
  const file = new File(["content"], "a.txt", { lastModified: 1 });
  proxy.fault = ({ method }) => (method === "PATCH" ? { status: 500 } : undefined);
  const through = client.bucket(pics.name);
  await assert.rejects(through.upload("", file, options), { status: 500 });
  const [entry] = storage.items.keys();
  proxy.fault = () => undefined;
  for (const url of [
    "https://elsewhere.example/api/tus/1",
    `${proxy.url}/api/tus/33f1ce7d-9230-4933-9093-cf134d220000`,
  ]) {
    storage.items.set(entry, url);
    assert.equal((await through.upload("", file, { ...options, overwrite: undefined })).size, 7, url);
  }
  await assert.rejects(through.upload("", file, { ...options, signal: AbortSignal.abort() }), { name: "AbortError" });
  proxy.seen = [];
  await through.upload("", new File(["content"], "a.txt", { lastModified: 2 }), options);
  await through.upload("b.txt", new Blob(["content"]), options);
  assert.equal(methods(), "POST PATCH POST PATCH");
});

test("a complete upload above a quota is stored once there is space", async () => {
  const pics = await newBucket();
  const options = { storage: memory(), resume: "always" };
  const upload = () =>
    client.bucket(pics.name).upload("", new File(["0123456789"], "a.txt", { lastModified: 1 }), options);
  proxy.fault = ({ method }) => (method === "PATCH" ? { status: 500 } : undefined);
  await assert.rejects(upload(), { status: 500 });
  proxy.fault = () => undefined;
  await pics.settings({ quotaBytes: 5 });
  await assert.rejects(upload(), { status: 507, code: "quota_exceeded" });
  await pics.settings({ quotaBytes: null });
  proxy.seen = [];
  assert.equal((await upload()).key, "a.txt");
  assert.equal(methods(), "HEAD", "the server stores it when its state is requested");
  assert.equal(await (await pics.download("a.txt")).text(), "0123456789");
});
