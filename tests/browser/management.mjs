// Keys, links, settings, webhooks and deleted files: what is clicked, and what the server then has.

import assert from "node:assert/strict";
import { base, close } from "./driver.mjs";
import { fillBucket, openAs, until } from "./operator.mjs";
import { asOperator as ask } from "./sessions.mjs";

const form = (name) => {
  const body = new FormData();
  body.append("file", new File(["text\n"], name));
  return body;
};
const dialog = (page) => page.getByRole("dialog");
const note = (page, text) => page.locator(".note", { hasText: text });
const names = async (bucket) => (await ask("GET", `/api/list-objects?bucketName=${bucket}`)).Contents.map((it) => it.Key);

export const tests = {
  async "a key is made with limits, shown once, good for just that, and revoked"() {
    await fillBucket("keyed");
    const page = await openAs("/-/keys?new=keyed");
    await dialog(page).getByLabel("Name").fill("uploader");
    assert.equal(new URL(page.url()).search, "", "loading the page again would ask for another key");
    await dialog(page).getByLabel("Only in the folder").fill("inbox/");
    await dialog(page).getByLabel("Expires").selectOption("30");
    await dialog(page).getByLabel("upload").uncheck();
    await dialog(page).getByRole("button", { name: "Create" }).click();
    await page.locator(".problem", { hasText: "choose one at least" }).waitFor();
    await dialog(page).getByLabel("upload").check();
    await dialog(page).getByRole("button", { name: "Create" }).click();
    const key = await dialog(page).getByRole("group", { name: "API key" }).textContent();
    assert.match(key, /^trug_/);
    await dialog(page).locator("pre", { hasText: `KEY=${key}` }).waitFor();
    await dialog(page).getByRole("tab", { name: "Shell" }).focus();
    await page.keyboard.press("ArrowRight");
    await dialog(page).locator("pre", { hasText: `"Authorization": "Bearer ${key}"` }).waitFor();
    const saved = page.waitForEvent("download");
    await dialog(page).getByRole("button", { name: "Save the file" }).click();
    assert.equal((await saved).suggestedFilename(), "trug-keyed.sxcu");
    const upload = (folder) => fetch(`${base}/keyed/${folder}`, { method: "POST", headers: { Authorization: `Bearer ${key}` }, body: form("a.txt") });
    assert.deepEqual([(await upload("inbox/")).status, (await upload("other/")).status], [200, 403]);
    await dialog(page).getByRole("button", { name: "I have saved it" }).click();
    await dialog(page).waitFor({ state: "detached" });
    const row = page.getByRole("row", { name: /uploader/ });
    await row.getByText("keyed/inbox/").waitFor();
    assert.ok(!(await page.content()).includes(key), "the key is still on the page");
    await row.getByRole("button", { name: "Revoke uploader" }).click();
    await dialog(page).getByRole("button", { name: "Revoke it" }).click();
    await note(page, "opens nothing any more").waitFor();
    await row.waitFor({ state: "detached" });
    assert.equal((await upload("inbox/")).status, 401);
    await page.getByRole("button", { name: /^Show \d+ keys? that ended/ }).click();
    await page.getByRole("row", { name: /uploader.*revoked/ }).waitFor();
    await close(page);
  },

  async "a link lets somebody upload once, where and as it says"() {
    await fillBucket("linked", ["2026/cat.jpg"], { access: "private" });
    const page = await openAs("/-/links/linked/inbox/");
    const upload = page.locator("section", { has: page.getByRole("heading", { name: "To upload" }) });
    assert.equal(await upload.getByLabel("Where to").inputValue(), "inbox/");
    await upload.getByLabel("Give it a random name").check();
    await upload.getByRole("button", { name: "Make an upload link" }).click();
    const link = await upload.getByRole("group", { name: "Upload link" }).textContent();
    const first = await (await fetch(link, { method: "POST", body: form("a.txt") })).json();
    assert.match(first.key, /^inbox\/[0-9a-f-]{36}\.txt$/);
    assert.equal((await fetch(link, { method: "POST", body: form("b.txt") })).status, 410);
    const download = page.locator("section", { has: page.getByRole("heading", { name: "To download" }) });
    let asked = null;
    await page.route("**/api/buckets/linked/download-links", (route) => {
      asked = route.request().postDataJSON();
      return route.fulfill({ json: { success: true, url: "http://there.example/linked/2026/cat.jpg?signed", expiresAt: "2026-11-24T12:00:00.000Z" } });
    });
    await download.getByLabel("File").fill("/2026/cat.jpg");
    await download.getByLabel("Good for").selectOption("86400");
    await download.getByRole("button", { name: "Make a download link" }).click();
    await download.getByText("http://there.example/linked/2026/cat.jpg?signed").waitFor();
    assert.deepEqual(asked, { path: "2026/cat.jpg", expiresIn: 86_400 });
    await close(page);
  },

  async "settings are changed alone, and wrong ones are refused where they are typed"() {
    await fillBucket("tuned");
    const page = await openAs("/-/settings/tuned");
    await page.getByLabel("Quota", { exact: true }).fill("2 elephants");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".problem", { hasText: "such as 500 MB" }).waitFor();
    await page.getByLabel("Quota", { exact: true }).fill("1.5 GB");
    await page.getByLabel("Who may read its files").selectOption("private");
    await page.getByLabel("Types that it takes").fill("image/*\n\napplication/pdf");
    await page.getByLabel("Make thumbnails of pictures").check();
    const sent = page.waitForRequest((request) => request.method() === "PATCH");
    await page.getByRole("button", { name: "Save" }).click();
    assert.deepEqual((await sent).postDataJSON(), { access: "private", allowedTypes: ["image/*", "application/pdf"], quotaBytes: 1_500_000_000, thumbnails: true });
    await note(page, "Saved.").waitFor();
    const { bucket } = await ask("GET", "/api/buckets/tuned");
    assert.deepEqual([bucket.access, bucket.allowedTypes.toSorted(), bucket.quotaBytes, bucket.thumbnails], ["private", ["application/pdf", "image/*"], 1_500_000_000, true]);
    await page.getByText("0 B of 1.50 GB").waitFor();
    await page.getByLabel("Quota", { exact: true }).fill("");
    await page.getByLabel("Pages that may read its files").fill("not an origin");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".problem", { hasText: /origin/i }).waitFor();
    assert.equal((await ask("GET", "/api/buckets/tuned")).bucket.quotaBytes, 1_500_000_000, "half of it was saved");
    await close(page);
  },

  async "a bucket is emptied by a job and then deleted, each once its name was typed"() {
    await fillBucket("ending", ["a.txt", "b/c.txt"]);
    const page = await openAs("/-/settings/ending");
    await page.getByRole("button", { name: "Empty …" }).click();
    await dialog(page).getByRole("textbox").fill("endin");
    await dialog(page).getByRole("button", { name: "Empty it" }).click();
    await page.locator(".problem", { hasText: "Nothing was done" }).waitFor();
    assert.deepEqual(await names("ending"), ["a.txt", "b/c.txt"]);
    await dialog(page).getByRole("textbox").fill("ending");
    await page.keyboard.press("Enter");
    await page.getByRole("row", { name: /Empty the bucket.*done.*2 files/ }).waitFor();
    assert.deepEqual(await names("ending"), []);
    await page.getByText("0 files, 0 B").waitFor();
    await page.getByRole("button", { name: "Delete …" }).click();
    await dialog(page).getByRole("textbox").fill("ending");
    await dialog(page).getByRole("button", { name: "Delete it" }).click();
    await page.waitForURL("**/-/");
    await page.getByRole("heading", { name: "Buckets", level: 1 }).waitFor();
    await page.locator(".side a", { hasText: "ending" }).waitFor({ state: "detached" });
    const { buckets } = await ask("GET", "/api/buckets?limit=1000");
    assert.ok(!buckets.some((it) => it.bucketName === "ending"));
    await close(page);
  },

  async "work under way tells how far it is, and is cancelled"() {
    await fillBucket("working");
    const page = await openAs("about:blank");
    const job = { id: "j1", kind: "emptyBucket", bucketName: "working", prefix: null, to: null, account: "a", state: "running", done: 400, total: 1000, unit: "files", createdAt: new Date().toISOString(), startedAt: null, endedAt: null, error: null, errorCode: null, result: { bytes: 0, skipped: 0, damageCount: 0 } };
    await page.route("**/api/jobs?*", (route) => route.fulfill({ json: { success: true, jobs: [job, { ...job, id: "j2", bucketName: "another" }], nextCursor: null } }));
    await page.route("**/api/jobs/j1", (route) => {
      assert.equal(route.request().method(), "DELETE");
      Object.assign(job, { state: "cancelled", done: 700 });
      return route.fulfill({ json: { success: true, job } });
    });
    await page.goto("/-/settings/working");
    const rows = page.getByRole("table", { name: "Jobs" }).getByRole("row");
    await rows.getByText("400 of 1,000").waitFor();
    assert.equal(await rows.count(), 2, "another bucket's work is shown, too");
    job.done = 600;
    await rows.getByText("600 of 1,000").waitFor();
    await page.getByRole("button", { name: "Cancel: Empty the bucket" }).click();
    await rows.getByText("cancelled").waitFor();
    await rows.getByText("700 files").waitFor();
    await close(page);
  },

  async "a webhook is made with its secret, tested, changed, turned off and deleted"() {
    await fillBucket("hooked");
    const page = await openAs("/-/webhooks/hooked");
    await page.getByRole("heading", { name: "No webhook yet" }).waitFor();
    await page.getByRole("button", { name: "New webhook" }).first().click();
    await dialog(page).getByLabel("Address", { exact: true }).fill("http://127.0.0.1:9/hook");
    await dialog(page).getByRole("button", { name: "Create" }).click();
    await page.locator(".problem").waitFor();
    await dialog(page).getByLabel("Address", { exact: true }).fill("https://shop.example/hook");
    await dialog(page).getByLabel("Anything was deleted").check();
    await dialog(page).getByLabel("Only of files that begin with").fill("calls/");
    await dialog(page).getByRole("button", { name: "Create" }).click();
    assert.match(await dialog(page).getByRole("group", { name: "Secret" }).textContent(), /^whsec_/);
    await dialog(page).getByRole("button", { name: "I have saved it" }).click();
    const card = page.locator(".webhook", { hasText: "https://shop.example/hook" });
    await card.getByText("waiting for the first event").waitFor();
    const [made] = (await ask("GET", "/api/buckets/hooked/webhooks")).webhooks;
    assert.deepEqual([made.events.toSorted(), made.prefix, made.enabled], [["s3:ObjectCreated:*", "s3:ObjectRemoved:*"], "calls/", true]);
    await page.route("**/test", (route) => route.fulfill({ json: { success: true, delivered: false, status: 500, deliveryError: "the answer was not 2xx", answer: "<b>broken</b>", durationMs: 12 } }));
    await card.getByRole("button", { name: "Send a test" }).click();
    await page.getByRole("heading", { name: "The test was not delivered" }).waitFor();
    await dialog(page).getByText("<b>broken</b>").waitFor();
    await page.keyboard.press("Escape");
    await card.getByRole("button", { name: "Edit" }).click();
    await dialog(page).getByLabel("Anything was deleted").uncheck();
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await dialog(page).waitFor({ state: "detached" });
    await card.getByText("ObjectRemoved:*").waitFor({ state: "detached" });
    await card.getByRole("button", { name: "Turn off" }).click();
    await card.getByRole("button", { name: "Turn on" }).waitFor();
    const [changed] = (await ask("GET", "/api/buckets/hooked/webhooks")).webhooks;
    assert.deepEqual([changed.events, changed.enabled], [["s3:ObjectCreated:*"], false]);
    await card.getByRole("button", { name: "Delete" }).click();
    await dialog(page).getByRole("button", { name: "Delete it" }).click();
    await page.getByRole("heading", { name: "No webhook yet" }).waitFor();
    assert.deepEqual((await ask("GET", "/api/buckets/hooked/webhooks")).webhooks, []);
    await close(page);
  },

  async "events that were given up are looked at, sent again and forgotten"() {
    await fillBucket("hooked");
    const { webhook } = await ask("POST", "/api/buckets/hooked/webhooks", { url: "https://shop.example/other", events: ["s3:ObjectCreated:*"] });
    const page = await openAs("about:blank");
    let letters = ["one", "two", "three"].map((name) => ({ eventId: `evt_${name}`, type: "ObjectCreated:Post", key: `calls/${name}.wav`, timestamp: "2026-11-20T10:00:00.000Z", attemptCount: 10, givenUpAt: "2026-11-23T10:00:00.000Z", status: 503, deliveryError: "the answer was not 2xx", answer: "busy" }));
    const asked = [];
    await page.route(`**/webhooks/${webhook.id}`, (route) => route.fulfill({ json: { success: true, webhook: { ...webhook, deadLetterCount: letters.length } } }));
    await page.route("**/dead-letters**", (route) => {
      const url = new URL(route.request().url());
      const method = route.request().method();
      if (method === "GET") return route.fulfill({ json: { success: true, deadLetters: letters, nextCursor: null } });
      const id = url.searchParams.get("eventId");
      asked.push(`${method} ${id}`);
      const count = id ? 1 : letters.length;
      letters = id ? letters.filter((it) => it.eventId !== id) : [];
      return route.fulfill({ json: { success: true, retriedCount: count, deletedCount: count } });
    });
    await page.goto(`/-/webhooks/hooked/${webhook.id}`);
    await page.getByRole("row", { name: /calls\/one.wav/ }).getByText("What it answered").click();
    await page.getByText("busy", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Send again: calls/one.wav" }).click();
    await page.getByRole("row", { name: /calls\/one.wav/ }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Forget: calls/two.wav" }).click();
    await page.getByRole("row", { name: /calls\/two.wav/ }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Send all again" }).click();
    await note(page, "1 event is on the way again").waitFor();
    await page.getByRole("heading", { name: "Nothing was given up" }).waitFor();
    assert.deepEqual(asked, ["POST evt_one", "DELETE evt_two", "POST null"]);
    await close(page);
  },

  async "deleted files come back: one, several, one whose name is taken, a folder"() {
    await fillBucket("gone", ["a.txt", "b.txt", "c.txt", "d/e.txt", "d/f.txt"]);
    for (const name of ["a.txt", "b.txt", "c.txt", "d/e.txt", "d/f.txt"]) await ask("DELETE", `/gone/${name}`);
    const page = await openAs("/-/deleted/gone/");
    await page.getByRole("button", { name: "Bring back a.txt" }).click();
    await note(page, "“a.txt” is back").waitFor();
    assert.deepEqual(await names("gone"), ["a.txt"]);
    await page.getByRole("row", { name: /a\.txt/ }).waitFor({ state: "detached" });
    await fillBucket("gone", ["c.txt"]);
    await page.getByRole("checkbox", { name: "Choose b.txt" }).check();
    await page.getByRole("checkbox", { name: "Choose c.txt" }).check();
    await page.getByText("2 versions chosen").waitFor();
    await page.getByRole("button", { name: "Bring back what is chosen" }).click();
    await dialog(page).getByText("There is a file c.txt now").waitFor();
    await dialog(page).getByRole("combobox").selectOption("rename");
    await dialog(page).getByRole("button", { name: "Bring back" }).click();
    await dialog(page).waitFor({ state: "detached" });
    assert.deepEqual(await names("gone"), ["a.txt", "b.txt", "c (1).txt", "c.txt"]);
    await page.getByLabel("In the folder").fill("d/");
    await page.getByRole("button", { name: "Look" }).click();
    await page.waitForURL("**/-/deleted/gone/d/");
    await page.getByRole("checkbox", { name: "Choose d/e.txt" }).waitFor();
    assert.equal(await page.getByRole("checkbox", { name: /^Choose / }).count(), 2);
    await page.getByRole("button", { name: "Bring back all of d/ …" }).click();
    await dialog(page).getByLabel("Of what was deleted").selectOption("1");
    await dialog(page).getByRole("button", { name: "Bring back" }).click();
    await page.getByRole("row", { name: /Bring back what was in “d”.*done/ }).waitFor();
    await until(async () => (await names("gone")).includes("d/f.txt"), "the folder is back");
    await page.getByRole("heading", { name: "Nothing here can come back" }).waitFor();
    await close(page);
  },
};
