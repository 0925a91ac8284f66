// Every view, light and dark, wide and narrow: no serious axe violation, no horizontal scrolling.

import assert from "node:assert/strict";
import { findings } from "./accessibility.mjs";
import { close, open, options, shot, waitForRows } from "./driver.mjs";
import { fillFolder } from "./preview.mjs";

/** Runs an action, and waits for the dialog that it opens. */
export const inFront = (act) => async (page) => {
  await act(page);
  await page.locator("dialog[open]").waitFor();
};

/** Name, address, awaited selector, and the actions before the check. */
const VIEWS = [
  ["home", "/-/", ".card"],
  ["files", "/-/files/photos/look/", ".row"],
  ["tiles", "/-/files/photos/look/?view=tiles", ".tile img.here"],
  ["many", "/-/files/many/", ".row"],
  ["empty", "/-/files/photos/nothing/", ".empty h2"],
  ["chosen", "/-/files/photos/look/?selected=note.txt&selected=data.json", ".selection-bar:not([hidden])"],
  ["results", "/-/search/photos?q=hills", ".row mark"],
  ["picture", "/-/files/photos/look/hills%201.png", ".zoom:not([hidden])"],
  ["clear-picture", "/-/files/photos/look/disc.png", ".zoom:not([hidden])"],
  ["text", "/-/files/photos/look/data.json", ".stage pre"],
  ["bytes", "/-/files/photos/look/bytes.bin", ".stage pre"],
  ["playground", "/-/playground/photos/look/hills%201.png", ".saving:not(:empty)"],
  ["nowhere", "/-/files/photos-that-are-not-there/", "[role=alert]"],
  ["help", "/-/files/photos/look/", ".row:focus", inFront((page) => page.keyboard.press("?"))],
  ["rename", "/-/files/photos/look/", ".row:focus", inFront((page) => page.keyboard.press("F2"))],
  ["forms", "/-/files/photos/look/?selected=note.txt", ".selection-bar:not([hidden])", inFront((page) => page.keyboard.press("f"))],
  ["new-bucket", "/-/", ".card", inFront((page) => page.getByRole("button", { name: "New bucket" }).click())],
  ["sign-in", "/-/", ".entrance form", null, null],
  ["invitation", "/-/invitation#token", ".entrance form", undefined, null, { "POST **/-/invitation": { name: "carl", expiresAt: "2026-11-27T10:00:00.000Z" } }],
  ["invitation-expired", "/-/invitation#token", ".entrance a", undefined, null, { "POST **/-/invitation": [410, { code: "link_expired", error: "The link has expired" }] }],
];

/** Overrides responses while a view is checked: by method and pattern, with a status, or without any response. */
async function telling(page, overrides) {
  const routes = Object.entries(overrides).map(([what, answer]) => {
    const [method, pattern] = what.split(" ");
    const [status, json] = Array.isArray(answer) ? answer : [200, answer];
    return [pattern, (route) => {
      if (route.request().method() !== method) return route.fallback();
      return answer === null ? route.abort() : route.fulfill({ status, json: { success: status < 400, ...json } });
    }];
  });
  for (const [pattern, answer] of routes) await page.route(pattern, answer);
  return async () => {
    for (const [pattern, answer] of routes) await page.unroute(pattern, answer);
  };
}

/** Elements of a page, or of a dialog in front of it, that do not fit. */
const misfits = (page) => page.evaluate(() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  const dialog = document.querySelector("dialog[open]:last-of-type");
  const beyond = [...document.querySelectorAll("#app *, dialog[open] *")].filter((it) => {
    const box = it.getBoundingClientRect();
    return box.width > 0 && box.right > clientWidth + 1 && !it.closest(".side, .unseen, .skip, pre, .canvas, .forms code, thead");
  });
  const name = (it) => `${it.tagName}.${it.className}`;
  // Clipped content could be scrolled to, and is invisible.
  const wide = [...document.querySelectorAll("#main, dialog[open], .selection-bar, .sheet-page, .panel, .uploads")].filter((it) => it.scrollWidth > it.clientWidth + 1);
  const frame = dialog?.getBoundingClientRect();
  const isOut = frame && (frame.top < 0 || frame.left < 0 || frame.bottom > innerHeight || frame.right > innerWidth);
  return [
    ...(scrollWidth > clientWidth ? [`the page is ${scrollWidth} wide of ${clientWidth}`] : []), ...(isOut ? [`the dialog is at ${JSON.stringify(frame)}`] : []),
    ...beyond.slice(0, 3).map((it) => `${name(it)} is beyond the edge`), ...wide.slice(0, 3).map((it) => `${name(it)} is ${it.scrollWidth} wide of ${it.clientWidth}`),
  ];
});

