// Files on their way in: dropped folders, long queues, large files that go on where they were.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { api, close, dropFromDisk, keys, open, options, shot, store, waitForRows } from "./driver.mjs";

const LARGE_BYTES = 40_000_000;
/** A queue this long is added in one go. */
const LONG = 25_000;

const folder = (name) => {
  const path = join(options.folder, name);
  mkdirSync(path, { recursive: true });
  return path;
};

const done = (page, text) => page.locator(".uploads h2", { hasText: text }).waitFor({ timeout: 50_000 });

/** Chooses files of the disk. */
const choose = (page, paths) => page.locator(".pick-files").setInputFiles(paths);

export const tests = {
  async "a folder that is dropped is stored with all that is in it"() {
    const root = folder("dropped");
    const names = [];
    for (let number = 0; number < 250; number += 1) {
      const below = folder(`dropped/deep/${number % 5}`);
      writeFileSync(join(below, `f${number}.txt`), `file ${number}\n`);
      names.push(`in/dropped/deep/${number % 5}/f${number}.txt`);
    }
    const page = await open("/-/files/photos/in/");
    await page.getByRole("heading", { name: "Nothing in here yet" }).waitFor();
    await shot(page, "files-empty");
    await dropFromDisk(page, [root]);
    await done(page, "250 files uploaded");
    assert.deepEqual((await keys("photos", "in/")).sort(), names.sort());
    await page.locator(".row", { hasText: "dropped" }).waitFor();
    await page.getByRole("status").filter({ hasText: "250 files uploaded" }).waitFor({ state: "attached" });
    await shot(page, "upload-done");
    await close(page);
  },

  async "a folder that is chosen is stored with all that is in it"() {
    const root = folder("picked");
    writeFileSync(join(folder("picked/a/b"), "x.txt"), "x");
    writeFileSync(join(root, "y.txt"), "y");
    const page = await open("/-/files/photos/picked-here/");
    await page.locator(".pick-folder").setInputFiles(root);
    await done(page, "2 files uploaded");
    assert.deepEqual(await keys("photos", "picked-here/"), ["picked-here/picked/a/b/x.txt", "picked-here/picked/y.txt"]);
    await close(page);
  },

  async "what is pasted is stored, pictures under the time"() {
    const page = await open("/-/files/photos/pasted/");
    await page.getByRole("heading", { name: "Nothing in here yet" }).waitFor();
    await page.evaluate(() => {
      const data = new DataTransfer();
      data.items.add(new File(["picture"], "image.png", { type: "image/png" }));
      data.items.add(new File(["text"], "note.txt"));
      document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    });
    await done(page, "2 files uploaded");
    const stored = await keys("photos", "pasted/");
    assert.match(stored[0], /^pasted\/Pasted \d{4}-\d\d-\d\d \d\d-\d\d-\d\d\.png$/);
    assert.equal(stored[1], "pasted/note.txt");
    await close(page);
  },

  async "a queue of twenty-five thousand files does not hold the page up"() {
    const page = await open("/-/files/photos/queue/");
    await page.getByRole("heading", { name: "Nothing in here yet" }).waitFor();
    await page.evaluate((count) => {
      const files = Array.from({ length: count }, (_, number) => new File([`${number}`], `n${String(number).padStart(5, "0")}.txt`));
      window.slowest = 0;
      let last = performance.now();
      const look = (now) => {
        window.slowest = Math.max(window.slowest, now - last);
        last = now;
        requestAnimationFrame(look);
      };
      // A drop that no disk stands behind has files and no entries. A real list of so many takes the browser seconds to make.
      const drop = new DragEvent("drop", { bubbles: true, cancelable: true });
      Object.defineProperty(drop, "dataTransfer", { value: { items: [], files } });
      document.querySelector(".browser").dispatchEvent(drop);
      requestAnimationFrame((now) => { last = now; look(now); });
    }, LONG);
    await page.locator(".uploads h2", { hasText: `of ${LONG.toLocaleString("en")}` }).waitFor();
    const nodes = await page.evaluate(() => document.querySelectorAll(".uploads *").length);
    assert.ok(nodes < 150, `${nodes} nodes`);
    await page.waitForTimeout(2_000);
    const slowest = await page.evaluate(() => window.slowest);
    assert.ok(slowest < 500, `a frame took ${slowest} ms`);
    assert.match(await page.title(), /^\d+ % · /);
    assert.match(await page.locator(".uploads header p").textContent(), /\/s, .* left/);
    await shot(page, "upload-queue");
    await page.getByRole("button", { name: "Cancel or close" }).click();
    await page.locator(".note", { hasText: "cancelled" }).waitFor();
    const before = (await keys("photos", "queue/")).length;
    await page.waitForTimeout(300);
    assert.equal((await keys("photos", "queue/")).length, before, "it goes on after it was cancelled");
    await close(page);
    return `${nodes} nodes, slowest frame ${Math.round(slowest)} ms`;
  },

  async "a large file is paused, and goes on where it was after the page was loaded again"() {
    const bytes = Buffer.alloc(LARGE_BYTES, "large ");
    const path = join(folder("large"), "film.bin");
    writeFileSync(path, bytes);
    const page = await open("/-/files/photos/large/");
    await page.getByRole("heading", { name: "Nothing in here yet" }).waitFor();
    const client = await page.context().newCDPSession(page);
    await client.send("Network.enable");
    const throttle = (uploadThroughput) => client.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput });
    await throttle(8_000_000);
    await choose(page, [path]);
    await page.waitForFunction(() => Number.parseInt(document.querySelector(".item .how")?.textContent, 10) >= 20);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.locator(".uploads header p", { hasText: "Paused" }).waitFor();
    await page.reload();
    await page.getByText("1 upload was cut off: film.bin").waitFor();
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

  async "a name that is taken is kept, replaced or skipped, as was chosen once for all"() {
    const path = join(folder("taken"), "a.txt");
    writeFileSync(path, "new");
    await store("photos", "taken/a.txt", "old");
    const page = await open("/-/files/photos/taken/");
    await waitForRows(page, 1);
    const text = async (key) => (await api("GET", `/photos/${key}`, undefined, { "Cache-Control": "no-cache" })).text();
    await choose(page, [path]);
    await done(page, "1 file uploaded");
    assert.deepEqual(await keys("photos", "taken/"), ["taken/a (1).txt", "taken/a.txt"]);
    await waitForRows(page, 2);
    await page.getByLabel("When a name is taken").selectOption("skip");
    await choose(page, [path]);
    await page.locator(".item[data-state=skipped]").waitFor();
    assert.equal(await text("taken/a.txt"), "old");
    await page.getByLabel("When a name is taken").selectOption("overwrite");
    await choose(page, [path]);
    await page.locator(".item[data-state=done]").waitFor();
    assert.equal(await text("taken/a.txt"), "new");
    assert.equal((await keys("photos", "taken/")).length, 2);
    await close(page);
  },

  async "what failed is tried again, at once or when the server says so"() {
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
    await page.locator(".reason", { hasText: "The bucket takes no text/plain. The bucket takes no files of this type" }).waitFor();
    await shot(page, "upload-failed");
    await page.getByRole("button", { name: "Try again what failed" }).click();
    await done(page, "1 file uploaded");
    assert.equal(tries, 4);
    await close(page);
  },

  async "uploads wait while nobody is signed in, and go on afterwards"() {
    const path = join(folder("waiting"), "a.txt");
    writeFileSync(path, "a");
    const page = await open("/-/files/photos/waiting/");
    await page.getByRole("heading", { name: "Nothing in here yet" }).waitFor();
    let tries = 0;
    await page.route("**/photos/waiting/", (route) => {
      if (route.request().method() !== "POST") return route.continue();
      tries += 1;
      if (tries > 1) return route.continue();
      return route.fulfill({ status: 401, json: { success: false, code: "missing_api_key", error: "An API key is required" } });
    });
    await choose(page, [path]);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByLabel("Name").fill("ann");
    await page.getByLabel("Password").fill("right");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Go on" }).click();
    await done(page, "1 file uploaded");
    assert.deepEqual(await keys("photos", "waiting/"), ["waiting/a.txt"]);
    await close(page);
  },
};
