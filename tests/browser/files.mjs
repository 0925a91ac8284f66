// The list of files: long ones, their order, filter and search, what is chosen, and what is done with it.

import assert from "node:assert/strict";
import { close, keys, open, options, rows, shot, store, waitForRows } from "./driver.mjs";

/** Nodes of the list, and how long a frame may take: product 4.3, U1. */
const NODES_MAX = 150;
const FRAME_MS_MAX = 50;
/** Frames are late on a busy machine for reasons that are not the page's. */
const FRAMES_LATE_MAX = 2;

/** Scrolls through the list for some time, and tells how long frames took. */
const scrolled = (page) => page.evaluate(async () => {
  const scroller = document.querySelector(".browser .scroller");
  const frames = [];
  let most = 0;
  let last = performance.now();
  for (let step = 0; step < 90; step += 1) {
    scroller.scrollTop += step % 10 === 9 ? 150_000 : 400;
    await new Promise((done) => requestAnimationFrame(done));
    const now = performance.now();
    frames.push(now - last);
    last = now;
    most = Math.max(most, document.querySelectorAll(".browser .viewport *").length);
  }
  return { frames: frames.sort((one, other) => other - one), most };
});

async function filled(bucket, names) {
  await Promise.all(names.map((name) => store(bucket, name, `${name}\n`)));
}

