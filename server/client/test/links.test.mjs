// Shared links and zip archives, each against the server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TrugError } from "@trug/client";
import { base, newBucket, trug } from "./server.mjs";

/** Collects an async iterable. */
async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

test("shared links are created, listed, edited and ended", async () => {
  const pics = await newBucket({ access: "private" });
  await pics.upload("2026/hello.txt", "hello");
  const inTwoDays = new Date(Date.now() + 2 * 86_400_000);
  const link = await pics.links.create({ paths: ["2026/"], title: "Summer", expiresIn: "7d", password: "tern-42" });
  const dated = await pics.links.create({ paths: ["2026/hello.txt"], expiresAt: inTwoDays, downloadsMax: 3 });
  const endless = await pics.links.create({ paths: [""], expiresIn: null });
  assert.equal(Date.parse(dated.expiresAt), inTwoDays.getTime());
  assert.deepEqual([link.hasPassword, dated.downloadsMax, endless.expiresAt], [true, 3, null]);
  assert.equal((await fetch(base + new URL(link.url).pathname)).status, 401);
  const changed = await trug.links.edit(link.id, { password: null, expiresIn: 60 });
  assert.equal(changed.hasPassword, false);
  assert.match(await (await fetch(base + new URL(link.url).pathname)).text(), /hello\.txt/);
  assert.equal((await trug.links.get(link.id)).title, "Summer");
  assert.equal((await all(pics.links.list({ path: "2026/hello.txt" }))).length, 3);
  await trug.links.end(link.id);
  assert.deepEqual((await all(pics.links.list({ state: "ended" }))).map((it) => it.id), [link.id]);
  assert.ok((await all(trug.links.list({ state: "active" }))).some((it) => it.id === dated.id));
  const again = trug.links.edit(link.id, { title: "x" });
  await assert.rejects(again, (error) => error instanceof TrugError && error.code === "link_ended");
  assert.equal((await trug.links.reopen(link.id)).state, "active");
  assert.deepEqual((await all(pics.links.list({ path: "2026/", exact: true, own: true }))).map((it) => it.id), [link.id]);
});

test("zip archives are prepared and downloaded without a key", async () => {
  const pics = await newBucket({ access: "private" });
  await pics.upload("2026/hello.txt", "hello");
  await pics.upload("a.txt", "a");
  const archive = await pics.zip(["2026/", "a.txt"], { name: "all.zip" });
  assert.deepEqual([archive.files, archive.bytes], [2, 6]);
  const response = await fetch(base + new URL(archive.url).pathname);
  assert.equal(response.headers.get("content-disposition"), 'attachment; filename="all.zip"');
  assert.equal(Buffer.from(await response.arrayBuffer()).subarray(0, 2).toString(), "PK");
});

test("links request files", async () => {
  const pics = await newBucket({ access: "private" });
  const link = await pics.links.create({ kind: "upload", paths: ["inbox/"], filesMax: 3, askName: "required" });
  assert.deepEqual([link.kind, link.filesMax, link.askName, link.uploadedFiles], ["upload", 3, "required", 0]);
  assert.equal((await trug.links.edit(link.id, { bytesMax: 10 })).bytesMax, 10);
  assert.deepEqual((await all(pics.links.list({ kind: "upload" }))).map((it) => it.id), [link.id]);
  assert.deepEqual(await all(pics.links.list({ kind: "download" })), []);
});
