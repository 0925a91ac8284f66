// Every view, light and dark, wide and narrow: nothing that axe calls serious, nothing to scroll sideways.

import assert from "node:assert/strict";
import { close, findings, open, shot, waitForRows } from "./driver.mjs";
import { fillFolder } from "./preview.mjs";

/** Does something, and waits for the dialog that it opens. */
const inFront = (act) => async (page) => {
  await act(page);
  await page.locator("dialog[open]").waitFor();
};

/** Name, address, what is waited for, and what is done before it is looked at. */
const VIEWS = [
  ["home", "/-/", ".card"],
  ["files", "/-/files/photos/look/", ".row"],
  ["tiles", "/-/files/photos/look/?view=tiles", ".tile img.here"],
  ["many", "/-/files/many/", ".row"],
  ["empty", "/-/files/photos/nothing/", ".empty h2"],
  ["chosen", "/-/files/photos/look/?selected=note.txt&selected=data.json", ".chosen:not([hidden])"],
  ["results", "/-/search/photos?q=hills", ".row mark"],
  ["picture", "/-/files/photos/look/hills%201.png", ".zoom:not([hidden])"],
  ["clear-picture", "/-/files/photos/look/disc.png", ".zoom:not([hidden])"],
  ["text", "/-/files/photos/look/data.json", ".stage pre"],
  ["bytes", "/-/files/photos/look/bytes.bin", ".stage pre"],
  ["playground", "/-/playground/photos/look/hills%201.png", ".saving:not(:empty)"],
  ["nowhere", "/-/files/photos-that-are-not-there/", "[role=alert]"],
  ["help", "/-/files/photos/look/", ".row:focus", inFront((page) => page.keyboard.press("?"))],
  ["rename", "/-/files/photos/look/", ".row:focus", inFront((page) => page.keyboard.press("F2"))],
  ["forms", "/-/files/photos/look/?selected=note.txt", ".chosen:not([hidden])", inFront((page) => page.keyboard.press("f"))],
  ["new-bucket", "/-/", ".card", inFront((page) => page.getByRole("button", { name: "New bucket" }).click())],
  ["sign-in", "/-/", ".entrance form", null, null],
  ["set-up", "/-/set-up#token", ".entrance form", null, null],
  ["invitation", "/-/invitation#token", ".entrance form", null, null],
];

/** Looks at views, one after the other. @param {(context: any) => Promise<any>} [begin] opens the page of whoever looks */
export async function look(kind, context, isAudited, views = VIEWS, begin = (how) => open("about:blank", how)) {
  const complaints = [];
  const pages = new Map();
  for (const [name, address, awaited, act, session] of views) {
    if (!pages.has(session)) pages.set(session, await begin({ ...context, ...(session === undefined ? {} : { session }) }));
    const page = pages.get(session);
    await page.goto(address);
    // An address with another fragment is the same page.
    if (address.includes("#")) await page.reload();
    await page.locator(awaited).first().waitFor();
    await act?.(page);
    const wide = await page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      const out = [...document.querySelectorAll("#app *, dialog[open] *")].filter((it) => {
        const box = it.getBoundingClientRect();
        return box.width > 0 && box.right > clientWidth + 1 && !it.closest(".side, .unseen, .skip, pre, .canvas, .forms code, .chosen, thead");
      });
      return scrollWidth > clientWidth ? [`${scrollWidth} of ${clientWidth}`] : out.slice(0, 3).map((it) => `${it.tagName}.${it.className}`);
    });
    if (wide.length > 0) complaints.push(`${name}, ${kind}: wider than the page: ${wide}`);
    if (isAudited) complaints.push(...(await findings(page)).map((it) => `${name}, ${kind}: ${it}`));
    await shot(page, `${name}-${kind}`);
  }
  for (const page of pages.values()) await close(page).catch((error) => complaints.push(`${kind}: ${error.message}`));
  assert.deepEqual(complaints, []);
}

async function lookAtFiles(...how) {
  await fillFolder();
  await look(...how);
}

export const NARROW = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

export const tests = {
  "every view is in order by day": () => lookAtFiles("light", { colorScheme: "light" }, true),
  "every view is in order by night": () => lookAtFiles("dark", { colorScheme: "dark" }, true),
  "every view is in order on a narrow screen": () => lookAtFiles("narrow", { colorScheme: "light", ...NARROW }, false),

  async "a finger opens, chooses by the tick, and finds the buckets behind the menu"() {
    await fillFolder();
    const page = await open("/-/files/photos/look/", NARROW);
    await page.locator(".row", { hasText: "note.txt" }).tap();
    await page.locator("dialog.preview pre", { hasText: "Second line" }).waitFor();
    await page.getByRole("button", { name: "Close (Esc)" }).tap();
    await page.locator(".row", { hasText: "note.txt" }).locator(".tick").tap();
    await page.getByRole("toolbar").getByText("1 chosen").waitFor();
    await page.locator(".row", { hasText: "data.json" }).tap();
    await page.getByRole("toolbar").getByText("2 chosen").waitFor();
    await page.getByRole("button", { name: "Buckets and settings" }).tap();
    await shot(page, "menu-narrow");
    await page.getByRole("link", { name: /many/ }).first().tap();
    await waitForRows(page, 100_000);
    await close(page);
  },

  async "light and dark are turned over, and stay so"() {
    const page = await open("/-/", { colorScheme: "light" });
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await ground();
    await page.getByRole("button", { name: "Dark" }).click();
    await page.getByRole("button", { name: "Light" }).waitFor();
    assert.notEqual(await ground(), before);
    const after = await ground();
    await page.reload();
    await page.locator(".card").first().waitFor();
    assert.equal(await ground(), after);
    await close(page);
  },
};
