// Pages of links: requests of files, by script and by form, and the looks of both kinds.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { api, base, close, dropFromDisk, keys, open, options, shot, store } from "./driver.mjs";
import { lookAtPublicPages } from "./looks.mjs";
import { fillBucket, openAs } from "./operator.mjs";

/** Size of a file whose upload is interrupted: more than one chunk. */
const LARGE_BYTES = 50_000_000;

/** Creates a link; returns the path of its page. */
async function link(wish, bucket = "photos") {
  const body = JSON.stringify(wish);
  const created = await (await api("POST", `/api/buckets/${bucket}/links`, body, { "Content-Type": "application/json" })).json();
  return { id: created.link.id, path: new URL(created.link.url).pathname };
}

const request = (folder, wish = {}) => link({ kind: "upload", paths: [folder], ...wish });

/** Writes a file to the disk; returns its path. */
function disk(name, content) {
  const folder = join(options.folder, "requested");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

/** Creates a presigned token; returns the path of its page. */
async function uploadLink(bucket, folder = "inbox/") {
  const issued = await (await api("GET", `/api/presigned-url?path=${bucket}/${folder}`)).json();
  return new URL(issued.url).pathname;
}

const visit = (path, context = {}) => open(path, { session: null, ...context });
const choose = (page, paths) => page.locator("input[type=file]").setInputFiles(paths);
const row = (page, name) => page.locator("#list li", { hasText: name });

export const tests = {
  async file_request_page_uploads_and_explains_rejections() {
    const { path } = await request("asked/", { title: "Party", fileBytesMax: 1_000, allowedTypes: ["text/*"], filesMax: 4 });
    const page = await visit(path);
    await page.getByText("Up to 4 files, 1 kB each, 10 GB together. Text only.").waitFor();
    await page.getByLabel("Your name").fill("Carl");
    await choose(page, [disk("a.txt", "one"), disk("large.txt", "x".repeat(1_001)), disk("p.png", "no text"), disk("fake.txt", Buffer.from("\x89PNG\r\n\x1a\n", "latin1"))]);
    await row(page, "a.txt").getByText("Done").waitFor();
    await row(page, "large.txt").getByText("Too large (limit 1 kB)").waitFor();
    await row(page, "p.png").getByText("Type not accepted").waitFor();
    await row(page, "fake.txt").getByText("Type not accepted").waitFor();
    await page.getByRole("status").getByText("1 of 4 files uploaded").waitFor();
    await shot(page, "request-refused");
    for (const name of ["large.txt", "p.png", "fake.txt"]) await page.getByRole("button", { name: `Remove ${name}` }).click();
    await page.getByRole("heading", { name: "Thank you" }).waitFor();
    await page.getByText("1 file uploaded. You can close this page.").waitFor();
    await page.getByRole("link", { name: "Upload more" }).click();
    await dropFromDisk(page, [disk("a.txt", "one"), disk("b.txt", "two"), disk("c.txt", "three")], ".drop");
    await page.getByText("3 files uploaded. You can close this page.").waitFor();
    assert.deepEqual(await keys("photos", "asked/"), ["asked/a (1).txt", "asked/a.txt", "asked/b.txt", "asked/c.txt"]);
    await page.getByRole("link", { name: "Upload more" }).click();
    await page.getByRole("heading", { name: "This request is full" }).waitFor();
    await close(page);
  },

  async interrupted_upload_resumes_after_reload_and_pauses() {
    const { path } = await request("continued/", { askName: "no" });
    const page = await visit(path);
    const file = disk("video.bin", Buffer.alloc(LARGE_BYTES, 7));
    const client = await page.context().newCDPSession(page);
    await client.send("Network.enable");
    await client.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 8_000_000 });
    await choose(page, [file]);
    await row(page, "video.bin").getByText(/^([2-9]\d)%$/).waitFor();
    await shot(page, "request-uploading");
    await page.getByRole("button", { name: "Pause" }).click();
    await row(page, "video.bin").getByText("Waiting").waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await row(page, "video.bin").getByText(/^([3-9]\d)%$/).waitFor();
    await page.reload();
    await client.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
    const asked = page.waitForRequest((sent) => sent.method() === "HEAD");
    const appended = page.waitForRequest((sent) => sent.method() === "PATCH");
    await choose(page, [file]);
    await asked;
    assert.ok(Number((await appended).headers()["upload-offset"]) > 0);
    await page.getByText("1 file uploaded. You can close this page.").waitFor();
    const head = await api("HEAD", "/photos/continued/video.bin");
    assert.equal(Number(head.headers.get("content-length")), LARGE_BYTES);
    assert.deepEqual(await keys("photos", "continued/"), ["continued/video.bin"]);
    await close(page);
  },

  async file_request_works_without_scripts() {
    const { path } = await request("plain/", { askName: "required", allowedTypes: ["text/*"], password: "tern-42" });
    const page = await visit(path, { javaScriptEnabled: false });
    await page.getByLabel("Password").fill("tern-42");
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByLabel("Your name").fill("Carl");
    await choose(page, [disk("p.png", "\x89PNG\r\n\x1a\n")]);
    await page.getByRole("button", { name: "Upload" }).click();
    await page.getByRole("alert").getByText("Type not accepted").waitFor();
    await page.getByLabel("Your name").fill("Carl");
    await choose(page, [disk("a.txt", "one"), disk("b.txt", "two")]);
    await page.getByRole("button", { name: "Upload" }).click();
    await page.getByText("2 files uploaded. You can close this page.").waitFor();
    assert.deepEqual(await keys("photos", "plain/"), ["plain/a.txt", "plain/b.txt"]);
    await page.context().close();
  },

  async upload_link_sends_all_files_once_and_explains_rejections() {
    await api("POST", "/api/buckets", JSON.stringify({ bucketName: "handed-in" }), { "Content-Type": "application/json" });
    const rules = JSON.stringify({ fileBytesMax: 1_000, allowedTypes: ["text/*"] });
    await api("PATCH", "/api/buckets/handed-in", rules, { "Content-Type": "application/json" });
    const address = await uploadLink("handed-in");
    const page = await visit(address);
    await page.getByText("1 kB each").waitFor();
    await choose(page, [disk("a.txt", "one"), disk("large.txt", "x".repeat(1_001))]);
    await row(page, "large.txt").getByText("Too large (limit 1 kB)").waitFor();
    await choose(page, [disk("fake.txt", Buffer.from("\x89PNG\r\n\x1a\n", "latin1"))]);
    await page.getByRole("status").getByText("2 files chosen, 11 B").waitFor();
    await page.getByRole("button", { name: "Upload" }).click();
    await row(page, "fake.txt").getByText("Type not accepted").waitFor();
    await page.getByRole("button", { name: "Remove fake.txt" }).click();
    await choose(page, [disk("b.txt", "two")]);
    await shot(page, "token-refused");
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByText("2 files uploaded. You can close this page.").waitFor();
    assert.equal(await page.getByRole("link", { name: "Upload more" }).count(), 0);
    assert.deepEqual(await keys("handed-in"), ["inbox/a.txt", "inbox/b.txt"]);
    await page.reload();
    await page.getByRole("heading", { name: "This link was already used" }).waitFor();
    await close(page);
  },

  async used_upload_link_is_reported_in_the_open_page() {
    const address = await uploadLink("photos");
    const page = await visit(address);
    const body = new FormData();
    body.append("file", new File(["text"], "first.txt"));
    assert.equal((await fetch(base + address, { method: "POST", body })).status, 200);
    await choose(page, [disk("a.txt", "one")]);
    await page.getByRole("button", { name: "Upload" }).click();
    await page.getByRole("status").getByText("This link was already used.").waitFor();
    await row(page, "a.txt").getByText("Not uploaded").waitFor();
    await close(page);
  },

  async upload_link_works_without_scripts() {
    const page = await visit(await uploadLink("photos", "plain-token/"), { javaScriptEnabled: false });
    await choose(page, [disk("a.txt", "one"), disk("b.txt", "two")]);
    await page.getByRole("button", { name: "Upload" }).click();
    await page.getByText("2 files uploaded. You can close this page.").waitFor();
    assert.deepEqual(await keys("photos", "plain-token/"), ["plain-token/a.txt", "plain-token/b.txt"]);
    await page.context().close();
  },

  async file_request_is_created_and_counts_uploads_in_dashboard() {
    await fillBucket("wanted", ["inbox/a.txt"]);
    const page = await openAs("/-/files/wanted/");
    await page.getByRole("row", { name: /inbox/ }).click({ button: "right" });
    await page.getByRole("menuitem", { name: "Request files…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Title").fill("Drop box");
    await dialog.getByLabel("File limit").fill("5");
    await dialog.getByLabel("Max. file size").fill("2 MB");
    await dialog.getByRole("button", { name: "Create link" }).click();
    const address = new URL(await dialog.getByRole("group", { name: "Link" }).textContent());
    const body = new FormData();
    for (const name of ["a.txt", "b.txt"]) body.append("file", new File(["text"], name));
    assert.equal((await fetch(`${base}${address.pathname}/u`, { method: "POST", body })).status, 200);
    await page.goto("/-/links/wanted/");
    const listed = page.getByRole("row", { name: /Drop box/ });
    await listed.getByText("2 files").waitFor();
    await listed.getByText("Request", { exact: true }).waitFor();
    await listed.getByRole("button", { name: "Edit" }).click();
    assert.equal(await dialog.getByLabel("Max. file size").inputValue(), "2 MB");
    await dialog.getByLabel("File limit").fill("2");
    await dialog.getByRole("button", { name: "Save" }).click();
    await listed.getByText("Limit reached").waitFor();
    await close(page);
  },

  async link_pages_are_accessible_and_fit_all_screens() {
    await store("photos", "looks-shared/a.txt", "text");
    const message = "Please add your pictures and videos from Saturday.\nThank you! – Ada";
    const wide = { title: "Photos for Mia & Jonas", message, fileBytesMax: 50_000_000, allowedTypes: ["image/*", "video/*"] };
    const pages = [
      ["request", (await request("looks/", wide)).path],
      ["request-locked", (await request("looks/", { password: "tern-42" })).path],
      ["token", await uploadLink("photos")],
      ["token-bad", "/api/presigned-url/none"],
      ["share-list", (await link({ paths: ["looks-shared/"] })).path],
      ["share-file", (await link({ paths: ["looks-shared/a.txt"] })).path],
    ];
    await lookAtPublicPages(pages, async (page, name) => {
      if (name === "token") {
        await choose(page, [disk("IMG_0412.HEIC", "x"), disk(`${"long name ".repeat(9)}.png`, "z")]);
        await row(page, "IMG_0412.HEIC").waitFor();
      }
      if (name === "request") {
        await choose(page, [disk("IMG_0412.HEIC", "x"), disk("setlist.docx", "y"), disk(`${"long name ".repeat(9)}.png`, "z")]);
        await row(page, "setlist.docx").waitFor();
        await page.waitForFunction(() => document.querySelectorAll("#list .sending, #list .waiting").length === 0);
      }
    });
  },
};
