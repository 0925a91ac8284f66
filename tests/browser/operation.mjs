// Usage over time, the audit log, the store on its disk, and files imported by the server: of a server with weeks of
// history.

import assert from "node:assert/strict";
import { close } from "./driver.mjs";
import { shared } from "./lived.mjs";

const dialog = (page) => page.getByRole("dialog");
const lived = shared();

/** The next usage points that a page receives. @returns {Promise<any[]>} */
const pointsTold = async (page) => (await (await page.waitForResponse((answer) => answer.url().includes("/usage/history"))).json()).points;

export const tests = {
  async usage_charts_work_by_keyboard_table_and_address() {
    const server = await lived();
    const page = await server.openAs("about:blank");
    const asked = [];
    page.on("request", (request) => { if (request.url().includes("/usage/history")) asked.push(new URL(request.url()).searchParams); });
    const [points] = await Promise.all([pointsTold(page), page.goto("/-/usage/desk")]);
    assert.deepEqual([asked[0].get("step"), asked[0].get("bucketName")], ["hour", "desk"]);
    // The displayed counts are those of the requests in the past hours.
    const lately = server.past.hours.map((it) => [new Date(it.timeMs).toISOString(), it.requests, it.refusals]);
    assert.ok(lately.length > 20);
    assert.deepEqual(points.filter((point) => lately.some(([time]) => time === point.time)).map((point) => [point.time, point.requests, point.refusals]), lately);
    const requests = page.locator(".plot", { has: page.getByRole("heading", { name: "Requests" }) });
    const sum = points.reduce((all, point) => all + point.requests, 0);
    await requests.getByText(`${sum.toLocaleString("en")} total`).waitFor();
    const slider = requests.getByRole("slider");
    await slider.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowLeft");
    const before = points.at(-2).requests.toLocaleString("en");
    assert.notEqual(before, "0");
    await requests.locator("output", { hasText: new RegExp(`: ${before}$`) }).waitFor();
    assert.match(await slider.getAttribute("aria-valuetext"), new RegExp(`: ${before}$`));
    await requests.getByText("Show as table").click();
    await requests.getByRole("row").nth(points.length).waitFor();
    assert.equal(await requests.getByRole("row").count(), points.length + 1);

    await Promise.all([pointsTold(page), page.getByLabel("Bucket", { exact: true }).selectOption("")]);
    await page.waitForURL((url) => url.pathname + url.search === "/-/usage");
    await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
    const [days] = await Promise.all([pointsTold(page), page.getByLabel("Period").selectOption("month")]);
    await page.waitForURL((url) => url.pathname + url.search === "/-/usage?over=month");
    assert.deepEqual([asked.at(-1).get("step"), asked.at(-1).has("bucketName")], ["day", false]);
    // Hours without counts are a gap, and no zero.
    const first = days.findIndex((point) => point.storedBytes !== null);
    assert.ok(first > 5, `${first}`);
    const stored = page.locator(".plot", { has: page.getByRole("heading", { name: "Stored" }) });
    await page.waitForFunction((count) => document.querySelector(".plot [role=slider]")?.getAttribute("aria-valuemax") === String(count - 1), days.length);
    const [, left] = /^M([\d.]+) /.exec(await stored.locator("path.line").getAttribute("d"));
    assert.equal(Number(left), first);
    await page.getByLabel("Bucket", { exact: true }).selectOption("desk");
    await page.waitForURL((url) => url.pathname + url.search === "/-/usage/desk?over=month");
    await page.getByRole("heading", { name: "desk usage" }).waitFor();
    await page.locator(".plot").first().waitFor();
    assert.deepEqual([asked.at(-1).get("step"), asked.at(-1).get("bucketName")], ["day", "desk"]);
    await page.goBack();
    await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
    assert.equal(await page.getByLabel("Period").inputValue(), "month");
    await page.getByRole("table", { name: "Storage by bucket" }).getByRole("link", { name: "desk" }).waitFor();
    await page.getByRole("link", { name: "Home", exact: true }).click();
    await page.getByRole("region", { name: "Last 24 hours" }).getByRole("link", { name: "Details" }).click();
    await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
    await close(page);
  },

  async audit_log_filters_are_in_the_address() {
    const server = await lived();
    await server.ask("POST", "/api/keys", { name: "made just now", scopes: ["list"] });
    const page = await server.openAs("/-/audit");
    await page.getByRole("row", { name: /Sign-in failed.*203\.0\.113\.9/ }).waitFor();
    assert.equal(await page.getByRole("row", { name: /Account created/ }).count(), 0);
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByRole("row", { name: /Account created/ }).first().waitFor();
    assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
    assert.equal(await page.locator(".badge", { hasText: /\w\.\w/ }).count(), 0, "there is an action without words of its own");
    await page.getByLabel("Action").selectOption("key.");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL((url) => url.pathname + url.search === "/-/audit?action=key.");
    await page.getByRole("row", { name: /Webhook changed/ }).first().waitFor({ state: "detached" });
    await page.getByRole("row", { name: /API key revoked/ }).waitFor();
    // A key of each of the two, by the command line; two more of ann, one of them revoked; and the one just created.
    assert.equal(await page.getByRole("row").count(), 1 + 2 + 3 + 1);
    await page.getByRole("main").getByRole("link", { name: /^olga/ }).first().click();
    await page.waitForURL((url) => url.pathname + url.search === `/-/audit?action=key.&actor=${server.olga}`);
    await page.getByRole("row", { name: /API key revoked/ }).waitFor({ state: "detached" });
    await page.reload();
    assert.equal(await page.getByLabel("By (name or ID)").inputValue(), server.olga);
    await page.getByRole("row", { name: /API key created/ }).waitFor();
    assert.equal(await page.getByRole("row").count(), 2);
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
    await dialog(page).getByRole("link", { name: "connecting clients" }).click();
    await page.getByRole("heading", { name: "Connect" }).waitFor();
    await close(page);
  },

  async file_audit_log_is_searched_by_file_name() {
    const server = await lived();
    const put = (/** @type {string} */ name) => {
      const form = new FormData();
      form.append("file", new File([name.slice(0, 4)], name, { type: "text/plain" }));
      return server.ask("POST", "/desk/audited/", form);
    };
    await put("tern.txt");
    await server.ask("DELETE", "/desk/audited/tern.txt");
    await put("gull.txt");
    const page = await server.openAs("/-/audit");
    await page.getByLabel("Log").selectOption("Files");
    await page.waitForURL((url) => url.pathname + url.search === "/-/audit?log=files");
    await page.getByRole("row", { name: /Uploaded.*gull\.txt/ }).waitFor();
    await page.getByLabel("Name contains").fill("TERN");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL((url) => url.pathname + url.search === "/-/audit?log=files&name=TERN");
    await page.getByRole("row", { name: /Deleted.*desk audited\/tern\.txt.*127\.0\.0\.1/ }).waitFor();
    await page.getByRole("row", { name: /Uploaded.*tern\.txt 4 bytes/ }).waitFor();
    assert.equal(await page.getByRole("row").count(), 1 + 2);
    await page.goto(page.url().replace(/-\/audit.*/, "-/files/desk/audited/"));
    await page.getByRole("row", { name: /gull\.txt/ }).click({ button: "right" });
    await page.getByRole("menuitem", { name: "Info" }).click();
    await dialog(page).getByRole("link", { name: "Uploads and deletions of this name" }).click();
    await page.getByRole("row", { name: /Uploaded.*gull\.txt/ }).waitFor();
    assert.equal(await page.getByLabel("File or folder").inputValue(), "audited/gull.txt");
    assert.equal(await page.getByRole("row").count(), 1 + 1);
    await close(page);
  },

  async scrub_reports_damage_and_compaction_reclaims_space() {
    const server = await lived();
    await server.spoil();
    const page = await server.openAs("/-/storage");
    await page.getByText("Accepting writes").waitFor();
    await page.getByText("More than a week ago").first().waitFor();
    await page.getByRole("button", { name: "Verify now" }).click();
    await page.locator(".note", { hasText: "Verifying checksums" }).waitFor();
    await page.getByRole("row", { name: /Verify checksums \(scrub\).*Done.*1 damaged object/ }).waitFor();
    await page.getByRole("row", { name: /desk\/2026\/letter\.txt.*Upload the file again/ }).waitFor();
    await page.getByRole("heading", { name: "1 damaged object" }).waitFor();
    assert.equal((await server.ask("GET", "/api/storage")).damage[0].path, "2026/letter.txt");

    const { retained, compaction } = await server.ask("GET", "/api/storage");
    assert.equal(retained.files, 1);
    assert.ok(compaction.wouldFree >= 3_000_000, `${compaction.wouldFree}`);
    // Retained versions are reclaimable space, also where no segment is worth compacting.
    await page.getByText(/3\.\d+ MB reclaimable/).waitFor();
    await page.getByRole("button", { name: "Reclaim now" }).click();
    await page.locator(".note", { hasText: "Reclaiming space" }).waitFor();
    await page.getByRole("row", { name: /Reclaim space \(compaction\).*Done/ }).waitFor();
    assert.equal((await server.ask("GET", "/api/storage")).retained.files, 0);

    await page.goto("/-/");
    await page.getByRole("region", { name: "Health" }).getByText("1 damaged object.").waitFor();
    await page.goto("/-/files/desk/2026/letter.txt");
    await page.getByRole("alert").filter({ hasText: /damaged/i }).waitFor();
    await close(page);
  },

  async remote_store_view_shows_lag_requests_cost_and_takeover() {
    const server = await lived();
    const remote = {
      url: "s3://trug-replica/main", state: "primary", error: null, ack: "local", epoch: 3, chunk: 4711, unshippedBytes: 0, lagSeconds: 0, complete: true, waitingSegments: 0,
      lastManifestAt: new Date().toISOString(), createsAtomically: true, tier: null,
      requests: [["create", 400_000], ["upload", 100_000], ["read", 100_000], ["list", 0], ["remove", 50_000]].map(([call, succeeded]) => ({ call, succeeded, failed: 0 })),
    };
    const page = await server.openAs("/-/storage");
    const panel = page.locator(".panel", { has: page.getByRole("heading", { name: "Remote store" }) });
    await page.getByText("Accepting writes").waitFor();
    assert.equal((await server.ask("GET", "/api/storage")).remote, null);
    assert.equal(await panel.count(), 0, "no remote store, no panel");
    const shown = async (change) => {
      await page.unrouteAll();
      await page.route("**/api/storage", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: { ...(await response.json()), remote: { ...remote, ...change } } });
      });
      await page.reload();
      await panel.waitFor();
      return panel.innerText();
    };
    const good = await shown({});
    for (const text of ["s3://trug-replica/main", "Primary", "Epoch 3, chunk 4,711", "650,000", "$2.54", "None"]) assert.ok(good.includes(text), `${text}: ${good}`);
    assert.ok(!good.includes("Not atomic") && !(await shown({ createsAtomically: null })).includes("Not atomic"), good);
    const unsafe = await shown({ createsAtomically: false });
    for (const text of ["Not atomic", "Two primaries are not detected."]) assert.ok(unsafe.includes(text), `${text}: ${unsafe}`);
    const behind = await shown({ lagSeconds: 150, unshippedBytes: 7_300_000, waitingSegments: 2, error: "the remote store is unavailable: <b>timeout</b>", ack: "remote" });
    for (const text of ["3 min", "7.30 MB", "2 waiting segments", "<b>timeout</b>", "Writes are acknowledged when the remote store has them."]) assert.ok(behind.includes(text), `${text}: ${behind}`);
    const tier = { localBytesMax: 4e9, localBytes: 3_000_000_000, cachedBytes: 500_000_000, remoteSegments: 7, remoteBytes: 9_000_000_000, fetches: 1, fetchedBytes: 2 };
    const tiered = await shown({ tier });
    for (const text of ["3.50 GB of 4.00 GB", "9.00 GB only in the remote store"]) assert.ok(tiered.includes(text), `${text}: ${tiered}`);
    assert.ok(!good.includes("On this machine") && !(await shown({ tier: { ...tier, remoteSegments: 0 } })).includes("only in"), good);
    const fenced = await shown({ state: "fenced", epoch: 0, error: "process 7 created chunk 4712" });
    for (const text of ["Fenced", "Another server is the primary", "process 7 created chunk 4712"]) assert.ok(fenced.includes(text), `${text}: ${fenced}`);
    await close(page);
  },

  async url_import_job_shows_progress_and_failed_addresses() {
    const server = await lived();
    const { other } = server;
    await server.ask("POST", "/desk/imported/", formOf("here.txt"));
    const held = {};
    other.files.set("/cat.txt", "a cat\n");
    other.files.set("/again/cat.txt", "another cat\n");
    other.files.set("/slow.txt", new Promise((done) => { held.go = done; }));
    const page = await server.openAs("/-/files/desk/imported/");
    await page.locator(".row", { hasText: "here.txt" }).waitFor();
    await page.keyboard.press(".");
    await dialog(page).getByRole("button", { name: /^Import from URLs/ }).click();
    assert.equal(await dialog(page).getByLabel("Destination folder").inputValue(), "imported/");
    await dialog(page).getByLabel("URLs").fill("not an address");
    await dialog(page).getByRole("button", { name: "Import", exact: true }).click();
    await page.locator(".problem", { hasText: "“not an address” isn't a URL" }).waitFor();
    // A rejection is shown at the input field.
    await dialog(page).getByLabel("URLs").fill(`${other.origin}/<b>`);
    await dialog(page).getByRole("button", { name: "Import", exact: true }).click();
    await page.locator(".problem", { hasText: "is not a URL" }).waitFor();
    await dialog(page).getByLabel("URLs").fill(["cat.txt", "", "none.txt", "slow.txt", "again/cat.txt"].map((name) => name && `${other.origin}/${name}`).join("\n"));
    await dialog(page).getByLabel("If a file exists").selectOption("rename");
    const sent = page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/api/jobs"));
    await dialog(page).getByRole("button", { name: "Import", exact: true }).click();
    const { urls, ...rest } = (await sent).postDataJSON();
    assert.deepEqual(rest, { kind: "importUrls", bucketName: "desk", prefix: "imported/", onConflict: "rename" });
    assert.equal(urls.length, 4);
    await page.locator(".note", { hasText: "Importing from URLs: 2 of 4" }).getByRole("button", { name: "Cancel" }).waitFor();
    held.go("it took its time\n");
    await dialog(page).getByRole("row", { name: /\/none\.txt.*404/ }).waitFor();
    await page.getByRole("heading", { name: "3 files imported, 1 URL failed" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator(".row", { hasText: "cat (1).txt" }).waitFor();
    const stored = (await server.ask("GET", "/api/list-objects?bucketName=desk&prefix=imported/")).Contents.map((it) => it.Key);
    assert.deepEqual(stored, ["here.txt", "cat.txt", "cat (1).txt", "slow.txt"].map((name) => `imported/${name}`).toSorted());
    await page.locator(".row .name", { hasText: "slow.txt" }).click();
    await page.locator("dialog.preview pre", { hasText: "it took its time" }).waitFor();
    await close(page);
  },
};

function formOf(name) {
  const form = new FormData();
  form.append("file", new File([`${name}\n`], name));
  return form;
}
