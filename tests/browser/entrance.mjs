// Signing in, setting up, taking up an invitation, and all buckets. The server's side of a session is answered here.

import assert from "node:assert/strict";
import { close, open, shot, SIGNED_IN } from "./driver.mjs";

const NOBODY = { signedIn: false, setUpNeeded: false };

/** A page whose session is what `state` says at the time. */
async function pageWith(state, address) {
  const page = await open("about:blank", { session: { ...NOBODY, answer: false }, extraHTTPHeaders: undefined });
  await page.route("**/-/session", async (route) => {
    if (route.request().method() === "POST") {
      const { password } = route.request().postDataJSON();
      if (password !== "right") {
        return route.fulfill({ status: 401, json: { success: false, code: "wrong_password", error: "The name or the password is wrong" } });
      }
      state.session = SIGNED_IN;
    }
    if (route.request().method() === "DELETE") {
      state.session = NOBODY;
      return route.fulfill({ status: 204 });
    }
    return route.fulfill({ json: state.session });
  });
  await page.route("**/api/buckets?*", (route) => route.fulfill({ json: { success: true, buckets: [], nextCursor: null } }));
  await page.goto(address);
  return page;
}

export const tests = {
  async "whoever is not signed in is asked in place, and then sees what the address names"() {
    const page = await pageWith({ session: NOBODY }, "/-/");
    await page.getByLabel("Name").fill("ann");
    await page.getByLabel("Password").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("The name or the password is wrong").waitFor();
    await page.getByLabel("Password").fill("right");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "No bucket yet" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await close(page);
  },

  async "a server without an operator says how to make one"() {
    const page = await pageWith({ session: { signedIn: false, setUpNeeded: true } }, "/-/");
    await page.getByRole("heading", { name: "Nobody is here yet" }).waitFor();
    await close(page);
  },

  async "setting up sends the token of the fragment, shows the key once and leads inside"() {
    const state = { session: { signedIn: false, setUpNeeded: true } };
    const page = await pageWith(state, "/-/set-up#the-token");
    let sent = null;
    await page.route("**/-/set-up", async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      sent = route.request().postDataJSON();
      state.session = SIGNED_IN;
      return route.fulfill({ json: { account: {}, bucket: { bucketName: "pics" }, key: "trug_the_first_key" } });
    });
    await page.getByLabel("Your name").fill("ann");
    await page.getByLabel("Password").fill("four words are enough");
    await page.getByLabel("First bucket").fill("pics");
    await page.getByLabel("Who may read its files").selectOption("private");
    await page.getByRole("button", { name: "Set up" }).click();
    await page.getByText("trug_the_first_key", { exact: true }).waitFor();
    assert.deepEqual(sent, { token: "the-token", name: "ann", password: "four words are enough", bucketName: "pics", access: "private" });
    assert.ok(!page.url().includes("the-token"), "the token stays in the address");
    await shot(page, "set-up-done");
    await page.getByRole("button", { name: "To the files" }).click();
    await page.getByRole("heading", { name: "Buckets", level: 1 }).waitFor();
    await close(page);
  },

  async "an invitation lets one choose a password"() {
    const state = { session: NOBODY };
    const page = await pageWith(state, "/-/invitation#an-invitation");
    let sent = null;
    await page.route("**/-/invitation", async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      sent = route.request().postDataJSON();
      state.session = SIGNED_IN;
      return route.fulfill({ json: SIGNED_IN });
    });
    await page.getByLabel("Password").fill("four words are enough");
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByRole("heading", { name: "Buckets", level: 1 }).waitFor();
    assert.deepEqual(sent, { token: "an-invitation", password: "four words are enough" });
    await close(page);
  },

  async "a bucket is made where all are shown"() {
    const page = await open("/-/");
    await page.locator(".card", { hasText: "photos" }).waitFor();
    await page.getByRole("button", { name: "New bucket" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("photos");
    await page.getByRole("button", { name: "Make it" }).click();
    await page.locator(".problem", { hasText: "Choose another name" }).waitFor();
    await page.getByRole("dialog").getByLabel("Name").fill("made-here");
    await page.getByRole("button", { name: "Make it" }).click();
    await page.getByRole("heading", { name: "Nothing in here yet" }).waitFor();
    assert.ok(page.url().endsWith("/-/files/made-here/"), page.url());
    await close(page);
  },
};
