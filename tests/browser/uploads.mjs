// Uploads: dropped folders, long queues, resumable large files.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { api, base, close, dropFromDisk, keys, open, options, shot, store, threadMs, waitForRows } from "./driver.mjs";
import { enter } from "./entrance.mjs";
import { send, signIn } from "./sessions.mjs";

const LARGE_BYTES = 40_000_000;
/** A queue this long is added in one go. */
const LONG = 25_000;
/** Number of measured frames during the upload, and the page's own time limit for one. */
const FRAMES = 90;
const FRAME_MS_MAX = 50;

const folder = (name) => {
  const path = join(options.folder, name);
  mkdirSync(path, { recursive: true });
  return path;
};

const done = (page, text) => page.locator(".uploads h2", { hasText: text }).waitFor({ timeout: 100_000 });

/** Waits until the queue has reported its end: the next queue is another one. */
const over = (page, text) => page.getByRole("status").filter({ hasText: text }).waitFor({ state: "attached" });

/** Lets the answer to the first upload be lost, after the server has done it. */
async function loseFirstAnswer(page, urlPattern) {
  const client = await page.context().newCDPSession(page);
  const lost = { status: 0 };
  client.on("Fetch.requestPaused", ({ requestId, request, responseStatusCode }) => {
    const isFirst = request.method === "POST" && lost.status === 0;
    if (isFirst) lost.status = responseStatusCode;
    client.send(isFirst ? "Fetch.failRequest" : "Fetch.continueRequest", { requestId, ...(isFirst ? { errorReason: "ConnectionReset" } : {}) }).catch(() => {});
  });
  await client.send("Fetch.enable", { patterns: [{ urlPattern, requestStage: "Response" }] });
  return lost;
}

/** Chooses files of the disk. */
const choose = (page, paths) => page.locator(".pick-files").setInputFiles(paths);

