// Documentation pages: search, tabs, values of the reader, the example of the upload guide, and their looks with and
// without scripts.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { findings } from "./accessibility.mjs";
import { base, close, key, open, options, shot, withClipboard } from "./driver.mjs";

const NARROW = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const WIDE = { viewport: { width: 1440, height: 900 } };

/** Paths of all pages, as the contents list them. */
async function paths() {
  const page = await (await fetch(`${base}/-/docs`)).text();
  return [...new Set([...page.matchAll(/href="(\/-\/docs[^"#]*)"/g)].map(([, path]) => path))];
}

/** Opens a page of the documentation without a session. */
const read = (path, how = {}) => open(path, { session: null, ...how });

/** Types into the search, and returns the titles of the results. */
async function found(page, query) {
  await page.locator("#query").fill(query);
  await page.locator("#found:not([hidden])").waitFor();
  await page.waitForFunction((text) => document.getElementById("query").value === text && (document.querySelector("[role=option]") || !document.getElementById("no-match").hidden), query);
  return page.locator("[role=option] > span").allTextContents();
}

async function assertFits(page, what) {
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wider <= 0, `${what} scrolls to the side by ${wider}`);
}

/**
 * Checks that every page fits and has no axe violation.
 * @param {string} width @param {{}} how @param {("light" | "dark")[]} schemes
 */
async function lookAtAll(width, how, schemes) {
  const all = await paths();
  const page = await read("/-/docs", how);
  for (const path of all) {
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(path);
    await assertFits(page, `${path} ${width}`);
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await findings(page, { onlyColours: colorScheme === "dark" }), [], `${path} ${width} ${colorScheme}`);
      await shot(page, `docs-${path.split("/").slice(3).join("-") || "front"}-${width}-${colorScheme}`);
    }
  }
  await close(page);
  return `${all.length} pages`;
}

export const tests = {
  async documentation_search_finds_synonyms_and_typing_errors() {
    const page = await read("/-/docs");
    for (const query of ["resize", "thumbnail", "reszie", "Resize image", "thumnail", "crop"]) {
      assert.equal((await found(page, query))[0], "Image transforms", query);
    }
    for (const [query, title] of [["verify signature", "Webhooks"], ["backblaze", "Migration"], ["sharex", "ShareX, game servers"], ["429", "Errors and rate limits"], ["next.js", "Next.js, Nuxt"]]) {
      assert.equal((await found(page, query))[0], title, query);
    }
    assert.ok((await found(page, "randomizeName")).includes("randomizeName"));
    assert.ok((await found(page, "createBucket")).includes("POST /api/buckets"));
    await close(page);
  },

  async documentation_search_without_match_says_so() {
    const page = await read("/-/docs/cdn");
    assert.deepEqual(await found(page, "xyzzyqwk"), []);
    const message = "No match for “xyzzyqwk”. Browse the guides.";
    assert.equal(await page.locator("#no-match").textContent(), message);
    assert.match(await page.locator("#count").textContent(), /No match/);
    await page.locator("#no-match a").click();
    await page.waitForURL("**/-/docs#guides");
    await page.getByRole("heading", { name: "Guides" }).last().waitFor();
    assert.deepEqual(await found(page, "###"), []);
    await close(page);
  },

  async documentation_search_works_by_keyboard() {
    const page = await read("/-/docs");
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "query");
    await page.keyboard.type("resize");
    const active = () => page.locator("#query").getAttribute("aria-activedescendant");
    await page.locator("[role=option]").first().waitFor();
    assert.deepEqual([await active(), await page.locator("#query").getAttribute("aria-expanded")], ["result-0", "true"]);
    await page.keyboard.press("ArrowDown");
    assert.equal(await active(), "result-1");
    assert.equal(await page.locator("#result-1").getAttribute("aria-selected"), "true");
    await page.keyboard.press("Escape");
    assert.ok(await page.locator("#found").isHidden());
    await found(page, "reszie");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/-/docs/transforms");
    await close(page);
  },

  async documentation_examples_have_tabs_server_and_bucket() {
    const page = await read("/-/docs");
    const shown = () => page.locator(".example .code:visible code").allTextContents();
    const upload = page.locator(".example:has([role=tab])").first();
    assert.deepEqual(await upload.getByRole("tab").allTextContents(), ["curl", "JavaScript", "Python"]);
    assert.ok((await shown()).some((code) => code.includes(`-F file=@cat.jpg ${base}/pics/2026/`)));
    await upload.getByRole("tab", { name: "JavaScript" }).click();
    await page.keyboard.press("ArrowRight");
    assert.equal(await upload.locator("[aria-selected=true]").textContent(), "Python");
    assert.ok((await shown()).some((code) => code.includes("urllib.request")));
    await page.getByLabel("Bucket in the examples").fill("my-files");
    assert.ok((await shown()).some((code) => code.includes(`"${base}/my-files/2026/"`)));
    await page.goto("/-/docs/private-files");
    assert.equal(await page.locator(".example:has([role=tab]) [aria-selected=true]").first().textContent(), "Python");
    await withClipboard(async () => {
      await page.locator(".copy:visible").nth(1).click();
      await page.getByText("Copied", { exact: true }).waitFor();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(copied, new RegExp(`^import json.*${base}/api/buckets/contracts/download-links`, "s"));
    });
    await close(page);
  },

  async documentation_has_dashboard_theme_and_link_back() {
    const page = await read("/-/docs/transforms", { colorScheme: "light" });
    const ground = () => page.evaluate(() => getComputedStyle(document.querySelector(".top")).backgroundColor);
    const light = await ground();
    await page.getByRole("button", { name: "Dark theme" }).click();
    assert.notEqual(await ground(), light);
    await page.reload();
    assert.notEqual(await ground(), light);
    assert.equal(await page.evaluate(() => localStorage.getItem("trug-theme")), "dark");
    await page.getByRole("link", { name: "trug, home" }).click();
    await page.waitForURL((url) => !url.pathname.startsWith("/-/docs"));
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await close(page);
  },

  async documentation_is_accessible_and_fits_wide_screens() {
    return lookAtAll("wide", WIDE, ["light", "dark"]);
  },

  // The colours of the dark theme do not depend on the width.
  async documentation_is_accessible_and_fits_narrow_screens() {
    return lookAtAll("narrow", NARROW, options.shots ? ["light", "dark"] : ["light"]);
  },

  async documentation_contents_open_on_narrow_screen() {
    const page = await read("/-/docs", NARROW);
    const contents = page.getByRole("navigation", { name: "Contents" });
    assert.ok(await contents.isHidden());
    await page.getByRole("button", { name: "Contents" }).click();
    await contents.waitFor();
    await shot(page, "docs-contents-narrow");
    assert.deepEqual(await findings(page), []);
    await contents.getByRole("link", { name: "S3 clients" }).click();
    await page.waitForURL("**/-/docs/s3");
    assert.ok((await found(page, "resize")).length > 0);
    await shot(page, "docs-search-narrow");
    assert.deepEqual(await findings(page), []);
    await close(page);
  },

  async documentation_is_readable_without_scripts() {
    const page = await read("/-/docs", { javaScriptEnabled: false });
    const text = await page.locator("#text").innerText();
    for (const part of ["curl -H", "import { Trug }", "urllib.request", "https://files.example.com/pics/2026/", "Guides"]) {
      assert.ok(text.includes(part), part);
    }
    assert.ok(await page.getByRole("navigation", { name: "Contents" }).isVisible());
    assert.ok(await page.locator("#search").isHidden());
    await page.locator("#contents").getByRole("link", { name: "Buckets" }).click();
    await page.locator("#createBucket").waitFor();
    await shot(page, "docs-without-scripts");
    await close(page);
  },

  async documentation_missing_page_lists_the_guides() {
    const page = await read("/-/docs/none");
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    await page.locator("#text").getByRole("link", { name: "Image transforms" }).click();
    await page.waitForURL("**/-/docs/transforms");
    await close(page);
  },

  async documentation_upload_example_works() {
    const guide = await read("/-/docs/browser-uploads");
    const html = await guide.locator('.code[data-language="html"] code').textContent();
    await close(guide);
    // A page of another origin, whose backend requests the token.
    const shop = createServer(async (request, response) => {
      if (request.method !== "POST") return response.setHeader("Content-Type", "text/html").end(html);
      const token = await fetch(`${base}/api/presigned-url?path=photos/docs/&expiresIn=60`, { headers: { Authorization: `Bearer ${key}` } });
      response.end((await token.json()).url);
    });
    await new Promise((done) => { shop.listen(0, "127.0.0.1", done); });
    const page = await read(`http://127.0.0.1:${shop.address().port}/`);
    await page.locator("input").setInputFiles({ name: "dot.svg", mimeType: "image/svg+xml", buffer: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>') });
    const image = page.locator("img");
    await image.waitFor({ state: "attached" });
    assert.match(await image.getAttribute("src"), /\/photos\/docs\/dot/);
    await close(page);
    shop.close();
  },
};
