// Pages of other origins, which send cross-site requests for a signed-in user. The nearest of them is on another
// port of the same machine: browsers send it the cookie along.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { base, close, FOREIGN, keys, open } from "./driver.mjs";
import { newcomer, PASSWORD } from "./sessions.mjs";

/** Requests of a cross-origin page that need no preflight. */
const TRIES = (base, password) => `<!doctype html><title>nice pictures</title>
<form id="form" method="post" enctype="text/plain" action="${base}/api/keys"><input name='{"name":"stolen","scopes":["read"],"x":"' value='"}'></form>
<iframe id="frame" src="${base}/-/"></iframe>
<script type="module">
const go = async (path, init) => {
  try {
    const answer = await fetch("${base}" + path, { mode: "no-cors", credentials: "include", ...init });
    return answer.type;
  } catch (error) { return "failed"; }
};
const file = new FormData();
file.append("file", new File(["planted"], "planted.txt"));
const text = (body) => new Blob([JSON.stringify(body)], { type: "text/plain" });
await go("/photos/planted/", { method: "POST", body: file });
await go("/api/jobs", { method: "POST", body: text({ kind: "emptyBucket", bucketName: "photos" }) });
await go("/-/session", { method: "POST", body: text({ name: "mallory", password: ${JSON.stringify(password)} }) });
await go("/-/password", { method: "POST", body: text({ current: ${JSON.stringify(password)}, new: "a password of mine" }) });
// With a preflight: the server rejects it.
const asked = [];
for (const [method, path] of [["DELETE", "/-/session"], ["DELETE", "/-/sessions"], ["PUT", "/-/password"], ["DELETE", "/photos/planted.txt"], ["POST", "/api/keys"]]) {
  try {
    const answer = await fetch("${base}" + path, { method, credentials: "include", headers: { "Content-Type": "application/json" }, body: "{}" });
    asked.push(path + " " + answer.status);
  } catch { asked.push(path + " refused"); }
}
// Requests whose responses it tries to read.
for (const path of ["/-/session", "/api/buckets", "/api/keys"]) {
  try {
    const answer = await fetch("${base}" + path, { credentials: "include" });
    asked.push(path + " " + answer.status);
  } catch { asked.push(path + " refused"); }
}
window.asked = asked;
</script>`;

/** Another site, on a port of its own. */
async function site(host, page) {
  const server = createServer((_, answer) => {
    answer.writeHead(200, { "Content-Type": "text/html" });
    answer.end(page);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { address: `http://${host}:${server.address().port}/`, close: () => server.close() };
}

export const tests = {
  async cross_origin_pages_cannot_act_or_read() {
    const cookie = await newcomer("clara");
    await newcomer("mallory-of-origins");
    for (const host of ["127.0.0.1", "localhost"]) {
      const evil = await site(host, TRIES(base, PASSWORD));
      const page = await open("/-/", { session: cookie });
      await page.getByRole("heading", { name: "Create your first bucket" }).waitFor();
      const other = await page.context().newPage();
      const statuses = [];
      other.on("response", (answer) => { if (answer.url().startsWith(base)) statuses.push([answer.request().method(), new URL(answer.url()).pathname, answer.status()]); });
      await other.goto(evil.address);
      await other.waitForFunction(() => window.asked !== undefined);
      const asked = await other.evaluate(() => window.asked);
      // A script sees of each response only that it was blocked.
      assert.deepEqual(asked.filter((it) => !/ (refused|401|403)$/.test(it)), [], host);
      // The form navigates the page there, with the cookie where only the port differs.
      await Promise.all([other.waitForURL(`${base}/api/keys`), other.evaluate(() => document.getElementById("form").submit())]);
      const done = statuses.filter(([method, , status]) => method !== "GET" && method !== "OPTIONS" && status < 400);
      assert.deepEqual(done, [], host);
      assert.ok(statuses.some(([method, path, status]) => method === "POST" && path === "/photos/planted/" && [401, 403].includes(status)), JSON.stringify(statuses));
      assert.deepEqual(await keys("photos", "planted/"), [], host);
      await other.close();
      // Everything is unchanged: the signed-in account, the session, the keys.
      await page.reload();
      await page.locator(".who", { hasText: "clara" }).waitFor();
      assert.deepEqual(await page.evaluate(async () => (await (await fetch("/api/keys")).json()).apiKeys), [], host);
      await close(page);
      evil.close();
    }
  },

  async cross_origin_pages_cannot_frame_the_dashboard() {
    const evil = await site("127.0.0.1", `<!doctype html><iframe src="${base}/-/"></iframe>`);
    const page = await open("/-/", {});
    await page.locator(".card").first().waitFor();
    const other = await page.context().newPage();
    await other.goto(evil.address);
    await other.waitForLoadState("load");
    const inside = other.frames()[1];
    assert.equal(await inside.evaluate(() => document.querySelector("#app") === null).catch(() => true), true, "it is framed");
    await other.close();
    await close(page);
    evil.close();
  },

  async dns_rebinding_gets_neither_dashboard_nor_session() {
    await newcomer("nora");
    const page = await open("about:blank", { session: null });
    const at = base.replace("127.0.0.1", FOREIGN);
    assert.equal((await page.goto(`${at}/-/`)).status(), 421);
    const statuses = await page.evaluate(async (password) => {
      const headers = { "Content-Type": "application/json" };
      const body = JSON.stringify({ name: "nora", password });
      const asked = [fetch("/-/session", { method: "POST", headers, body }), fetch("/-/session"), fetch("/-/set-up", { method: "POST", headers, body: "{}" }), fetch("/api/buckets")];
      return (await Promise.all(asked)).map((answer) => answer.status);
    }, PASSWORD);
    assert.deepEqual(statuses, [421, 421, 421, 401]);
    assert.deepEqual(await page.context().cookies(), []);
    await page.context().close();
  },
};