export const tests = {
  async dropped_folder_is_uploaded_with_its_content() {
    const root = folder("dropped");
    const names = [];
    for (let number = 0; number < 250; number += 1) {
      const below = folder(`dropped/deep/${number % 5}`);
      writeFileSync(join(below, `f${number}.txt`), `file ${number}\n`);
      names.push(`in/dropped/deep/${number % 5}/f${number}.txt`);
    }
    const page = await open("/-/files/photos/in/");
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    await shot(page, "files-empty");
    await dropFromDisk(page, [root]);
    await done(page, "250 files uploaded");
    assert.deepEqual((await keys("photos", "in/")).sort(), names.sort());
    await page.locator(".row", { hasText: "dropped" }).waitFor();
    await page.getByRole("status").filter({ hasText: "250 files uploaded" }).waitFor({ state: "attached" });
    await shot(page, "upload-done");
    await close(page);
  },

  async folder_read_during_upload_is_one_upload_in_the_report() {
    const root = folder("slowly");
    for (let number = 0; number < 601; number += 1) writeFileSync(join(root, `f${number}.txt`), "f");
    const page = await open("/-/files/photos/slowly/");
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    // The disk delivers nothing more, and no end of the folder, until the first files are stored.
    await page.evaluate(() => {
      const entryOf = DataTransferItem.prototype.webkitGetAsEntry;
      DataTransferItem.prototype.webkitGetAsEntry = function () {
        const entry = entryOf.call(this);
        const reader = entry.createReader();
        let count = 0;
        const readEntries = (...args) => {
          count += 1;
          if (count !== 6) return reader.readEntries(...args);
          const wait = setInterval(() => {
            if (document.querySelector(".uploads h2")?.textContent !== "Uploading 500 of 500") return;
            clearInterval(wait);
            // Longer than the queue takes to detect the end.
            setTimeout(() => reader.readEntries(...args), 600);
          }, 20);
        };
        return { name: entry.name, isDirectory: true, createReader: () => ({ readEntries }) };
      };
    });
    await dropFromDisk(page, [root]);
    await done(page, "601 files uploaded");
    await over(page, "601 files uploaded");
    assert.equal((await keys("photos", "slowly/")).length, 601);
    await close(page);
  },

  async file_missing_at_upload_fails_alone_with_reason() {
    const root = folder("vanished");
    const paths = ["a.txt", "b.txt", "c.txt"].map((name) => join(root, name));
    for (const path of paths) writeFileSync(path, "text");
    const page = await open("/-/files/photos/vanished/");
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    await page.context().setOffline(true);
    await choose(page, paths);
    await page.locator(".uploads header p", { hasText: "retrying" }).waitFor();
    rmSync(paths[1]);
    await page.context().setOffline(false);
    await done(page, "1 file failed");
    await page.locator(".reason", { hasText: "Can't read this file. It was changed, moved or deleted" }).waitFor();
    assert.deepEqual(await keys("photos", "vanished/"), ["vanished/a.txt", "vanished/c.txt"]);
    await close(page);
  },

  async chosen_folder_is_uploaded_with_its_content() {
    const root = folder("picked");
    writeFileSync(join(folder("picked/a/b"), "x.txt"), "x");
    writeFileSync(join(root, "y.txt"), "y");
    const page = await open("/-/files/photos/picked-here/");
    await page.locator(".pick-folder").setInputFiles(root);
    await done(page, "2 files uploaded");
    assert.deepEqual(await keys("photos", "picked-here/"), ["picked-here/picked/a/b/x.txt", "picked-here/picked/y.txt"]);
    await close(page);
  },

  async pasted_content_is_uploaded_and_images_named_by_time() {
    const page = await open("/-/files/photos/pasted/");
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    await page.evaluate(() => {
      const data = new DataTransfer();
      data.items.add(new File(["picture"], "image.png", { type: "image/png" }));
      data.items.add(new File(["text"], "note.txt"));
      document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    });
    await done(page, "2 files uploaded");
    const stored = await keys("photos", "pasted/");
    assert.match(stored[0], /^pasted\/Pasted image \d{4}-\d\d-\d\d \d\d-\d\d-\d\d\.png$/);
    assert.equal(stored[1], "pasted/note.txt");
    await close(page);
  },

  async large_upload_resumes_after_pause_and_reload() {
    const bytes = Buffer.alloc(LARGE_BYTES, "large ");
    const path = join(folder("large"), "film.bin");
    writeFileSync(path, bytes);
    const page = await open("/-/files/photos/large/");
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    const client = await page.context().newCDPSession(page);
    await client.send("Network.enable");
    const throttle = (uploadThroughput) => client.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput });
    await throttle(8_000_000);
    await choose(page, [path]);
    await page.waitForFunction(() => Number.parseInt(document.querySelector(".item .how")?.textContent, 10) >= 20);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.locator(".uploads header p", { hasText: "Paused" }).waitFor();
    await page.reload();
    await page.getByText("1 upload was interrupted: film.bin").waitFor();
    await throttle(-1);
    const offsets = [];
    page.on("request", (request) => { if (request.method() === "PATCH") offsets.push(Number(request.headers()["upload-offset"])); });
    await choose(page, [path]);
    await done(page, "1 file uploaded");
    assert.ok(offsets[0] > 1_000_000, `it began again at ${offsets}`);
    const stored = Buffer.from(await (await api("GET", "/photos/large/film.bin")).arrayBuffer());
    const hash = (data) => createHash("sha256").update(data).digest("hex");
    assert.equal(hash(stored), hash(bytes));
    await close(page);
    return `went on at ${offsets[0]}`;
  },

  async name_conflicts_are_renamed_replaced_or_skipped() {
    const path = join(folder("taken"), "a.txt");
    writeFileSync(path, "new");
    await store("photos", "taken/a.txt", "old");
    const page = await open("/-/files/photos/taken/");
    await waitForRows(page, 1);
    const text = async (key) => (await api("GET", `/photos/${key}`, undefined, { "Cache-Control": "no-cache" })).text();
    await choose(page, [path]);
    await done(page, "1 file uploaded");
    assert.deepEqual(await keys("photos", "taken/"), ["taken/a (1).txt", "taken/a.txt"]);
    await over(page, "1 file uploaded");
    await waitForRows(page, 2);
    await page.getByLabel("If a file exists").selectOption("skip");
    await choose(page, [path]);
    await done(page, "1 file skipped");
    await over(page, "0 files uploaded, 1 skipped");
    assert.equal(await text("taken/a.txt"), "old");
    await page.getByLabel("If a file exists").selectOption("overwrite");
    await choose(page, [path]);
    await page.locator(".item[data-state=done]").waitFor();
    await over(page, "1 file uploaded");
    assert.equal(await text("taken/a.txt"), "new");
    assert.equal((await keys("photos", "taken/")).length, 2);
    await close(page);
  },

  async failed_uploads_are_retried_at_once_or_after_retry_after() {
    const path = join(folder("failing"), "a.txt");
    writeFileSync(path, "a");
    const page = await open("/-/files/photos/failing/");
    let tries = 0;
    await page.route("**/photos/failing/", (route) => {
      if (route.request().method() !== "POST") return route.continue();
      tries += 1;
      if (tries === 1) return route.fulfill({ status: 503, headers: { "Retry-After": "1" }, json: { success: false, code: "overloaded", error: "Busy", retryAfter: 1 } });
      if (tries === 2) return route.abort();
      if (tries === 3) return route.fulfill({ status: 415, json: { success: false, code: "type_not_allowed", error: "The bucket takes no text/plain" } });
      return route.continue();
    });
    await choose(page, [path]);
    await done(page, "1 file failed");
    await page.locator(".reason", { hasText: "The bucket takes no text/plain. See Allowed file types" }).waitFor();
    await shot(page, "upload-failed");
    await page.getByRole("button", { name: "Retry failed" }).click();
    await done(page, "1 file uploaded");
    assert.equal(tries, 4);
    await close(page);
  },

  async lost_response_stores_nothing_twice() {
    const root = folder("lost");
    const contents = { "a.txt": "new a", "b.txt": "b", "no ending": "c" };
    for (const [name, text] of Object.entries(contents)) writeFileSync(join(root, name), text);
    for (const policy of ["rename", "skip", "overwrite"]) {
      const where = `lost-${policy}/`;
      await store("photos", `${where}a.txt`, "old");
      const page = await open(`/-/files/photos/${where}`);
      await waitForRows(page, 1);
      const lost = await loseFirstAnswer(page, `*/photos/${where}*`);
      await page.evaluate((value) => localStorage.setItem("trug-policy", JSON.stringify(value)), policy);
      await page.reload();
      await waitForRows(page, 1);
      await choose(page, Object.keys(contents).map((name) => join(root, name)));
      await done(page, policy === "skip" ? "2 files uploaded" : "3 files uploaded");
      const expected = policy === "rename" ? ["a (1).txt", "a.txt", "b.txt", "no ending"] : ["a.txt", "b.txt", "no ending"];
      assert.deepEqual(await keys("photos", where), expected.map((name) => where + name), policy);
      const text = async (name) => (await api("GET", `/photos/${where}${encodeURIComponent(name)}`)).text();
      assert.equal(await text("a.txt"), policy === "overwrite" ? "new a" : "old", policy);
      if (policy === "rename") assert.equal(await text("a (1).txt"), "new a");
      assert.equal(lost.status, 200, "the server had not stored them");
      await close(page);
    }
  },

  async uploads_wait_for_sign_in_and_continue() {
    const path = join(folder("waiting"), "a.txt");
    writeFileSync(path, "a");
    const session = await signIn("ann");
    const page = await open("/-/files/photos/waiting/", { session });
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    // Signed out in another window.
    assert.equal((await send("DELETE", `${base}/-/session`, undefined, session)).status, 204);
    await choose(page, [path]);
    await enter(page, "ann");
    await page.getByRole("button", { name: "Resume" }).click();
    await done(page, "1 file uploaded");
    assert.deepEqual(await keys("photos", "waiting/"), ["waiting/a.txt"]);
    await close(page);
  },
};