export const tests = {
  async "a hundred thousand files are shown at once and scrolled smoothly"() {
    const page = await open("/-/files/many/");
    await page.locator(".row .name", { hasText: "file-000000.txt" }).waitFor();
    // The bar is as long as the list, before all of it is there.
    await waitForRows(page, options.many);
    await page.waitForFunction((many) => document.querySelector(".status").textContent.startsWith(`${many.toLocaleString("en")} entries, `) &&
      !document.querySelector(".status").textContent.includes("so far"), options.many);
    const { frames, most } = await scrolled(page);
    assert.ok(most <= NODES_MAX, `${most} nodes`);
    const late = frames.filter((ms) => ms > FRAME_MS_MAX);
    assert.ok(late.length <= FRAMES_LATE_MAX, `late frames: ${late}`);
    await page.locator(".row").first().click({ position: { x: 300, y: 10 } });
    await page.keyboard.press("End");
    await page.locator(".row:focus .name", { hasText: `file-0${options.many - 1}` }).waitFor();
    await page.keyboard.press("Home");
    await page.locator(".row:focus .name", { hasText: "file-000000.txt" }).waitFor();
    // With Shift, for the letter does something else.
    for (const letter of "File-0777") await page.keyboard.press(letter);
    await page.locator(".row:focus .name", { hasText: "file-077700.txt" }).waitFor();
    await close(page);
    return `${most} nodes, slowest frames ${frames.slice(0, 3).map((ms) => Math.round(ms)).join(", ")} ms`;
  },

  async "tiles of a long folder are as few"() {
    const page = await open("/-/files/many/?view=tiles");
    await page.locator(".tile .name", { hasText: "file-000000.txt" }).waitFor();
    const { most } = await scrolled(page);
    assert.ok(most <= NODES_MAX, `${most} nodes`);
    await close(page);
    return `${most} nodes`;
  },

  async "an order and a filter stand in the address and hold after loading again"() {
    await filled("photos", ["ordered/a.txt", "ordered/long name b.txt", "ordered/c.txt", "ordered/sub/x.txt"]);
    const page = await open("/-/files/photos/ordered/");
    await waitForRows(page, 4);
    assert.deepEqual(await rows(page), ["sub", "a.txt", "c.txt", "long name b.txt"]);
    await page.getByRole("columnheader", { name: "Size" }).getByRole("button").click();
    await page.getByRole("columnheader", { name: "Size" }).getByRole("button").click();
    await page.waitForURL(/sort=-size/);
    assert.deepEqual((await rows(page))[1], "long name b.txt");
    await page.keyboard.press("Control+f");
    await page.keyboard.type("txt");
    await waitForRows(page, 3);
    await page.waitForURL(/filter=txt/);
    await page.reload();
    await waitForRows(page, 3);
    assert.deepEqual((await rows(page))[0], "long name b.txt");
    await close(page);
  },

  async "a search follows what is typed, marks what matches, and is an address"() {
    await filled("photos", ["found/beach/sunny day.txt", "found/beach day.txt", "found/other.txt"]);
    const page = await open("/-/files/photos/found/");
    await waitForRows(page, 3);
    await page.keyboard.press("/");
    await page.keyboard.type("beach", { delay: 20 });
    await page.waitForURL(/\/-\/search\/photos\?q=beach&parent=found/);
    await page.locator(".row mark", { hasText: "beach" }).first().waitFor();
    const found = await rows(page);
    assert.deepEqual(found.map((it) => it.trim()).slice(0, 2), ["beach", "beach day.txt"]);
    assert.equal(await page.evaluate(() => document.activeElement.type), "search");
    await page.keyboard.press("ArrowDown");
    await page.locator(".row:focus").waitFor();
    await shot(page, "search");
    await page.reload();
    await page.locator(".row mark").first().waitFor();
    await page.getByRole("button", { name: "only in found/" }).click();
    await page.waitForURL((url) => url.search === "?q=beach");
    await page.keyboard.press("/");
    await page.keyboard.press("Control+a");
    await page.keyboard.type("nothing is called so");
    await page.getByText("Nothing is called like").waitFor();
    await page.keyboard.press("Escape");
    await page.waitForURL(/\/-\/files\/photos\//);
    await close(page);
  },

  async "what is deleted is back after undo"() {
    await filled("photos", ["gone/a.txt", "gone/b.txt", "gone/c.txt"]);
    const page = await open("/-/files/photos/gone/");
    await page.route("**/api/buckets/photos/undelete", async (route) => {
      const { path } = route.request().postDataJSON();
      await store("photos", path, "again\n");
      await route.fulfill({ json: { success: true, path, url: "" } });
    });
    await waitForRows(page, 3);
    await page.locator(".row", { hasText: "a.txt" }).locator(".tick").click();
    await page.locator(".row", { hasText: "b.txt" }).locator(".tick").click();
    await page.waitForURL(/selected=a.txt&selected=b.txt/);
    await page.getByRole("toolbar").getByText("2 chosen").waitFor();
    await shot(page, "files-chosen");
    await page.keyboard.press("Delete");
    await waitForRows(page, 1);
    assert.deepEqual(await keys("photos", "gone/"), ["gone/c.txt"]);
    await page.locator(".note", { hasText: "2 entries deleted" }).getByRole("button", { name: "Undo" }).click();
    await waitForRows(page, 3);
    await close(page);
  },

  async "a folder is deleted by a job that tells how far it is"() {
    await filled("photos", ["whole/sub/a.txt", "whole/b.txt"]);
    const page = await open("/-/files/photos/whole/");
    let asked = null;
    let looks = 0;
    await page.route("**/api/jobs", (route) => {
      asked = route.request().postDataJSON();
      return route.fulfill({ status: 202, json: { success: true, job: { id: "j1", state: "waiting", done: 0 } } });
    });
    await page.route("**/api/jobs/j1", (route) => {
      looks += 1;
      return route.fulfill({ json: { success: true, job: { id: "j1", state: looks > 2 ? "done" : "running", done: looks, total: 3 } } });
    });
    await waitForRows(page, 2);
    await page.locator(".row", { hasText: "sub" }).locator(".tick").click();
    await page.keyboard.press("Delete");
    await page.locator(".note", { hasText: "“sub” deleted." }).waitFor();
    assert.deepEqual(asked, { kind: "deleteFolder", bucketName: "photos", prefix: "whole/sub/" });
    assert.deepEqual(await rows(page), ["b.txt"]);
    await close(page);
  },

  async "a name that is taken is refused where it is typed"() {
    await filled("photos", ["named/a.txt", "named/b.txt"]);
    const page = await open("/-/files/photos/named/");
    const asked = [];
    await page.route("**/api/buckets/photos/move", (route) => {
      const body = route.request().postDataJSON();
      asked.push(body);
      if (body.to === "named/b.txt") return route.fulfill({ status: 409, json: { success: false, code: "already_exists", error: "Something has this name" } });
      return route.fulfill({ json: { success: true, path: body.to, url: "" } });
    });
    await waitForRows(page, 2);
    await page.locator(".row", { hasText: "a.txt" }).click({ position: { x: 400, y: 10 } });
    await page.keyboard.press("F2");
    const input = page.getByRole("dialog").getByLabel("Name");
    assert.deepEqual(await input.evaluate((it) => [it.selectionStart, it.selectionEnd]), [0, 1]);
    await input.fill("b.txt");
    await page.keyboard.press("Enter");
    await page.locator(".problem", { hasText: "Something has this name. Choose another name." }).waitFor();
    await input.fill("z.txt");
    await page.keyboard.press("Enter");
    await page.locator(".note", { hasText: "Renamed to “z.txt”." }).waitFor();
    assert.deepEqual(asked.at(-1), { from: "named/a.txt", to: "named/z.txt", onConflict: "refuse" });
    await close(page);
  },

  async "links are copied in all their forms"() {
    await filled("photos", ["linked/a (1).txt"]);
    const page = await open("/-/files/photos/linked/");
    await waitForRows(page, 1);
    await page.keyboard.press("c");
    await page.getByText("1 link copied").first().waitFor();
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    assert.ok((await clipboard()).endsWith("/photos/linked/a%20(1).txt"), await clipboard());
    await page.keyboard.press("f");
    await page.locator(".forms li", { hasText: "Markdown" }).getByRole("button").click();
    await page.getByText("Markdown copied").first().waitFor();
    assert.match(await clipboard(), /^\[a \(1\)\.txt\]\(http.*\/a%20%281%29\.txt\)$/);
    await close(page);
  },

  async "a refusal says what to do"() {
    const page = await open("/-/files/not-there/");
    await page.getByRole("alert").filter({ hasText: "It may have been deleted or renamed" }).waitFor();
    await filled("photos", ["refused/a.txt"]);
    await page.route("**/photos/refused/*.txt", (route) => route.fulfill({ status: 403, json: { success: false, code: "forbidden", error: "The key lacks the scope delete" } }));
    await page.goto("/-/files/photos/refused/");
    await page.locator(".row").first().click({ position: { x: 400, y: 10 } });
    await page.keyboard.press("Delete");
    await page.locator(".note.bad", { hasText: "Ask whoever owns the bucket" }).waitFor();
    await close(page);
  },
};