/** Keeps a screenshot of content that needs scrolling. */
async function whole(page, name) {
  const { width, height } = page.viewportSize();
  const hidden = await page.evaluate(() => {
    const it = document.querySelector("dialog[open]:last-of-type") ?? document.querySelector("#main");
    return it && it.className !== "preview" ? it.scrollHeight - it.clientHeight : 0;
  });
  if (hidden < 2 || hidden > 4_000) return;
  await page.setViewportSize({ width, height: height + hidden });
  try {
    await shot(page, `${name}-whole`);
  } finally {
    await page.setViewportSize({ width, height });
  }
}

/** A phone. */
const NARROW = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

/** Violations of a wide page, in the light and the dark theme. */
async function audited(page, name) {
  const found = [];
  await inBothSchemes(page, async (scheme) => {
    found.push(...(await findings(page, { onlyColours: scheme === "dark" })).map((it) => `${name}, ${scheme}: ${it}`));
    if (options.shots) await pictured(page, `${name}-${scheme}`);
  });
  return found;
}

/** @param {(scheme: "light" | "dark") => Promise<void>} act */
async function inBothSchemes(page, act) {
  for (const scheme of /** @type {const} */ (["light", "dark"])) {
    await page.emulateMedia({ colorScheme: scheme });
    await act(scheme);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** Keeps screenshots of a view. */
async function pictured(page, name) {
  await shot(page, name);
  await whole(page, name);
}

/** Checks pages for clients without an account, in light and dark, wide and narrow. @param {[string, string][]} pages names and paths @param {(page: any, name: string) => Promise<void>} prepare */
export async function lookAtPublicPages(pages, prepare) {
  const wrong = [];
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    for (const width of [1440, 360]) {
      for (const [name, path] of pages) {
        const page = await open(path, { session: null, colorScheme, viewport: { width, height: 800 } });
        await prepare(page, name);
        await shot(page, `${name}-${colorScheme}-${width}`);
        wrong.push(...(await findings(page)).map((finding) => `${name} ${colorScheme} ${width}: ${finding}`));
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (overflow > 0) wrong.push(`${name} ${colorScheme} ${width}: ${overflow} px too wide`);
        await close(page);
      }
    }
  }
  assert.deepEqual(wrong, []);
}

/** Checks views, one after the other. @param {"wide" | "narrow"} kind @param {(context: any) => Promise<any>} [begin] opens the page of the viewer */
export async function look(kind, views = VIEWS, begin = (how) => open("about:blank", how)) {
  const context = { colorScheme: "light", ...(kind === "narrow" ? NARROW : {}) };
  const complaints = [];
  const pages = new Map();
  for (const [name, address, awaited, act, session, overrides = {}] of views) {
    if (!pages.has(session)) pages.set(session, await begin({ ...context, ...(session === undefined ? {} : { session }) }));
    const page = pages.get(session);
    const forget = await telling(page, overrides);
    try {
      await page.goto(address);
      // An address with another fragment is the same page.
      if (address.includes("#")) await page.reload();
      await page.locator(awaited).first().waitFor();
      await act?.(page);
      complaints.push(...(await misfits(page)).map((it) => `${name}, ${kind}: ${it}`));
      if (kind === "wide") {
        complaints.push(...await audited(page, name));
        continue;
      }
      if (options.shots) await inBothSchemes(page, (scheme) => pictured(page, `${name}-${kind}-${scheme}`));
    } catch (error) {
      // The others are checked all the same.
      complaints.push(`${name}, ${kind}: ${error.message}`);
    } finally {
      await forget();
    }
  }
  for (const page of pages.values()) await close(page).catch((error) => complaints.push(`${kind}: ${error.message}`));
  assert.deepEqual(complaints, []);
}

async function lookAtFiles(kind) {
  await fillFolder();
  await look(kind);
}

export const tests = {
  file_views_are_accessible_and_fit_wide_screens: () => lookAtFiles("wide"),
  file_views_are_accessible_and_fit_narrow_screens: () => lookAtFiles("narrow"),

  async touch_opens_selects_and_reaches_buckets_in_the_menu() {
    await fillFolder();
    const page = await open("/-/files/photos/look/", NARROW);
    // Only visible rows have elements.
    await page.setViewportSize({ width: 360, height: 1200 });
    await page.locator(".row", { hasText: "note.txt" }).tap();
    await page.locator("dialog.preview pre", { hasText: "Second line" }).waitFor();
    await page.getByRole("button", { name: "Close (Esc)" }).tap();
    await page.locator(".row", { hasText: "note.txt" }).locator(".tick").tap();
    await page.getByRole("toolbar").getByText("1 selected").waitFor();
    await page.locator(".row", { hasText: "data.json" }).tap();
    await page.getByRole("toolbar").getByText("2 selected").waitFor();
    await page.getByRole("button", { name: "Menu" }).tap();
    await shot(page, "menu-narrow");
    await page.getByRole("link", { name: /many/ }).first().tap();
    await waitForRows(page, 100_000);
    await close(page);
  },

  async theme_toggle_persists() {
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
