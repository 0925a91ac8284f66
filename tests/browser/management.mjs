// Keys, links, settings, webhooks and deleted files: actions in the page, and the resulting state of the server.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { base, close, open } from "./driver.mjs";
import { shared } from "./lived.mjs";
import { fillBucket, openAs, until } from "./operator.mjs";
import { asOperator as ask } from "./sessions.mjs";

const form = (name) => {
  const body = new FormData();
  body.append("file", new File(["text\n"], name));
  return body;
};
const dialog = (page) => page.getByRole("dialog");
const note = (page, text) => page.locator(".note", { hasText: text });
/** A server with weeks of history, with one long folder. */
const FILES = 20_000;
const lived = shared({ files: FILES });

/** Returns the number of files left in the heap once it is stable. */
async function settled(server) {
  const count = async () => (await server.ask("GET", "/api/buckets/heap")).bucket.objectCount;
  let before = -1;
  return until(async () => {
    const now = await count();
    const isSo = now === before;
    before = now;
    return isSo && now;
  }, "the deletion ends");
}
const names = async (bucket) => (await ask("GET", `/api/list-objects?bucketName=${bucket}`)).Contents.map((it) => it.Key);

export const tests = {
  async api_key_is_created_with_limits_shown_once_and_revoked() {
    await fillBucket("keyed");
    const page = await openAs("/-/keys?new=keyed");
    await dialog(page).getByLabel("Name").fill("uploader");
    assert.equal(new URL(page.url()).search, "", "loading the page again would ask for another key");
    await dialog(page).getByLabel("Folder (optional)").fill("inbox/");
    await dialog(page).getByLabel("Expires").selectOption("30");
    await dialog(page).getByLabel("upload").uncheck();
    await dialog(page).getByRole("button", { name: "Create" }).click();
    await page.locator(".problem", { hasText: "Select at least one scope" }).waitFor();
    await dialog(page).getByLabel("upload").check();
    await dialog(page).getByRole("button", { name: "Create" }).click();
    const key = await dialog(page).getByRole("group", { name: "API key" }).textContent();
    assert.match(key, /^trug_/);
    await dialog(page).locator("pre", { hasText: `KEY=${key}` }).waitFor();
    await dialog(page).getByRole("tab", { name: "curl" }).focus();
    await page.keyboard.press("ArrowRight");
    await dialog(page).locator("pre", { hasText: `"Authorization": "Bearer ${key}"` }).waitFor();
    const saved = page.waitForEvent("download");
    await dialog(page).getByRole("button", { name: "Download .sxcu" }).click();
    assert.equal((await saved).suggestedFilename(), "trug-keyed.sxcu");
    const upload = (folder) => fetch(`${base}/keyed/${folder}`, { method: "POST", headers: { Authorization: `Bearer ${key}` }, body: form("a.txt") });
    assert.deepEqual([(await upload("inbox/")).status, (await upload("other/")).status], [200, 403]);
    await dialog(page).getByRole("button", { name: "I have saved it" }).click();
    await dialog(page).waitFor({ state: "detached" });
    const row = page.getByRole("row", { name: /uploader/ });
    await row.getByText("keyed/inbox/").waitFor();
    assert.ok(!(await page.content()).includes(key), "the key is still on the page");
    await row.getByRole("button", { name: "Revoke uploader" }).click();
    await dialog(page).getByRole("button", { name: "Revoke key" }).click();
    await note(page, "API key “uploader” revoked").waitFor();
    await row.waitFor({ state: "detached" });
    assert.equal((await upload("inbox/")).status, 401);
    await page.getByRole("button", { name: /^Show \d+ expired or revoked keys?/ }).click();
    await page.getByRole("row", { name: /uploader.*Revoked/ }).waitFor();
    await close(page);
  },

  async upload_link_accepts_one_upload_within_its_limits() {
    await fillBucket("linked", ["2026/cat.jpg", "2026/dog.jpg"], { access: "private" });
    const page = await openAs("/-/links/linked/inbox/");
    const upload = page.locator("section", { has: page.getByRole("heading", { name: "Upload link", level: 2 }) });
    assert.equal(await upload.getByLabel("Destination").inputValue(), "inbox/");
    await upload.getByLabel("Random file name").check();
    await upload.getByRole("button", { name: "Create upload link" }).click();
    const link = await upload.getByRole("group", { name: "Upload link" }).textContent();
    const first = await (await fetch(link, { method: "POST", body: form("a.txt") })).json();
    assert.match(first.key, /^inbox\/[0-9a-f-]{36}\.txt$/);
    assert.equal((await fetch(link, { method: "POST", body: form("b.txt") })).status, 410);
    const download = page.locator("section", { has: page.getByRole("heading", { name: "Download link", level: 2 }) });
    await download.getByLabel("File").fill("/2026/none.jpg");
    await download.getByRole("button", { name: "Create download link" }).click();
    await page.locator(".problem", { hasText: /not found|not there/i }).waitFor();
    await download.getByLabel("File").fill("/2026/cat.jpg");
    await download.getByLabel("Expires after").selectOption("86400");
    const sent = page.waitForRequest((request) => request.url().endsWith("/download-links"));
    await download.getByRole("button", { name: "Create download link" }).click();
    assert.deepEqual((await sent).postDataJSON(), { path: "2026/cat.jpg", expiresIn: 86_400 });
    const address = await download.getByRole("group", { name: "Download link" }).textContent();
    assert.equal(await (await fetch(address)).text(), "2026/cat.jpg\n");
    const { pathname, search } = new URL(address);
    assert.equal((await fetch(base + pathname)).status, 401);
    assert.equal((await fetch(`${base}/linked/2026/dog.jpg${search}`)).status, 404);
    await close(page);
  },

  async shared_link_is_edited_and_revoked_in_dashboard() {
    await fillBucket("shared", ["2026/cat.jpg", "2026/notes.txt"], { access: "private" });
    const page = await openAs("/-/files/shared/");
    await page.getByRole("row", { name: /2026/ }).click({ button: "right" });
    await page.getByRole("menuitem", { name: "Share…" }).click();
    await dialog(page).getByLabel("Title").fill("<b>Summer</b>");
    await dialog(page).getByLabel("Password").fill("tern-42");
    await dialog(page).getByLabel("Download limit").fill("2");
    await dialog(page).getByRole("button", { name: "Create link" }).click();
    const address = await dialog(page).getByRole("group", { name: "Link" }).textContent();
    await dialog(page).getByText(/^Works until/).waitFor();
    const visitor = await open("about:blank");
    const { pathname } = new URL(address);
    const wrong = [];
    visitor.on("console", (message) => { if (message.type() === "error" && !message.text().includes("Failed to load resource")) wrong.push(message.text()); });
    await visitor.goto(pathname);
    await visitor.getByLabel("Password").fill("wrong");
    await visitor.getByRole("button", { name: "Open" }).click();
    await visitor.getByRole("alert").getByText("Wrong password.").waitFor();
    assert.ok(!(await visitor.content()).includes("Summer"));
    await visitor.getByLabel("Password").fill("tern-42");
    await visitor.getByRole("button", { name: "Open" }).click();
    await visitor.getByRole("heading", { name: "<b>Summer</b>" }).waitFor();
    await visitor.getByRole("link", { name: "notes.txt" }).click();
    const saved = visitor.waitForEvent("download");
    await visitor.getByRole("link", { name: "Download" }).click();
    assert.equal((await saved).suggestedFilename(), "notes.txt");
    assert.deepEqual(wrong, []);
    await page.goto("/-/links/shared/");
    const row = page.getByRole("row", { name: /Summer/ });
    await row.getByText("1 of 2").waitFor();
    await row.getByRole("button", { name: "Edit" }).click();
    await dialog(page).getByLabel("Title").fill("Autumn");
    await dialog(page).getByLabel("Remove the password").check();
    await dialog(page).getByRole("button", { name: "Save" }).click();
    const edited = page.getByRole("row", { name: /Autumn/ });
    await edited.getByText("1 of 2").waitFor();
    assert.equal(await (await fetch(base + pathname)).text().then((text) => text.includes("<h1><bdi>Autumn</bdi></h1>")), true);
    await edited.getByRole("button", { name: "End" }).click();
    await dialog(page).getByRole("button", { name: "End link" }).click();
    await edited.getByText("Ended").waitFor();
    assert.equal((await fetch(base + pathname)).status, 410);
    await close(visitor);
    await close(page);
  },

  async file_info_shows_and_edits_metadata() {
    await fillBucket("described", ["notes.txt"], { access: "private" });
    const photo = new FormData();
    photo.append("file", new File([await readFile(new URL("../fixtures/jpeg/exif.jpg", import.meta.url))], "photo.jpg", { type: "image/jpeg" }));
    await ask("POST", "/described/", photo);
    const page = await openAs("/-/files/described/");
    await page.getByRole("row", { name: /notes\.txt/ }).click({ button: "right" });
    await page.getByRole("menuitem", { name: "Info" }).click();
    const info = dialog(page).filter({ has: page.getByRole("heading", { name: "notes.txt", exact: true }) });
    await info.getByText("text/plain").waitFor();
    await info.getByRole("button", { name: "Edit…" }).click();
    const form = dialog(page).filter({ has: page.getByRole("heading", { name: "Edit notes.txt" }) });
    await form.getByLabel("Type").fill("image/png");
    await form.getByRole("button", { name: "Save" }).click();
    await form.locator(".problem", { hasText: "contradicted" }).waitFor();
    await form.getByLabel("Type").fill("text/markdown");
    await form.getByLabel("Metadata").fill("by=ann\nnote=<b>x</b>");
    await form.getByLabel("Expires").selectOption("86400");
    await form.getByRole("button", { name: "Save" }).click();
    await info.getByText("<b>x</b>").waitFor();
    await info.getByText("text/markdown").waitFor();
    const { object } = await ask("GET", "/api/buckets/described/object?path=notes.txt");
    assert.deepEqual(object.metadata, { by: "ann", note: "<b>x</b>" });
    assert.ok(Math.abs(Date.parse(object.expiresAt) - Date.now() - 86_400_000) < 60_000);
    await info.getByRole("button", { name: "Close" }).click();
    await page.getByRole("row", { name: /photo\.jpg/ }).getByText("photo.jpg").click();
    await page.locator("dialog.preview img").waitFor();
    await page.keyboard.press("i");
    await dialog(page).getByText("Fujifilm X100VI").waitFor();
    await dialog(page).getByText("2026-01-31, 12:00:00").waitFor();
    await close(page);
  },

  async lifecycle_rules_are_edited_and_expire_old_files() {
    await fillBucket("expiring", ["tmp/old.txt", "kept.txt"]);
    const page = await openAs("/-/settings/expiring");
    await page.getByRole("button", { name: "Add rule…" }).click();
    await dialog(page).getByLabel("Prefix").fill("tmp/");
    await dialog(page).getByLabel("Delete after").fill("2");
    await dialog(page).getByLabel("Unit").selectOption("86400");
    await dialog(page).getByRole("button", { name: "Add rule" }).click();
    const row = page.getByRole("row", { name: /tmp\// });
    await row.getByText("After 2 days").waitFor();
    const { bucket } = await ask("GET", "/api/buckets/expiring");
    assert.deepEqual(bucket.lifecycle, [{ id: "tmp", prefix: "tmp/", expireAfterSeconds: 172_800, enabled: true }]);
    await row.getByRole("button", { name: "Edit rule tmp" }).click();
    await dialog(page).getByLabel("Unit").selectOption("60");
    await dialog(page).getByLabel("Delete after").fill("1");
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await row.getByText("After 1 minute").waitFor();
    // Files that are older already are counted first. (Those of this test are new.)
    const counted = "**/api/buckets/expiring/lifecycle/preview";
    await page.route(counted, (route) => route.fulfill({ json: { success: true, files: 312, bytes: 4_100_000_000, isComplete: true } }));
    const change = async (/** @type {string} */ hours) => {
      await row.getByRole("button", { name: "Edit rule tmp" }).click();
      await dialog(page).getByLabel("Unit").selectOption("3600");
      await dialog(page).getByLabel("Delete after").fill(hours);
      await dialog(page).getByRole("button", { name: "Save" }).click();
    };
    await change("7");
    await dialog(page).getByText("312 files (4.10 GB) are older than 7 hours and will be deleted within a minute.").waitFor();
    await dialog(page).getByRole("button", { name: "Cancel" }).click();
    const age = async () => (await ask("GET", "/api/buckets/expiring")).bucket.lifecycle[0].expireAfterSeconds;
    assert.equal(await age(), 60);
    await change("8");
    await dialog(page).getByText("are older than 8 hours").waitFor();
    await dialog(page).getByRole("button", { name: "Delete files" }).click();
    await row.getByText("After 8 hours").waitFor();
    assert.equal(await age(), 8 * 3_600);
    await page.unroute(counted);
    await row.getByRole("button", { name: "Delete rule tmp" }).click();
    await dialog(page).getByRole("button", { name: "Delete rule" }).click();
    await page.getByText("No expiry rules").waitFor();
    await ask("PATCH", "/api/buckets/expiring", { lifecycle: [{ id: "past", prefix: "tmp/", expireAt: "2026-01-01T00:00:00Z" }] });
    await until(async () => (await names("expiring")).join() === "kept.txt", "the old file is deleted");
    await close(page);
  },

  async settings_are_changed_one_by_one_and_validated_in_place() {
    await fillBucket("tuned");
    const page = await openAs("/-/settings/tuned");
    await page.getByLabel("Storage quota", { exact: true }).fill("2 elephants");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".problem", { hasText: "such as 500 MB" }).waitFor();
    await page.getByLabel("Storage quota", { exact: true }).fill("1.5 GB");
    await page.getByLabel("Visibility").selectOption("private");
    await page.getByLabel("Allowed file types").fill("image/*\n\napplication/pdf");
    await page.getByLabel("Create thumbnails").check();
    const sent = page.waitForRequest((request) => request.method() === "PATCH");
    await page.getByRole("button", { name: "Save" }).click();
    assert.deepEqual((await sent).postDataJSON(), { access: "private", allowedTypes: ["image/*", "application/pdf"], quotaBytes: 1_500_000_000, thumbnails: true });
    await note(page, "Saved.").waitFor();
    const { bucket } = await ask("GET", "/api/buckets/tuned");
    assert.deepEqual([bucket.access, bucket.allowedTypes.toSorted(), bucket.quotaBytes, bucket.thumbnails], ["private", ["application/pdf", "image/*"], 1_500_000_000, true]);
    await page.getByText("0 B of 1.50 GB").waitFor();
    await page.getByLabel("Storage quota", { exact: true }).fill("");
    await page.getByLabel("Allowed origins (CORS)").fill("not an origin");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".problem", { hasText: /origin/i }).waitFor();
    assert.equal((await ask("GET", "/api/buckets/tuned")).bucket.quotaBytes, 1_500_000_000, "half of it was saved");
    await close(page);
  },

  async bucket_is_emptied_and_deleted_after_typing_its_name() {
    await fillBucket("ending", ["a.txt", "b/c.txt"]);
    const page = await openAs("/-/settings/ending");
    await page.getByRole("button", { name: "Empty…" }).click();
    await dialog(page).getByRole("textbox").fill("endin");
    await dialog(page).getByRole("button", { name: "Empty bucket" }).click();
    await page.locator(".problem", { hasText: "The name doesn't match" }).waitFor();
    assert.deepEqual(await names("ending"), ["a.txt", "b/c.txt"]);
    await dialog(page).getByRole("textbox").fill("ending");
    await page.keyboard.press("Enter");
    await page.getByRole("row", { name: /Empty bucket.*Done.*2 files/ }).waitFor();
    assert.deepEqual(await names("ending"), []);
    await page.getByText("0 files, 0 B").waitFor();
    await page.getByRole("button", { name: "Delete…" }).click();
    await dialog(page).getByRole("textbox").fill("ending");
    await dialog(page).getByRole("button", { name: "Delete bucket" }).click();
    await page.waitForURL("**/-/");
    await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
    await page.locator(".side a", { hasText: "ending" }).waitFor({ state: "detached" });
    const { buckets } = await ask("GET", "/api/buckets?limit=1000");
    assert.ok(!buckets.some((it) => it.bucketName === "ending"));
    await close(page);
  },

  async empty_bucket_job_shows_progress_and_is_cancelled() {
    const server = await lived();
    await server.ask("POST", "/api/jobs", { kind: "deleteFolder", bucketName: "desk", prefix: "none/" });
    const page = await server.openAs("/-/settings/heap");
    await page.getByText(`${FILES.toLocaleString("en")} files`).first().waitFor();
    await page.getByRole("button", { name: "Empty…" }).click();
    await dialog(page).getByRole("textbox").fill("heap");
    // Slow enough that even a fast machine has not finished before the check.
    await server.slowDown();
    await page.keyboard.press("Enter");
    const rows = page.getByRole("table", { name: "Jobs" }).getByRole("row");
    const far = rows.getByText(/^[\d,]+ of 20,000$/);
    const done = async () => Number((await far.textContent()).split(" of ")[0].replaceAll(",", ""));
    await far.waitFor();
    assert.equal(await rows.count(), 2, "another bucket's work is shown, too");
    const before = await done();
    await until(async () => (await done()) > before, "it goes on");
    await page.getByRole("button", { name: "Cancel: Empty bucket" }).click();
    await rows.getByText("Cancelled").waitFor();
    await server.speedUp();
    const gone = Number((await rows.getByText(/^[\d,]+ files?/).textContent()).split(" file")[0].replaceAll(",", ""));
    assert.ok(gone > before && gone < FILES, `${gone}`);
    // The reported deletions are done, and so are those until the cancellation.
    const left = await settled(server);
    assert.ok(left <= FILES - gone && left > 0, `${left} are left, and ${gone} are reported as deleted`);
    await close(page);
  },

  async delete_folder_job_shows_progress_and_is_cancelled() {
    const server = await lived();
    const { bucket: { objectCount: count } } = await server.ask("GET", "/api/buckets/heap");
    const page = await server.openAs("/-/files/heap/");
    await page.locator(".row", { hasText: "sub" }).locator(".tick").click();
    await page.getByRole("toolbar").getByText("1 selected").waitFor();
    await server.slowDown();
    await page.keyboard.press("Delete");
    await note(page, new RegExp(`Deleting sub: [\\d,]+ of ${count.toLocaleString("en")}`)).getByRole("button", { name: "Cancel" }).click();
    await page.locator(".note.bad", { hasText: "Deleting sub cancelled" }).waitFor();
    await server.speedUp();
    await page.locator(".row .name").getByText("sub", { exact: true }).waitFor();
    const left = await settled(server);
    assert.ok(left > 0 && left < count, `${left} of ${count}`);
    await close(page);
  },

  async webhook_is_created_tested_notified_disabled_and_deleted() {
    const server = await lived();
    const { ask, other } = server;
    await fillBucket("hooked", [], {}, ask);
    const page = await server.openAs("/-/webhooks/hooked");
    await page.getByRole("heading", { name: "No webhooks yet" }).waitFor();
    await page.getByRole("button", { name: "New webhook" }).first().click();
    await dialog(page).getByLabel("URL", { exact: true }).fill("http://127.0.0.1:9/hook");
    await dialog(page).getByRole("button", { name: "Create" }).click();
    await page.locator(".problem").waitFor();
    await dialog(page).getByLabel("URL", { exact: true }).fill(`${other.origin}/hook`);
    await dialog(page).getByLabel("Any deletion").check();
    await dialog(page).getByLabel("Key prefix (optional)").fill("calls/");
    await dialog(page).getByRole("button", { name: "Create" }).click();
    assert.match(await dialog(page).getByRole("group", { name: "Secret" }).textContent(), /^whsec_/);
    await dialog(page).getByRole("button", { name: "I have saved it" }).click();
    const card = page.locator(".webhook", { hasText: `${other.origin}/hook` });
    await card.getByText("No deliveries yet").waitFor();
    const [made] = (await ask("GET", "/api/buckets/hooked/webhooks")).webhooks;
    assert.deepEqual([made.events.toSorted(), made.prefix, made.enabled], [["s3:ObjectCreated:*", "s3:ObjectRemoved:*"], "calls/", true]);
    other.answer = { status: 500, text: "<b>broken</b>" };
    await card.getByRole("button", { name: "Send test" }).click();
    await page.getByRole("heading", { name: "Test failed" }).waitFor();
    await dialog(page).getByText("<b>broken</b>").waitFor();
    await page.keyboard.press("Escape");
    other.answer = { status: 200, text: "" };
    await card.getByRole("button", { name: "Send test" }).click();
    await page.getByRole("heading", { name: "Test delivered" }).waitFor();
    await page.keyboard.press("Escape");
    await fillBucket("hooked", ["calls/one.wav", "elsewhere.wav"], {}, ask);
    await until(() => other.seen.some((it) => it.path === "/hook" && it.event.type === "ObjectCreated:Post"), "it is notified of a file");
    assert.deepEqual(other.seen.filter((it) => it.path === "/hook").map((it) => it.event.data.key ?? it.event.type), ["webhook.test", "webhook.test", "calls/one.wav"]);
    await until(async () => (await ask("GET", "/api/buckets/hooked/webhooks")).webhooks[0].lastDeliveryAt, "the delivery is noted");
    await page.reload();
    await card.getByText("Delivering").waitFor();
    await card.getByRole("button", { name: "Edit" }).click();
    await dialog(page).getByLabel("Any deletion").uncheck();
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await dialog(page).waitFor({ state: "detached" });
    await card.getByText("ObjectRemoved:*").waitFor({ state: "detached" });
    await card.getByRole("button", { name: "Disable" }).click();
    await card.getByRole("button", { name: "Enable" }).waitFor();
    const [changed] = (await ask("GET", "/api/buckets/hooked/webhooks")).webhooks;
    assert.deepEqual([changed.events, changed.enabled], [["s3:ObjectCreated:*"], false]);
    await card.getByRole("button", { name: "Delete" }).click();
    await dialog(page).getByRole("button", { name: "Delete webhook" }).click();
    await page.getByRole("heading", { name: "No webhooks yet" }).waitFor();
    assert.deepEqual((await ask("GET", "/api/buckets/hooked/webhooks")).webhooks, []);
    await close(page);
  },

  async failed_webhook_events_are_shown_resent_and_discarded() {
    const server = await lived();
    const { other, past } = server;
    const letters = `/api/buckets/desk/webhooks/${past.webhook}/dead-letters`;
    const given = Object.fromEntries((await server.ask("GET", letters)).deadLetters.map((it) => [it.key, it]));
    assert.deepEqual(Object.keys(given), ["calls/one.wav", "calls/two.wav", "calls/three.wav"]);
    const page = await server.openAs("/-/webhooks/desk");
    await page.getByRole("link", { name: "3 events · review" }).click();
    const row = (name) => page.getByRole("row", { name: new RegExp(`calls/${name}`) });
    await row("one.wav").getByText("Response body").click();
    await row("one.wav").getByText("busy", { exact: true }).waitFor();
    await row("one.wav").getByRole("cell", { name: "10", exact: true }).waitFor();
    other.answer = { status: 200, text: "" };
    other.seen.length = 0;
    await page.getByRole("button", { name: "Retry calls/one.wav" }).click();
    await row("one.wav").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Discard calls/two.wav" }).click();
    await row("two.wav").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Retry all" }).click();
    await note(page, "Retrying 1 event.").waitFor();
    await page.getByRole("heading", { name: "No failed events" }).waitFor();
    assert.deepEqual((await server.ask("GET", letters)).deadLetters, []);
    // The retried delivery is the dead letter, with its own id.
    await until(() => other.seen.length === 2, "both are sent");
    assert.deepEqual(other.seen.map((it) => [it.event.data.key, it.id]).toSorted(), ["one.wav", "three.wav"].map((name) => [`calls/${name}`, given[`calls/${name}`].eventId]));
    await close(page);
  },

  async abuse_check_runs_by_button_and_reports_its_action() {
    const server = await lived();
    await server.ask("PATCH", `/api/accounts/${server.past.ann}`, { plan: "Free", storageBytesMax: 1 });
    const page = await server.openAs("/-/accounts");
    await page.getByRole("button", { name: "Run fair-use check" }).click();
    await dialog(page).getByRole("button", { name: "Run check and apply" }).click();
    await dialog(page).getByRole("row", { name: /ann.*notified.*bytes stored; quota 1/ }).waitFor();
    assert.equal((await server.ask("GET", `/api/accounts/${server.past.ann}`)).account.standing, "notified");
    await close(page);
  },

  async deleted_files_are_restored_singly_together_and_by_folder() {
    await fillBucket("gone", ["a.txt", "b.txt", "c.txt", "d/e.txt", "d/f.txt"]);
    for (const name of ["a.txt", "b.txt", "c.txt", "d/e.txt", "d/f.txt"]) await ask("DELETE", `/gone/${name}`);
    const page = await openAs("/-/deleted/gone/");
    await page.getByRole("button", { name: "Restore a.txt" }).click();
    await note(page, "“a.txt” restored").waitFor();
    assert.deepEqual(await names("gone"), ["a.txt"]);
    await page.getByRole("row", { name: /a\.txt/ }).waitFor({ state: "detached" });
    await page.getByRole("checkbox", { name: "Select b.txt" }).check();
    await page.getByRole("checkbox", { name: "Select c.txt" }).check();
    await page.getByText("2 versions selected").waitFor();
    // Only now: the list is loaded again after a restore, and an existing file is not in it.
    await fillBucket("gone", ["c.txt"]);
    await page.getByRole("button", { name: "Restore selected" }).click();
    await dialog(page).getByText("c.txt already exists.").waitFor();
    await dialog(page).getByRole("combobox").selectOption("rename");
    await dialog(page).getByRole("button", { name: "Restore" }).click();
    await dialog(page).waitFor({ state: "detached" });
    assert.deepEqual(await names("gone"), ["a.txt", "b.txt", "c (1).txt", "c.txt"]);
    await page.getByLabel("Folder or name prefix").fill("d/");
    await page.getByLabel("Folder or name prefix").press("Enter");
    await page.waitForURL("**/-/deleted/gone/d/");
    await page.getByRole("checkbox", { name: "Select d/e.txt" }).waitFor();
    assert.equal(await page.getByRole("checkbox", { name: /^Select d\// }).count(), 2);
    await page.getByRole("button", { name: "Restore d/…" }).click();
    await dialog(page).getByLabel("Deleted").selectOption("1");
    await dialog(page).getByRole("button", { name: "Restore" }).click();
    await page.getByRole("row", { name: /Restore “d”.*Done/ }).waitFor();
    await until(async () => (await names("gone")).includes("d/f.txt"), "the folder is back");
    await page.getByRole("heading", { name: "No deleted files" }).waitFor();
    await close(page);
  },
};