/** Those that measure time. */
export const measured = {
  async queue_of_25_000_files_keeps_the_page_responsive() {
    const page = await open("/-/files/photos/queue/");
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    // Slow enough that even a fast machine has not finished before the check.
    const client = await page.context().newCDPSession(page);
    await client.send("Network.enable");
    await client.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: -1, uploadThroughput: -1 });
    await page.evaluate((count) => {
      const files = Array.from({ length: count }, (_, number) => new File([`${number}`], `n${String(number).padStart(5, "0")}.txt`));
      window.frames25k = [];
      // A drop without a disk behind it has files and no entries. A real list of so many takes the browser seconds.
      const drop = new DragEvent("drop", { bubbles: true, cancelable: true });
      Object.defineProperty(drop, "dataTransfer", { value: { items: [], files } });
      document.querySelector(".browser").dispatchEvent(drop);
      let last = performance.now();
      const look = (now) => {
        window.frames25k.push(now - last);
        last = now;
        requestAnimationFrame(look);
      };
      requestAnimationFrame((now) => { last = now; look(now); });
    }, LONG);
    await page.locator(".uploads h2", { hasText: `of ${LONG.toLocaleString("en")}` }).waitFor();
    const nodes = await page.evaluate(() => document.querySelectorAll(".uploads *").length);
    assert.ok(nodes < 150, `${nodes} nodes`);
    const { ms } = await threadMs(page, () => page.waitForFunction((frames) => window.frames25k.length >= frames, FRAMES));
    const frames = await page.evaluate(() => window.frames25k.sort((one, other) => other - one));
    assert.ok(ms / frames.length < FRAME_MS_MAX, `the page took ${Math.round(ms)} ms for ${frames.length} frames`);
    await page.waitForFunction(() => /^\d+ % · /.test(document.title));
    await page.locator(".uploads header p", { hasText: /\/s · .* left/ }).waitFor();
    await shot(page, "upload-queue");
    const sent = [];
    await page.getByRole("button", { name: "Cancel all or close" }).click();
    await page.locator(".note", { hasText: "cancelled" }).waitFor();
    page.on("request", (request) => { if (request.method() === "POST") sent.push(request.url()); });
    await page.locator(".uploads").waitFor({ state: "hidden" });
    // Some ticks of the queue.
    await page.waitForTimeout(1_000);
    assert.deepEqual(sent, [], "it goes on after it was cancelled");
    const stored = (await keys("photos", "queue/")).length;
    assert.ok(stored < LONG, "all of it was stored before it was cancelled");
    await close(page);
    return `${nodes} nodes, ${(ms / frames.length).toFixed(1)} ms a frame, the slowest ${Math.round(frames[0])} ms`;
  },
};
