// Deleting, moving and renaming, and undo of each: by the server, jobs too.

import assert from "node:assert/strict";
import { api, close, keys, open, shot, shows, store, waitForRows } from "./driver.mjs";

const text = async (name) => (await api("GET", `/photos/${name}`, undefined, { "Cache-Control": "no-cache" })).text();

/** Stores a file for each of these names, with the name as its content. */
async function filled(names) {
  await Promise.all(names.map((name) => store("photos", name, `${name}\n`)));
}

async function areWhole(names) {
  for (const name of names) assert.equal(await text(name), `${name}\n`);
}

/** Adds an entry to the selection. */
async function tick(page, name) {
  const row = page.locator(".row").filter({ has: page.locator(".name").getByText(name, { exact: true }) });
  await row.locator(".tick").click();
  await page.locator(".row[aria-selected=true] .name").getByText(name, { exact: true }).waitFor();
}

const note = (page, words) => page.locator(".note", { hasText: words });
const undo = (page, words) => note(page, words).getByRole("button", { name: "Undo" }).click();

export const tests = {
  async undo_restores_deleted_files() {
    const names = ["gone/a.txt", "gone/b.txt", "gone/c.txt"];
    await filled(names);
    const page = await open("/-/files/photos/gone/");
    await waitForRows(page, 3);
    await tick(page, "a.txt");
    await tick(page, "b.txt");
    await page.waitForURL(/selected=a.txt&selected=b.txt/);
    await page.getByRole("toolbar").getByText("2 selected").waitFor();
    await shot(page, "files-chosen");
    await page.keyboard.press("Delete");
    await waitForRows(page, 1);
    await note(page, "2 items deleted").waitFor();
    assert.deepEqual(await keys("photos", "gone/"), ["gone/c.txt"]);
    await undo(page, "2 items deleted");
    await note(page, "2 items restored").waitFor();
    await waitForRows(page, 3);
    await areWhole(names);
    await close(page);
  },

  async delete_in_preview_shows_next_file_and_undo_restores_it() {
    const names = ["shown/a.txt", "shown/b.txt"];
    await filled(names);
    const page = await open("/-/files/photos/shown/a.txt");
    await page.locator("dialog.preview pre", { hasText: "shown/a.txt" }).waitFor();
    await page.locator("dialog.preview .next").waitFor();
    await page.keyboard.press("Delete");
    await page.locator("dialog.preview pre", { hasText: "shown/b.txt" }).waitFor();
    await note(page, "“a.txt” deleted").waitFor({ state: "attached" });
    await page.keyboard.press("Escape");
    await page.locator("dialog.preview").waitFor({ state: "detached" });
    await shows(page, ["b.txt"]);
    await undo(page, "“a.txt” deleted");
    await shows(page, ["a.txt", "b.txt"]);
    await areWhole(names);
    await close(page);
  },

  async undo_restores_deleted_folder_with_its_content() {
    const names = Array.from({ length: 120 }, (_, number) => `whole/sub/${number % 3}/${number}.txt`);
    await filled([...names, "whole/stays.txt"]);
    const page = await open("/-/files/photos/whole/");
    await waitForRows(page, 2);
    const asked = page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/api/jobs"));
    await tick(page, "sub");
    await page.keyboard.press("Delete");
    assert.deepEqual((await asked).postDataJSON(), { kind: "deleteFolder", bucketName: "photos", prefix: "whole/sub/" });
    await note(page, "“sub” deleted").waitFor();
    await shows(page, ["stays.txt"]);
    assert.deepEqual(await keys("photos", "whole/"), ["whole/stays.txt"]);
    await undo(page, "“sub” deleted");
    await note(page, "“sub” restored").waitFor();
    await shows(page, ["sub", "stays.txt"]);
    assert.deepEqual(await keys("photos", "whole/sub/"), [...names].sort());
    await areWhole(names.slice(0, 10));
    await close(page);
  },

  async rename_conflict_is_rejected_in_place_and_rename_is_undone() {
    await filled(["named/a.txt", "named/b.txt"]);
    const page = await open("/-/files/photos/named/");
    await waitForRows(page, 2);
    await page.locator(".row", { hasText: "a.txt" }).click({ position: { x: 400, y: 10 } });
    await page.getByRole("toolbar").getByText("1 selected").waitFor();
    await page.keyboard.press("F2");
    const input = page.getByRole("dialog").getByLabel("Name");
    await input.waitFor();
    assert.deepEqual(await input.evaluate((it) => [it.selectionStart, it.selectionEnd]), [0, 1]);
    await input.fill("b.txt");
    await page.keyboard.press("Enter");
    await page.locator(".problem", { hasText: "Choose another name." }).waitFor();
    assert.equal(await text("named/b.txt"), "named/b.txt\n");
    await input.fill("z.txt");
    await page.keyboard.press("Enter");
    await note(page, "Renamed to “z.txt”.").waitFor();
    await page.locator(".row .name", { hasText: "z.txt" }).waitFor();
    assert.deepEqual(await keys("photos", "named/"), ["named/b.txt", "named/z.txt"]);
    assert.equal(await text("named/z.txt"), "named/a.txt\n");
    await undo(page, "Renamed to “z.txt”.");
    await page.locator(".row .name", { hasText: "a.txt" }).waitFor();
    assert.deepEqual(await keys("photos", "named/"), ["named/a.txt", "named/b.txt"]);
    await close(page);
  },

  async files_and_folders_are_moved_together_and_undone() {
    const names = ["moved/sub/deep/x.txt", "moved/sub/y.txt", "moved/z.txt"];
    await filled(names);
    const page = await open("/-/files/photos/moved/");
    await waitForRows(page, 2);
    await page.keyboard.press("Control+a");
    await page.getByRole("toolbar").getByText("2 selected").waitFor();
    await page.keyboard.press("m");
    await page.getByRole("dialog").getByLabel("Filter or path").fill("elsewhere/new");
    await page.keyboard.press("Enter");
    await note(page, "2 items moved to elsewhere/new/").waitFor();
    assert.deepEqual(await keys("photos", "elsewhere/new/"), names.map((name) => name.replace("moved/", "elsewhere/new/")));
    assert.deepEqual(await keys("photos", "moved/"), []);
    await undo(page, "2 items moved");
    await waitForRows(page, 2);
    assert.deepEqual(await keys("photos", "moved/"), names);
    await areWhole(names);
    await close(page);
  },
};
