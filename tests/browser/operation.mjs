// Usage over time, the audit log, the store on its disk, and files that the server fetches itself.

import assert from "node:assert/strict";
import { close, open, store } from "./driver.mjs";
import { fillBucket, openAs } from "./operator.mjs";
import { history, tell } from "./told.mjs";
import { lastOf, sumOf } from "../../server/assets/dashboard/series.mjs";

const dialog = (page) => page.getByRole("dialog");

export const tests = {
  async "usage is drawn over time, read by keys and as a table, and every choice is an address"() {
    await fillBucket("desk");
    const page = await openAs("about:blank");
    await tell(page);
    const asked = [];
    page.on("request", (request) => { if (request.url().includes("/usage/history")) asked.push(new URL(request.url()).searchParams); });
    await page.goto("/-/usage");
    const { points } = history(new URL("http://x/?step=hour"));
    const requests = page.locator(".plot", { has: page.getByRole("heading", { name: "Requests" }) });
    await requests.getByText(`${sumOf(points, "requests").toLocaleString("en")} in all`).waitFor();
    assert.deepEqual([asked[0].get("step"), asked[0].has("bucketName")], ["hour", false]);
    const slider = requests.getByRole("slider");
    await slider.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowLeft");
    await requests.locator("output", { hasText: `: ${points.at(-2).requests.toLocaleString("en")}` }).waitFor();
    assert.match(await slider.getAttribute("aria-valuetext"), new RegExp(`: ${points.at(-2).requests.toLocaleString("en")}$`));
    await requests.getByText("As a table").click();
    assert.equal(await requests.getByRole("row").count(), points.length + 1);
    const stored = page.locator(".plot", { has: page.getByRole("heading", { name: "Stored" }) });
    // What was not counted is a gap, and no zero.
    assert.equal(lastOf(points.slice(0, 3), "storedBytes"), null);
    const [, left] = /^M([\d.]+) /.exec(await stored.locator("path.line").getAttribute("d"));
    assert.equal(Number(left), 3);
    await page.getByLabel("Period").selectOption("month");
    await page.waitForURL((url) => url.pathname + url.search === "/-/usage?over=month");
    await page.getByLabel("Bucket", { exact: true }).selectOption("desk");
    await page.waitForURL((url) => url.pathname + url.search === "/-/usage/desk?over=month");
    await page.getByRole("heading", { name: "Usage of desk" }).waitFor();
    await page.locator(".plot").first().waitFor();
    assert.deepEqual([asked.at(-1).get("step"), asked.at(-1).get("bucketName")], ["day", "desk"]);
    await page.goBack();
    await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
    assert.equal(await page.getByLabel("Period").inputValue(), "month");
    await page.getByRole("table", { name: "What buckets hold" }).getByRole("link", { name: "desk" }).waitFor();
    await page.getByRole("link", { name: "All buckets", exact: true }).click();
    await page.locator(".concern", { hasText: "1 damaged place in the store" }).waitFor();
    await page.getByRole("link", { name: "Usage of the last day" }).click();
    await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
    await close(page);
  },

  async "the audit log is held to what one looks for, by addresses"() {
    const page = await openAs("about:blank");
    await tell(page);
    await page.goto("/-/audit");
    await page.getByRole("row", { name: /session\.refused.*203\.0\.113\.9/ }).waitFor();
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByRole("row", { name: /bucket\.create/ }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
    await page.getByLabel("About").selectOption("key.");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL((url) => url.pathname + url.search === "/-/audit?action=key.");
    await page.getByRole("row", { name: /bucket\.change/ }).waitFor({ state: "detached" });
    await page.getByRole("row", { name: /key\.create/ }).waitFor();
    assert.equal(await page.getByRole("row").count(), 3);
    await page.getByRole("main").getByRole("link", { name: /^olga/ }).first().click();
    await page.waitForURL((url) => url.pathname + url.search === "/-/audit?action=key.&actor=acc_olga");
    await page.reload();
    assert.equal(await page.getByLabel("By (id)").inputValue(), "acc_olga");
    await page.getByRole("row", { name: /key\.create/ }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    await dialog(page).getByRole("link", { name: "how programs connect" }).click();
    await page.getByRole("heading", { name: "Connect" }).waitFor();
    await close(page);
  },

  async "the store tells its damage and what to do, and is verified by a button"() {
    const told = await openAs("about:blank");
    await tell(told);
    await told.goto("/-/storage");
    await told.getByRole("row", { name: /desk\/2026\/letter\.txt.*Bring the file back from a backup/ }).waitFor();
    await told.getByText("It would free 1.10 GB, by copying 900 MB out of 2 segments.").waitFor();
    await told.getByText("long ago").waitFor();
    let asked = null;
    await told.route("**/api/jobs", (route) => {
      asked = route.request().postDataJSON();
      return route.fulfill({ status: 202, json: { success: true, job: { id: "j" } } });
    });
    await told.getByRole("button", { name: "Compact now" }).click();
    await told.locator(".note", { hasText: "Space is being given back" }).waitFor();
    assert.deepEqual(asked, { kind: "compact" });
    await close(told);

    const page = await openAs("/-/storage");
    await page.getByText("It takes writes.").waitFor();
    await page.getByRole("button", { name: "Verify now" }).click();
    await page.getByRole("row", { name: /Verify everything.*done/ }).waitFor();
    await close(page);
  },

  async "addresses are imported by a job, and what was not fetched is told"() {
    await store("photos", "imported/here.txt", "here");
    const page = await open("/-/files/photos/imported/");
    let asked = null;
    let looks = 0;
    await page.route("**/api/jobs", (route) => {
      asked = route.request().postDataJSON();
      return route.fulfill({ status: 202, json: { success: true, job: { id: "i1", state: "waiting", done: 0, total: 2 } } });
    });
    await page.route("**/api/jobs/i1", async (route) => {
      looks += 1;
      if (looks === 2) await store("photos", "imported/cat.jpg", "cat");
      return route.fulfill({ json: { success: true, job: { id: "i1", state: looks > 1 ? "done" : "running", done: 2, total: 2, failures: [{ url: "https://example.com/<b>", error: "404 there" }] } } });
    });
    await page.locator(".row", { hasText: "here.txt" }).waitFor();
    await page.keyboard.press(".");
    await dialog(page).getByRole("button", { name: /^Import from addresses/ }).click();
    assert.equal(await dialog(page).getByLabel("Into the folder").inputValue(), "imported/");
    await dialog(page).getByLabel("Addresses").fill("not an address");
    await dialog(page).getByRole("button", { name: "Import", exact: true }).click();
    await page.locator(".problem", { hasText: "“not an address” is no address" }).waitFor();
    await dialog(page).getByLabel("Addresses").fill("https://example.com/cat.jpg\n\nhttps://example.com/<b>\n");
    await dialog(page).getByLabel("When a name is taken").selectOption("replace");
    await dialog(page).getByRole("button", { name: "Import", exact: true }).click();
    await dialog(page).getByRole("row", { name: /https:\/\/example\.com\/<b>.*404 there/ }).waitFor();
    await page.getByRole("heading", { name: "1 file imported, 1 address not" }).waitFor();
    assert.deepEqual(asked, { kind: "importUrls", bucketName: "photos", prefix: "imported/", urls: ["https://example.com/cat.jpg", "https://example.com/<b>"], onConflict: "replace" });
    await page.keyboard.press("Escape");
    await page.locator(".row", { hasText: "cat.jpg" }).waitFor();
    await close(page);
  },
};
