// Shared links in the dashboard: copying, changing, ending and reopening them, and the maximum lifetime of the server.

import assert from "node:assert/strict";
import { base, close, waitForRows, withClipboard } from "./driver.mjs";
import { ask, fillBucket, openAs, until } from "./operator.mjs";

const DAY_MS = 86_400_000;
const dialog = (page) => page.getByRole("dialog");
const note = (page, text) => page.locator(".note", { hasText: text });
const row = (page, name) => page.getByRole("row", { name: new RegExp(name) });
const linksOf = async (bucket) => (await ask("GET", `/api/buckets/${bucket}/links`)).links;

/** Chooses "Copy link" of a row, and returns the copied text. */
async function copied(page, name) {
  await page.evaluate(() => navigator.clipboard.writeText("nothing"));
  await row(page, name).click({ button: "right" });
  await page.getByRole("menuitem", { name: /Copy link/ }).click();
  return until(async () => {
    const text = await page.evaluate(() => navigator.clipboard.readText());
    return text !== "nothing" && text;
  }, "a link is copied");
}

export const tests = {
  copy_link_in_a_private_bucket_reuses_a_plain_link: () => withClipboard(async () => {
    await fillBucket("copied", ["a.txt", "b.txt", "sub/c.txt"], { access: "private" });
    const page = await openAs("/-/files/copied/");
    await waitForRows(page, 3);
    const first = await copied(page, "a\\.txt");
    assert.match(first, /\/-\/s\/[a-z0-9]{26}$/);
    await note(page, /^Link copied\. Works until \d+ \w+ \d{4}\./).first().waitFor();
    assert.equal((await fetch(base + new URL(first).pathname)).status, 200);
    const [made] = await linksOf("copied");
    assert.deepEqual([made.paths, made.hasPassword, made.downloadsMax], [["a.txt"], false, null]);
    assert.ok(Math.abs(Date.parse(made.expiresAt) - Date.now() - 7 * DAY_MS) < 60_000, made.expiresAt);
    assert.equal(await copied(page, "a\\.txt"), first);
    // A folder has a link of its own, of exactly this path.
    const folder = await copied(page, "sub");
    assert.notEqual(folder, first);
    assert.equal(await copied(page, "sub"), folder);
    assert.deepEqual((await linksOf("copied")).map((it) => it.paths[0]).sort(), ["a.txt", "sub/"]);
    // A link with a password, one about to expire, and one of another maximum are not handed out again.
    for (const change of [{ password: "tern-42" }, { password: null, expiresIn: DAY_MS / 1000 - 60 }, { expiresIn: null }, { expiresIn: 7 * DAY_MS / 1000, downloadsMax: 3 }]) {
      await ask("PATCH", `/api/links/${made.id}`, change);
      const other = await copied(page, "a\\.txt");
      assert.notEqual(other, first, JSON.stringify(change));
      const { id } = (await linksOf("copied")).find((it) => it.url === other);
      await ask("DELETE", `/api/links/${id}`);
    }
    await ask("PATCH", `/api/links/${made.id}`, { downloadsMax: null });
    assert.equal(await copied(page, "a\\.txt"), first);
    await note(page, "Link copied").last().getByRole("button", { name: "Change" }).click();
    await dialog(page).getByRole("heading", { name: "Edit a.txt" }).waitFor();
    await dialog(page).getByLabel("Title").fill("Changed");
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await note(page, "Link changed").waitFor();
    assert.equal((await linksOf("copied")).find((it) => it.id === made.id).title, "Changed");
    // Several files have no link of their own; the preview copies like the menu.
    await row(page, "a\\.txt").click({ position: { x: 400, y: 15 } });
    await row(page, "b\\.txt").click({ position: { x: 400, y: 15 }, modifiers: ["Control"] });
    await page.getByRole("toolbar").getByText("2 selected").waitFor();
    assert.equal(await page.getByRole("toolbar").getByRole("button", { name: /Copy link/ }).count(), 0);
    await page.keyboard.press("Escape");
    await page.goto("/-/files/copied/b.txt");
    await page.locator("dialog.preview").waitFor();
    await until(() => page.evaluate(() => document.querySelector("dialog.preview") !== null), "the preview is open");
    await page.evaluate(() => navigator.clipboard.writeText("nothing"));
    await page.getByRole("button", { name: "Copy link (c)" }).click();
    // Pages of other tests copy the links that they create.
    await until(async () => {
      const text = await page.evaluate(() => navigator.clipboard.readText());
      return (await linksOf("copied")).some((it) => it.paths[0] === "b.txt" && it.url === text);
    }, "the preview copies the shared link of b.txt");
    await close(page);
  }),

  async ended_link_is_reopened_by_undo() {
    await fillBucket("undone", ["a.txt"], { access: "private" });
    const { link } = await ask("POST", "/api/buckets/undone/links", { paths: ["a.txt"], title: "Summer" });
    const path = base + new URL(link.url).pathname;
    assert.equal((await fetch(path)).status, 200);
    const page = await openAs("/-/links/undone/");
    const found = row(page, "Summer");
    assert.equal(await found.getByRole("cell").nth(5).textContent(), "1", "one view");
    await found.getByText("just now").waitFor();
    await found.getByRole("button", { name: "End" }).click();
    await dialog(page).getByRole("button", { name: "End link" }).click();
    await found.getByText("Ended").waitFor();
    assert.equal((await fetch(path)).status, 410);
    await note(page, "Link ended.").getByRole("button", { name: "Undo" }).click();
    await found.getByText("Active").waitFor();
    assert.equal((await fetch(path)).status, 200);
    await close(page);
  },

  async link_lifetimes_above_the_maximum_of_the_server_are_disabled() {
    await fillBucket("capped", ["a.txt"], { access: "private" });
    const page = await openAs("/-/files/capped/");
    await page.route("**/api/buckets/capped/links?*", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), daysMax: 3 } });
    });
    await waitForRows(page, 1);
    await row(page, "a\\.txt").click({ button: "right" });
    await page.getByRole("menuitem", { name: "Share…" }).click();
    const choice = dialog(page).getByLabel("Expires");
    await dialog(page).getByText("This server allows links for up to 3 days.").waitFor();
    const options = await choice.locator("option").evaluateAll((all) => all.map((it) => [it.textContent, it.disabled]));
    assert.deepEqual(options, [["1 hour", false], ["1 day", false], ["3 days", false], ["7 days", true], ["30 days", true], ["Never", true]]);
    assert.equal(await choice.inputValue(), String(3 * 86_400));
    await dialog(page).getByRole("button", { name: "Create link" }).click();
    await dialog(page).getByText(/^Works until/).waitFor();
    const [link] = await linksOf("capped");
    assert.ok(Math.abs(Date.parse(link.expiresAt) - Date.now() - 3 * DAY_MS) < 60_000, link.expiresAt);
    await close(page);
  },
};
