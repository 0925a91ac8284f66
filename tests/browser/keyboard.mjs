// All functions with the keyboard alone.

import assert from "node:assert/strict";
import { close, focused, open, shot, store, waitForRows } from "./driver.mjs";

export const tests = {
  async keyboard_navigates_buckets_folders_files_and_selection() {
    for (const name of ["keys/a/one.txt", "keys/b.txt", "keys/c.txt", "keys/d.txt"]) await store("photos", name, name);
    const page = await open("/-/");
    await page.locator(".card", { hasText: "photos" }).waitFor();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "New bucket");
    await page.goto("/-/files/photos/keys/");
    await waitForRows(page, 4);
    await focused(page, "a");
    await page.keyboard.press("Enter");
    await focused(page, "one.txt");
    await page.keyboard.press("Backspace");
    await focused(page, "a");
    await page.keyboard.press("ArrowDown");
    await focused(page, "b.txt");
    await page.keyboard.press("Shift+ArrowDown");
    await page.getByRole("toolbar").getByText("2 selected").waitFor();
    assert.equal(await page.locator(".row[aria-selected=true]").count(), 2);
    await page.keyboard.press("ArrowDown");
    await focused(page, "d.txt");
    await page.keyboard.press(" ");
    await page.getByRole("toolbar").getByText("3 selected").waitFor();
    await page.keyboard.press("Control+a");
    await page.getByRole("toolbar").getByText("4 selected").waitFor();
    await page.keyboard.press("Escape");
    await page.locator(".selection-bar").waitFor({ state: "hidden" });
    await page.locator(".row:focus").waitFor();
    await page.keyboard.press("g");
    await page.locator(".tile:focus").waitFor();
    await focused(page, "d.txt", ".tile");
    await page.keyboard.press("ArrowLeft");
    await focused(page, "c.txt", ".tile");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "c.txt" }).waitFor();
    // Right after the other key: the preview is not closed yet.
    await page.keyboard.press("Escape");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "c.txt" }).waitFor();
    await page.locator("dialog.preview pre", { hasText: "keys/c.txt" }).waitFor();
    assert.ok(page.url().includes("c.txt"), page.url());
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await focused(page, "c.txt");
    await page.locator("dialog.preview").waitFor({ state: "detached" });
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
    await shot(page, "help");
    await page.keyboard.press("Escape");
    await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor({ state: "detached" });
    await focused(page, "c.txt");
    await page.keyboard.press("n");
    await page.getByRole("dialog").getByLabel("Name").fill("new one");
    await page.keyboard.press("Enter");
    await page.waitForURL(/keys\/new%20one\/$/);
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    await page.goBack();
    await waitForRows(page, 4);
    await close(page);
  },

  async focus_follows_its_row_through_scrolling_and_redraw() {
    const page = await open("/-/files/many/");
    await focused(page, "file-000000.txt");
    await page.keyboard.press("PageDown");
    await page.locator(".row:focus .name").waitFor();
    const name = await page.locator(".row:focus .name").textContent();
    assert.notEqual(name, "file-000000.txt");
    // Scrolled far away: the rows there are rendered, and the focused one still exists.
    await page.evaluate(() => { document.querySelector(".scroller").scrollTop = 1_000_000; });
    await page.waitForFunction(() => [...document.querySelectorAll(".row")].some((row) => Number(row.dataset.index) > 10_000));
    await focused(page, name);
    // Reloaded in the background, to its end.
    const end = page.waitForResponse(async (answer) => answer.url().includes("list-objects") && (await answer.json().catch(() => null))?.IsTruncated === false);
    await page.keyboard.press("r");
    await end;
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    await focused(page, name);
    await page.keyboard.press("ArrowDown");
    const next = await page.locator(".row:focus .name").textContent();
    assert.ok(next > name, `${next} behind ${name}`);
    await close(page);
  },
};
