// Search in long lists of the management.

import assert from "node:assert/strict";
import { close } from "./driver.mjs";
import { ask, openAs } from "./operator.mjs";

const dialog = (page) => page.getByRole("dialog");

export const tests = {
  async account_search_works_by_keyboard_and_address() {
    for (let at = 1; at <= 12; at += 1) await ask("POST", "/api/accounts", { name: `Night staff ${at}` });
    const page = await openAs("/-/accounts");
    const rows = page.getByRole("table", { name: "Accounts" }).getByRole("row", { name: /Night staff/ });
    const box = page.getByLabel("Find", { exact: true });
    await rows.nth(11).waitFor();
    await page.keyboard.press("/");
    assert.ok(await box.evaluate((it) => it === document.activeElement), "the field has the focus");
    const asked = [];
    page.on("request", (request) => { if (request.url().includes("/api/accounts?")) asked.push(new URL(request.url()).searchParams.get("q")); });
    await page.keyboard.type("STAFF 1");
    await rows.nth(4).waitFor({ state: "detached" });
    assert.deepEqual([await rows.count(), await box.inputValue()], [4, "STAFF 1"]);
    await page.getByRole("status").filter({ hasText: "4 results" }).waitFor({ state: "attached" });
    assert.ok(asked.length < 7 && asked.at(-1) === "STAFF 1", `asked for ${asked}`);
    assert.equal(new URL(page.url()).searchParams.get("q"), "STAFF 1");
    await page.reload();
    await rows.nth(3).waitFor();
    assert.deepEqual([await rows.count(), await box.inputValue()], [4, "STAFF 1"]);
    await box.fill("staff nobody");
    await page.getByRole("heading", { name: "No results" }).waitFor();
    await box.press("Escape");
    await rows.nth(11).waitFor();
    assert.deepEqual([new URL(page.url()).search, await box.inputValue()], ["", ""]);
    assert.ok(await box.evaluate((it) => it === document.activeElement), "the field keeps the focus");
    await close(page);
  },

  async account_is_entered_by_name_where_too_many_to_list() {
    const { account } = await ask("POST", "/api/accounts", { name: "Hannah of many" });
    const { organisation } = await ask("POST", "/api/organisations", { name: "Many" });
    const page = await openAs(`/-/organisations/${organisation.id}`);
    await page.route("**/api/accounts?limit=100", async (route) => {
      const reply = await route.fetch();
      await route.fulfill({ json: { ...(await reply.json()), nextCursor: "more" } });
    });
    await page.getByRole("button", { name: "Invite member" }).click();
    await dialog(page).getByLabel("Account name or ID").fill("Hannah");
    await dialog(page).getByRole("button", { name: "Invite", exact: true }).click();
    await dialog(page).getByText("No account named “Hannah”").waitFor();
    await dialog(page).getByLabel("Account name or ID").fill("Hannah of many");
    await dialog(page).getByRole("button", { name: "Invite", exact: true }).click();
    await page.getByRole("heading", { name: "Invited" }).waitFor();
    const { invited } = (await ask("GET", `/api/organisations/${organisation.id}`)).organisation;
    assert.deepEqual(invited, [{ account: account.id, role: "member" }]);
    await close(page);
  },
};
