// Buckets, tokens, signed URLs and raw requests, each against the server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Trug, TrugError } from "@trug/client";
import { base, key, newBucket, trug } from "./server.mjs";

test("buckets are created, listed, changed and deleted", async () => {
  const pics = await newBucket({ access: "private" });
  const names = [];
  for await (const bucket of trug.buckets()) names.push(bucket.bucketName);
  assert.ok(names.includes(pics.name));
  assert.equal((await pics.settings()).access, "private");
  assert.equal((await pics.settings({ cacheControl: "max-age=60", quotaObjects: 5 })).cacheControl, "max-age=60");
  assert.equal((await pics.settings()).quotaObjects, 5);
  await assert.rejects(trug.createBucket(pics.name), { status: 409, code: "already_exists" });
  await assert.rejects(pics.settings({ nonsense: 1 }), { status: 400, code: "bad_parameter", parameter: "nonsense" });
  await pics.upload("a.txt", "a");
  await assert.rejects(trug.deleteBucket(pics.name), { code: "bucket_not_empty" });
  assert.deepEqual(await trug.deleteBucket(pics.name, { force: true }), { deletedCount: 1 });
  await assert.rejects(pics.settings(), { code: "bucket_not_found" });
});

test("usage reports stored bytes", async () => {
  const pics = await newBucket();
  await pics.upload("a.txt", "0123456789");
  const { buckets } = await trug.usage();
  assert.equal(buckets.find((it) => it.bucketName === pics.name)?.totalBytes ?? 10, 10);
});

test("upload tokens store one file without a key", async () => {
  const pics = await newBucket({ access: "private" });
  const token = await pics.uploadToken("inbox/", { expiresIn: "10m" });
  assert.equal(token.expiresIn, 600);
  const seen = [];
  const stored = await Trug.uploadWithToken(token.url, new File(["hello"], "a?b.txt"), {
    onProgress: (it) => seen.push(it),
  });
  assert.equal(stored.key, "inbox/a?b.txt");
  assert.equal(seen.at(-1).ratio, 1);
  await assert.rejects(Trug.uploadWithToken(token.url, "again"), { status: 410, code: "token_used" });
  const exact = await pics.uploadToken("exact.txt", { overwrite: true });
  assert.equal((await Trug.uploadWithToken(exact.url, "x")).key, "exact.txt");
  const root = await pics.uploadToken("");
  assert.equal((await Trug.uploadWithToken(root.url, "x", { name: "named.txt" })).key, "named.txt");
});

test("signed URLs read private files, with a transform and as a download", async () => {
  const secret = await newBucket({ access: "private" });
  await secret.upload("a b?.txt", "secret");
  await assert.rejects(new Trug({ url: base }).bucket(secret.name).download("a b?.txt"), {
    status: 401,
    code: "missing_api_key",
  });
  const { url, expiresAt } = await secret.signedUrl("a b?.txt", { expiresIn: 60 });
  assert.equal(await (await fetch(url)).text(), "secret");
  assert.ok(Math.abs(new Date(expiresAt) - Date.now() - 60_000) < 10_000);
  const named = await secret.signedUrl("a b?.txt", { download: "other name.txt" });
  assert.match((await fetch(named.url)).headers.get("content-disposition"), /^attachment; filename="other name.txt"/);
  const png = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
    "base64",
  );
  await secret.upload("dot.png", png);
  const signed = await secret.signedUrls(["dot.png", "missing.png"], { format: "webp", width: 1, expiresIn: "1d" });
  assert.equal((await fetch(signed[0].url)).headers.get("content-type"), "image/webp");
  assert.equal(signed[1].path, "missing.png");
  assert.ok(signed[1].error instanceof TrugError && signed[1].error.code === "file_not_found");
  await assert.rejects(secret.signedUrl("dot.png", { expiresIn: "8d" }), {
    code: "bad_parameter",
    parameter: "expiresIn",
  });
  await assert.rejects(secret.signedUrl("dot.png", { expiresIn: "soon" }), TypeError);
});

test("request sends parameters, queries and bodies of any operation", async () => {
  const pics = await newBucket();
  await pics.upload("old/a.txt", "a");
  const { job } = await trug.request("POST", "/api/jobs", {
    body: { kind: "deleteFolder", bucketName: pics.name, prefix: "old/" },
  });
  const shown = await trug.request("GET", "/api/jobs/{id}", { path: { id: job.id } });
  assert.equal(shown.job.kind, "deleteFolder");
  const form = new FormData();
  form.append("file", new File(["x"], "x.txt"));
  const reply = await trug.request("POST", "/{bucket}/{path}", {
    path: { bucket: pics.name, path: "new #1/" },
    query: { overwrite: true },
    body: form,
  });
  assert.equal(reply.key, "new #1/x.txt");
  const { apiKeys } = await trug.request("GET", "/api/keys", { query: { limit: 1 } });
  assert.equal(apiKeys.length, 1);
  assert.ok((await trug.request("GET", "/api/account")).account.id);
  await assert.rejects(trug.request("GET", "/api/jobs/{id}", { path: { id: "a/b?c" } }), { status: 404 });
});

test("errors have status, code, parameter and request ID", async () => {
  const error = await new Trug({ url: base, key: "wrong" }).usage().catch((it) => it);
  assert.ok(error instanceof TrugError && error instanceof Error);
  assert.deepEqual(
    [error.name, error.status, error.code, error.isRetryable],
    ["TrugError", 401, "invalid_api_key", false],
  );
  assert.match(error.requestId, /^[0-9a-f]+$/);
  assert.equal(new TrugError("x", { status: 429, code: "rate_limited" }).isRetryable, true);
  assert.throws(() => new Trug({ url: "no url" }), TypeError);
});

test("a key is sent to the server's own URL only", async () => {
  const sent = [];
  const recorder = async (url, init) => {
    sent.push([String(url), new Headers(init.headers).get("authorization")]);
    return fetch(url, init);
  };
  const client = new Trug({ url: `${base}/?ignored#too`, key, fetch: recorder });
  await client.usage();
  assert.deepEqual(sent, [[`${base}/api/usage`, `Bearer ${key}`]]);
});
