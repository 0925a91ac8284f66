// Two tenants: nothing of one is visible to the other, also by addresses that are typed in.

import assert from "node:assert/strict";
import { api, close, open, store } from "./driver.mjs";
import { newcomer } from "./sessions.mjs";

/** Responses of the API to a page, except for requested names, and values that vary by request. */
const answer = (page, method, path, body) => page.evaluate(async ([method, path, body]) => {
  const init = { method, headers: { "Content-Type": "application/json" }, body: body === null ? undefined : JSON.stringify(body) };
  const answer = await fetch(path, init);
  const text = (await answer.text()).replace(/"requestId":"[^"]*"/, "").replaceAll("secrets", "BUCKET").replaceAll("not-there", "BUCKET");
  return { status: answer.status, type: answer.headers.get("Content-Type"), text };
}, [method, path, body ?? null]);

export const tests = {
  async other_account_sees_no_bucket_file_hit_key_or_job() {
    await store("secrets", "plans/plan.txt", "a plan\n");
    await store("photos", "mine/public.txt", "seen by address\n");
    await api("POST", "/api/keys", JSON.stringify({ name: "a key of ann", scopes: ["read"] }), { "Content-Type": "application/json" });
    const job = JSON.stringify({ kind: "deleteFolder", bucketName: "secrets", prefix: "nothing/" });
    const { job: { id } } = await (await api("POST", "/api/jobs", job, { "Content-Type": "application/json" })).json();
    const page = await open("/-/", { session: await newcomer("bob") });
    await page.getByRole("heading", { name: "Create your first bucket" }).waitFor();
    assert.equal(await page.locator(".buckets li").count(), 0);

    // Resources without access look like missing ones.
    // Of the folder, also where a preview is over it: delivery reveals by 403 that a private bucket exists.
    const alert = page.locator("#main [role=alert]");
    const said = async (address) => {
      await page.goto(address);
      await alert.first().waitFor({ state: "attached" });
      return (await alert.first().textContent()).replaceAll("secrets", "BUCKET").replaceAll("not-there", "BUCKET");
    };
    for (const address of ["/-/files/secrets/", "/-/files/secrets/plans/", "/-/search/secrets?q=plan", "/-/files/secrets/plans/plan.txt"]) {
      assert.equal(await said(address), await said(address.replace("secrets", "not-there")).then((it) => it), address);
      assert.ok(!(await page.locator("body").innerText()).includes("a plan"), address);
    }
    // The preview over the folder shows the response of delivery, which reveals that a private bucket exists.
    await page.goto("/-/files/secrets/plans/plan.txt");
    await page.locator(".stage [role=alert]", { hasText: "You don't have access to this private bucket. Ask the bucket's owner" }).waitFor();
    await page.goto("/-/search/photos?q=public");
    await alert.first().waitFor();
    await page.goto("/-/files/photos/mine/");
    await alert.first().waitFor();
    assert.equal(await page.locator(".row:not(.pending)").count(), 0);

    const tries = [
      ["GET", "/api/buckets/secrets"], ["GET", "/api/buckets/secrets/folders"], ["GET", "/api/list-objects?bucketName=secrets"],
      ["GET", "/api/search/secrets?q=plan"], ["GET", "/api/buckets/secrets/deleted"], ["DELETE", "/secrets/plans/plan.txt"],
      ["DELETE", "/api/buckets/secrets?force=true"], ["PATCH", "/api/buckets/secrets", { access: "public" }],
      ["POST", "/api/buckets/secrets/move", { from: "plans/plan.txt", to: "x.txt" }], ["POST", "/api/buckets/secrets/undelete", { path: "plans/plan.txt" }],
      ["POST", "/api/jobs", { kind: "emptyBucket", bucketName: "secrets" }], ["GET", "/api/presigned-url?bucketName=secrets"],
    ];
    for (const [method, path, body] of tries) {
      const other = body && JSON.parse(JSON.stringify(body).replaceAll("secrets", "not-there"));
      const got = await answer(page, method, path, body);
      assert.deepEqual(got, await answer(page, method, path.replace("secrets", "not-there"), other), `${method} ${path}`);
      assert.equal(got.status, 404, `${method} ${path}: ${got.text}`);
    }
    assert.equal((await answer(page, "GET", `/api/jobs/${id}`)).status, 404);
    for (const path of ["/api/buckets", "/api/keys", "/api/jobs", "/api/usage"]) {
      const { status, text } = await answer(page, "GET", path);
      assert.equal(status, 200, path);
      for (const word of ["BUCKET", "photos", "ann", id]) assert.ok(!text.includes(word), `${path}: ${text}`);
    }
    for (const path of ["/api/accounts", "/api/storage"]) assert.equal((await answer(page, "GET", path)).status, 403, path);
    assert.equal((await answer(page, "GET", "/secrets/plans/plan.txt")).status, (await answer(page, "GET", "/secrets/none.txt")).status);
    await close(page);
    assert.equal(await (await api("GET", "/secrets/plans/plan.txt")).text(), "a plan\n");
  },
};
