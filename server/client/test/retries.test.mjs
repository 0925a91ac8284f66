// Failures between client and server: repetitions, aborts and time limits.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { Trug } from "@trug/client";
import { bytes, holds, key, newBucket, startProxy } from "./server.mjs";

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

/** Returns a fault for the first `count` requests. */
const first = (count, what) => (_, number) => (number <= count ? what : undefined);

test("429 and 503 are repeated after Retry-After", async () => {
  for (const status of [429, 503]) {
    proxy.seen = [];
    proxy.fault = first(2, { status, headers: { "Retry-After": "1" } });
    const start = performance.now();
    await client.usage();
    assert.equal(proxy.seen.length, 3);
    assert.ok(performance.now() - start >= 1_990, "waited for less than Retry-After");
  }
});

test("a request is repeated at most 5 times", async () => {
  proxy.fault = first(100, {
    status: 503,
    headers: { "Retry-After": "0.01" },
    body: JSON.stringify({ error: "Busy", code: "overloaded" }),
  });
  await assert.rejects(client.usage(), { status: 503, code: "overloaded", message: "Busy", isRetryable: true });
  assert.equal(proxy.seen.length, 6);
  proxy.seen = [];
  const impatient = new Trug({ url: proxy.url, key, retries: 0 });
  await assert.rejects(impatient.usage(), { status: 503 });
  assert.equal(proxy.seen.length, 1);
});

test("other statuses and long waits are not repeated", async () => {
  for (const what of [
    { status: 500 },
    { status: 502, body: "<html>" },
    { status: 404 },
    { status: 429, headers: { "Retry-After": "3600" } },
  ]) {
    proxy.seen = [];
    proxy.fault = first(100, what);
    await assert.rejects(client.usage(), { status: what.status, code: "invalid_response" });
    assert.equal(proxy.seen.length, 1);
  }
});

test("lost connections are repeated for requests that change nothing", async () => {
  const pics = await newBucket();
  await pics.upload("a.txt", "a");
  const through = client.bucket(pics.name);
  proxy.fault = first(1, { dropReply: true });
  assert.equal((await through.search("a")).total, 1);
  assert.equal(proxy.seen.length, 2);
  proxy.seen = [];
  assert.equal((await through.delete("a.txt")).deletedCount, 0, "deleted by the first request");
});

test("a POST that may have taken effect is not repeated", async () => {
  const pics = await newBucket();
  await pics.upload("a.txt", "a");
  const through = client.bucket(pics.name);
  proxy.fault = first(1, { dropReply: true });
  await assert.rejects(through.copy("a.txt", "b.txt"), { status: 0, code: "network_error", isRetryable: true });
  proxy.seen = [];
  await assert.rejects(through.upload("c.txt", "c"), { code: "network_error" });
  const keys = [];
  for await (const { key } of pics.list()) keys.push(key);
  assert.deepEqual(keys, ["a.txt", "b.txt", "c.txt"]);
});

test("an upload is repeated if it was cut off, or replaces", async () => {
  const pics = await newBucket();
  const through = client.bucket(pics.name);
  const body = bytes(12_000_000);
  proxy.fault = first(1, { cutAfter: 1_000_000 });
  const seen = [];
  const stored = await through.upload("cut.bin", body, { onProgress: (it) => seen.push(it.sentBytes) });
  assert.equal(stored.key, "cut.bin");
  assert.ok(await holds(pics, "cut.bin", body));
  assert.ok(
    seen.some((sent, at) => sent < seen[at - 1]),
    "progress starts again",
  );
  proxy.seen = [];
  proxy.fault = first(1, { dropReply: true });
  assert.equal((await through.upload("cut.bin", body, { overwrite: true })).key, "cut.bin");
  assert.equal(proxy.seen.length, 2);
});

test("a server that is down is a network error", async () => {
  const closed = await startProxy();
  closed.close();
  const down = new Trug({ url: closed.url, key, retries: 1 });
  await assert.rejects(down.usage(), { status: 0, code: "network_error", isRetryable: true });
  await assert.rejects(down.bucket("photos").upload("a.txt", "a"), { code: "network_error" });
});

test("requests have a time limit, and uploads none", async () => {
  proxy.fault = () => ({ hang: true });
  const client = new Trug({ url: proxy.url, key, timeoutMs: 100, retries: 0 });
  await assert.rejects(client.usage(), { status: 0, code: "timeout", isRetryable: true });
  const upload = client.bucket("photos").upload("a.txt", "a");
  const outcome = await Promise.race([
    upload.catch(() => "failed"),
    new Promise((done) => setTimeout(done, 300, "waiting")),
  ]);
  assert.equal(outcome, "waiting");
});

test("signals abort requests, uploads and pauses", async () => {
  const aborted = { name: "AbortError" };
  await assert.rejects(client.usage({ signal: AbortSignal.abort() }), aborted);
  proxy.fault = () => ({ hang: true });
  for (const call of [
    (signal) => client.usage({ signal }),
    (signal) => client.bucket("photos").upload("a", bytes(1_000), { signal }),
  ]) {
    const controller = new AbortController();
    const running = call(controller.signal);
    setTimeout(() => controller.abort(), 50);
    await assert.rejects(running, aborted);
  }
  proxy.fault = () => ({ status: 503, headers: { "Retry-After": "60" } });
  await assert.rejects(client.usage({ signal: AbortSignal.timeout(100) }), { name: "TimeoutError" });
  const pics = await newBucket();
  proxy.fault = () => undefined;
  const controller = new AbortController();
  const running = client
    .bucket(pics.name)
    .upload("b", bytes(10_000_000), { signal: controller.signal, onProgress: () => controller.abort() });
  await assert.rejects(running, aborted);
  await assert.rejects(pics.download("b"), { status: 404 });
});

test("rejections that come before the end of an upload are reported", async () => {
  const pics = await newBucket({ fileBytesMax: 1_000_000 });
  for (const resume of ["never", "always"]) {
    await assert.rejects(pics.upload("a.bin", bytes(10_000_000), { resume }), { status: 413, code: "file_too_large" });
  }
  const other = new Trug({ url: proxy.url, key: "wrong" });
  await assert.rejects(other.bucket(pics.name).upload("a.bin", bytes(10_000_000)), { status: 401 });
});
