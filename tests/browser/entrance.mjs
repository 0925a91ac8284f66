// Signing in and out, accepting an invitation, and the list of buckets: with sessions of the server.

import assert from "node:assert/strict";
import { base, close, open } from "./driver.mjs";
import { account, invitation, newcomer, PASSWORD, send, signIn } from "./sessions.mjs";

const ENTRANCE = { name: "Sign in" };

/** Fills in the sign-in form, and submits it. */
export async function enter(page, name, password = PASSWORD) {
  await page.getByRole("heading", ENTRANCE).waitFor();
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", ENTRANCE).click();
}

/** Returns the server's session state of a cookie. */
const session = async (cookie) => (await send("GET", `${base}/-/session`, undefined, cookie)).json();

/** The session cookie of a page. */
const cookieOf = async (page) => (await page.context().cookies()).find((it) => it.name.endsWith("trug-session"));

export const tests = {
  async sign_in_is_requested_in_place_and_returns_to_the_address() {
    await newcomer("eve");
    const page = await open("/-/files/photos/?view=tiles", { session: null });
    await enter(page, "eve", "not her password");
    await page.locator(".problem", { hasText: "Wrong name or password" }).waitFor();
    await enter(page, "nobody of this name");
    await page.locator(".problem", { hasText: "Wrong name or password" }).waitFor();
    assert.equal(await cookieOf(page), undefined, "a wrong password gets a cookie");
    await page.getByLabel("Name").fill("eve");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.keyboard.press("Enter");
    await page.locator(".who", { hasText: "eve" }).waitFor();
    assert.equal(new URL(page.url()).pathname, "/-/files/photos/");
    await page.goto("/-/");
    await page.getByRole("heading", { name: "Create your first bucket" }).waitFor();
    await close(page);
  },

  async session_cookie_is_http_only_and_invalid_after_sign_out() {
    await newcomer("sue");
    const page = await open("/-/", { session: null });
    await enter(page, "sue");
    await page.locator(".who", { hasText: "sue" }).waitFor();
    const cookie = await cookieOf(page);
    assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, "Strict", "/"]);
    assert.equal(await page.evaluate(() => document.cookie), "");
    assert.equal((await session(cookie)).account.name, "sue");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", ENTRANCE).waitFor();
    assert.equal(await cookieOf(page), undefined, "it is still there");
    assert.equal((await session(cookie)).signedIn, false);
    assert.equal((await send("GET", `${base}/api/buckets`, undefined, cookie)).status, 401);
    // Earlier content is not shown from the cache either.
    await page.goBack().catch(() => {});
    await page.goto("/-/");
    await page.getByRole("heading", ENTRANCE).waitFor();
    await close(page);
  },

  async sign_out_everywhere_ends_sessions_of_other_browsers() {
    const one = await newcomer("max");
    const other = await open("/-/", { session: await signIn("max") });
    await other.getByRole("heading", { name: "Create your first bucket" }).waitFor();
    const page = await open("/-/", { session: one });
    await page.getByRole("heading", { name: "Create your first bucket" }).waitFor();
    assert.equal(await page.evaluate(async () => (await fetch("/-/sessions", { method: "DELETE" })).status), 204);
    await other.getByRole("button", { name: "New bucket" }).first().click();
    await other.getByRole("heading", ENTRANCE).waitFor();
    assert.equal((await session(one)).signedIn, false);
    await enter(other, "max");
    await other.getByRole("heading", { name: "Create your first bucket" }).waitFor();
    await close(other);
    await close(page);
  },

  async dialog_does_not_open_over_sign_in_page() {
    const page = await open("/-/", { session: await newcomer("wanda") });
    const requested = page.waitForResponse("**/api/organisations*");
    // Until then the session is over, and the page shows it.
    await page.route("**/api/organisations*", async (route) => {
      await page.getByRole("heading", ENTRANCE).waitFor();
      await route.continue();
    });
    await page.getByRole("button", { name: "New bucket" }).first().click();
    assert.equal(await page.evaluate(async () => (await fetch("/-/sessions", { method: "DELETE" })).status), 204);
    await page.getByRole("link", { name: "API keys" }).first().click();
    assert.equal((await requested).status(), 401);
    await enter(page, "wanda");
    await page.getByRole("button", { name: "New API key" }).first().waitFor();
    assert.equal(await page.locator("dialog").count(), 0);
    await close(page);
  },

  async sign_in_replaces_earlier_session() {
    const attacker = await newcomer("mallory");
    await newcomer("victor");
    // Once with a session of another account, once with a forged cookie.
    for (const planted of [attacker, { ...attacker, value: "x".repeat(attacker.value.length) }]) {
      const page = await open("/-/sign-in", { session: planted });
      if (planted === attacker) {
        await page.locator(".who", { hasText: "mallory" }).waitFor();
        assert.equal(await page.evaluate(async (body) => (await fetch("/-/session", { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } })).status, { name: "victor", password: PASSWORD }), 200);
        await page.reload();
      } else await enter(page, "victor");
      await page.locator(".who", { hasText: "victor" }).waitFor();
      const mine = await cookieOf(page);
      assert.notEqual(mine.value, planted.value);
      assert.equal((await session(mine)).account.name, "victor");
      assert.equal((await session(planted)).signedIn, false, "what was planted is worth something");
      await close(page);
    }
  },

  async invitation_sets_a_password_once() {
    const link = await invitation(await account("ida"));
    const page = await open(link, { session: null });
    await page.getByRole("heading", { name: "Welcome, ida" }).waitFor();
    await page.getByText("You will sign in as ida.").waitFor();
    assert.equal(await page.locator("input[autocomplete=username]").inputValue(), "ida");
    await page.getByLabel("Password").fill("too short");
    await page.getByRole("button", { name: "Set password" }).click();
    assert.ok(page.url().includes("/-/invitation"), page.url());
    await page.getByLabel("Password").fill("four words are enough");
    await page.getByRole("button", { name: "Set password" }).click();
    await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
    await page.locator(".who", { hasText: "ida" }).waitFor();
    assert.ok(!page.url().includes("#"), "the token stays in the address");
    await close(page);
    const again = await open(link, { session: null });
    await again.getByRole("heading", { name: "This invitation doesn't work" }).waitFor();
    await close(again);
    await signIn("ida", { password: "four words are enough" });
  },

  async bucket_is_created_from_the_bucket_list() {
    const page = await open("/-/");
    await page.locator(".card", { hasText: "photos" }).waitFor();
    await page.getByRole("button", { name: "New bucket" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("photos");
    await page.getByRole("button", { name: "Create" }).click();
    await page.locator(".problem", { hasText: "Choose another name" }).waitFor();
    await page.getByRole("dialog").getByLabel("Name").fill("made-here");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    assert.ok(page.url().endsWith("/-/files/made-here/"), page.url());
    await close(page);
  },
};
