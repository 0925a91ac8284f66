// Accounts, organisations and the user's own account, from an invitation to signing out everywhere.

import assert from "node:assert/strict";
import { base, close, open } from "./driver.mjs";
import { fillBucket, openAs } from "./operator.mjs";
import { asOperator as ask } from "./sessions.mjs";

const PASSWORD = "a password of carl";
const OTHER = "another password of carl";
const dialog = (page) => page.getByRole("dialog");
const note = (page, text) => page.locator(".note", { hasText: text });
const account = async (name) => (await ask("GET", "/api/accounts?limit=1000")).accounts.find((it) => it.name === name);

/** Signs in elsewhere; returns the status of the response. */
const signIn = async (name, password) => (await fetch(`${base}/-/session`, { method: "POST", headers: { "Content-Type": "application/json", Origin: base, "User-Agent": "Mozilla/5.0 (Windows NT 10.0) Firefox/150.0" }, body: JSON.stringify({ name, password }) })).status;

export const tests = {
  async account_is_created_invited_limited_and_sets_its_password() {
    const page = await openAs("/-/accounts");
    await page.getByRole("button", { name: "New account" }).click();
    await dialog(page).getByLabel("Name").fill("carl");
    await dialog(page).getByLabel("Storage quota").fill("5 GB");
    await dialog(page).getByRole("button", { name: "Create" }).click();
    const link = await dialog(page).getByRole("group", { name: "Link" }).textContent();
    await dialog(page).getByRole("button", { name: "I have saved it" }).click();
    await page.getByRole("row", { name: /carl.*Invitation pending.*5\.00 GB/ }).waitFor();
    await page.getByRole("button", { name: "Edit carl" }).click();
    await dialog(page).getByText("Plan and standing").click();
    await dialog(page).getByLabel("Plan").selectOption("Pro");
    await dialog(page).getByLabel("File quota").fill("1000");
    await dialog(page).getByLabel("Standing").selectOption("notified");
    const sent = page.waitForRequest((request) => request.method() === "PATCH");
    await dialog(page).getByRole("button", { name: "Save" }).click();
    assert.deepEqual((await sent).postDataJSON(), { plan: "Pro", standing: "notified", objectCountMax: 1000 });
    await page.getByRole("row", { name: /carl.*Pro.*notified/ }).waitFor();
    const made = await account("carl");
    assert.deepEqual([made.plan, made.standing, made.storageBytesMax, made.objectCountMax, made.hasPassword], ["Pro", "notified", 5_000_000_000, 1000, false]);
    await close(page);

    const carl = await open(link, { session: null });
    await carl.getByLabel("Password").fill(PASSWORD);
    await carl.getByRole("button", { name: "Set password" }).click();
    await carl.getByRole("heading", { name: "Create your first bucket" }).waitFor();
    assert.equal(await carl.getByRole("link", { name: "Accounts" }).count(), 0, "views of operators are shown to others");
    await carl.goto("/-/accounts");
    await carl.getByRole("alert").filter({ hasText: /operator/i }).waitFor();
    await carl.getByRole("link", { name: "carl" }).click();
    await carl.getByText("notified", { exact: true }).first().waitFor();
    await carl.getByText("History").click();
    await carl.getByText("good → notified").waitFor();
    await carl.getByLabel("Current password").fill("not the password");
    await carl.getByLabel("New password", { exact: true }).fill(OTHER);
    await carl.getByLabel("Repeat new password").fill(`${OTHER}!`);
    await carl.getByRole("button", { name: "Change password" }).click();
    await carl.locator(".problem", { hasText: "don't match" }).waitFor();
    await carl.getByLabel("Repeat new password").fill(OTHER);
    await carl.getByRole("button", { name: "Change password" }).click();
    await carl.locator(".problem", { hasText: /wrong/i }).waitFor();
    await carl.getByLabel("Current password").fill(PASSWORD);
    await carl.getByRole("button", { name: "Change password" }).click();
    await note(carl, "Password changed").waitFor();
    assert.deepEqual([await signIn("carl", PASSWORD), await signIn("carl", OTHER)], [401, 200]);
    await carl.getByRole("button", { name: "Rename" }).click();
    await dialog(carl).getByLabel("Name").fill("carlo");
    await dialog(carl).getByRole("button", { name: "Rename" }).click();
    await carl.locator(".who", { hasText: "carlo" }).waitFor();
    await carl.reload();
    const other = carl.getByRole("row", { name: /Firefox on Windows/ });
    await other.getByRole("button", { name: "Sign out Firefox on Windows" }).click();
    await other.waitFor({ state: "detached" });
    await carl.getByRole("row", { name: /Chrome on .*This session/ }).waitFor();
    await carl.getByRole("button", { name: "Sign out everywhere" }).click();
    await dialog(carl).getByRole("button", { name: "Sign out everywhere" }).click();
    await carl.getByRole("heading", { name: "Sign in" }).waitFor();
    await carl.reload();
    await carl.getByLabel("Name").fill("carlo");
    await carl.getByLabel("Password").fill(OTHER);
    await carl.keyboard.press("Enter");
    await carl.getByRole("heading", { name: "Your account" }).waitFor();
    await close(carl);
  },

  async organisation_roles_decide_which_actions_are_offered() {
    const password = "a password of dora";
    const { account: dora } = await ask("POST", "/api/accounts", { name: "dora" });
    const { url } = await ask("POST", `/api/accounts/${dora.id}/invitations`);
    const page = await openAs("/-/organisations");
    await page.getByRole("button", { name: "New organisation" }).first().click();
    await dialog(page).getByLabel("Name").fill("Night shift");
    await dialog(page).getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Night shift", level: 1 }).waitFor();
    const id = new URL(page.url()).pathname.split("/").at(-1);
    const members = async () => Object.fromEntries((await ask("GET", `/api/organisations/${id}`)).organisation.members.map((it) => [it.name, it.role]));
    await page.getByRole("button", { name: "Invite member" }).click();
    await dialog(page).getByLabel("Account").selectOption({ label: "dora" });
    await dialog(page).getByLabel("Role").selectOption("viewer");
    await dialog(page).getByRole("button", { name: "Invite", exact: true }).click();
    await page.getByRole("heading", { name: "Invited" }).waitFor();
    assert.deepEqual(await members(), { olga: "owner" });
    await page.goto("/-/");
    await page.getByRole("button", { name: "New bucket" }).first().click();
    await dialog(page).getByLabel("Name").fill("night");
    await dialog(page).getByLabel("Owner").selectOption({ label: "Night shift" });
    await dialog(page).getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    assert.equal((await ask("GET", "/api/buckets/night")).bucket.organisation, id);

    const other = await open(url, { session: null });
    await other.getByLabel("Password").fill(password);
    await other.getByRole("button", { name: "Set password" }).click();
    await other.getByRole("heading", { name: "Create your first bucket" }).waitFor();
    await other.goto("/-/organisations");
    await other.getByRole("heading", { name: "Invitation to Night shift" }).waitFor();
    await other.getByRole("button", { name: "Accept" }).click();
    await other.getByRole("heading", { name: "Night shift", level: 1 }).waitFor();
    assert.deepEqual(await members(), { olga: "owner", dora: "viewer" });
    await other.goto("/-/");
    await other.locator(".card", { hasText: "night" }).waitFor();
    await other.goto("/-/settings/night");
    await other.getByText("Your role is viewer").waitFor();
    assert.ok(await other.getByLabel("Visibility").isDisabled());
    assert.equal(await other.getByRole("button", { name: "Delete…" }).count(), 0);

    await page.goto(`/-/organisations/${id}`);
    await page.getByLabel("Role of dora").selectOption("admin");
    await note(page, "dora is now admin").waitFor();
    assert.deepEqual(await members(), { olga: "owner", dora: "admin" });
    await other.reload();
    await other.getByRole("button", { name: "Delete…" }).waitFor();
    await other.goto(`/-/organisations/${id}`);
    await other.getByRole("button", { name: "Leave" }).click();
    await dialog(other).getByRole("button", { name: "Leave" }).click();
    await other.getByRole("heading", { name: "No organisations yet" }).waitFor();
    assert.deepEqual(await members(), { olga: "owner" });
    await close(other);
    await page.getByRole("button", { name: "Rename" }).click();
    await dialog(page).getByLabel("Name").fill("Day shift");
    await dialog(page).getByRole("button", { name: "Rename" }).click();
    await page.getByRole("heading", { name: "Day shift", level: 1 }).waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await dialog(page).getByRole("button", { name: "Delete organisation" }).click();
    await page.locator(".problem").waitFor();
    await ask("DELETE", "/api/buckets/night");
    await dialog(page).getByRole("button", { name: "Delete organisation" }).click();
    await page.waitForURL("**/-/organisations");
    assert.ok(!(await ask("GET", "/api/organisations")).organisations.some((it) => it.id === id));
    await close(page);
  },

  async missing_permission_or_module_page_says_what_to_do() {
    await fillBucket("mine");
    const page = await open("/-/settings/mine");
    await page.getByRole("alert").filter({ hasText: "The bucket may have been deleted" }).waitFor();
    await page.goto("/-/storage");
    await page.getByRole("alert").filter({ hasText: /operator/i }).waitFor();
    // As after an update of the server.
    await page.route("**/assets/*/organisations.mjs", (route) => route.fulfill({ status: 404, body: "" }));
    await page.getByRole("link", { name: "Organisations" }).click();
    await page.getByRole("alert").filter({ hasText: "Couldn't load this page" }).waitFor();
    await page.unroute("**/assets/*/organisations.mjs");
    await page.getByRole("button", { name: "Reload" }).click();
    await page.getByRole("heading", { name: "Organisations", exact: true }).waitFor();
    await close(page);
  },
};
