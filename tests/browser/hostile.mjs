// Malicious names and files. No script runs, and no policy has to block one: `close` checks both.

import assert from "node:assert/strict";
import { api, BEACON, close, keys, open, store, waitForRows } from "./driver.mjs";
import { newcomer } from "./sessions.mjs";

const RUN = "alert(document.domain)";
const NAMES = [
  `<img src=x onerror=${RUN}>.txt`, `"><script>${RUN}<`, `'onmouseover='${RUN}.png`, `javascript:${RUN}`, "{{7*7}}${7*7}.txt",
  "\u202Egnp.exe", "a\u200Bb.txt", "%3Cscript%3E.txt", "<svg onload=alert(1)>.svg", "&lt;b&gt;.txt", "x".repeat(200), "  spaces  .txt", "__proto__", "constructor.txt", "-rf", "con.txt", "😀 👩‍👩‍👧 ñ.txt",
];
/** Folders for the names, as far as a folder may have them. */
const FOLDER = `<img src=x onerror=${RUN}>`;
/** Effect of the scripts in files: they leave a mark, and send a request where nothing else is possible. */
const MARK = `localStorage.setItem("ran","1");document.title="ran";new Image().src="${BEACON}";${RUN}`;
const IN_MARKUP = MARK.replaceAll("&", "&amp;");
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload='${IN_MARKUP}'><script>${IN_MARKUP}</script><rect width="40" height="40"/>` +
  `<foreignObject><iframe xmlns="http://www.w3.org/1999/xhtml" srcdoc='&lt;script&gt;${IN_MARKUP}&lt;/script&gt;'></iframe></foreignObject></svg>`;
const HTML = `<!doctype html><title>a page</title><img src=x onerror='${MARK}'><script>${MARK}</script><meta http-equiv="refresh" content="0;url=javascript:${RUN}"><iframe srcdoc='<script>${MARK.replaceAll("'", "&#39;")}</script>'></iframe>`;
const XML = `<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="data:text/xml,%3Cx/%3E"?><html xmlns="http://www.w3.org/1999/xhtml"><script>${IN_MARKUP}</script></html>`;
/** A polyglot: a picture by its first bytes, a script otherwise. */
const POLYGLOT = Buffer.concat([Buffer.from("GIF89a/*"), Buffer.alloc(20), Buffer.from(`*/=1;${MARK}`)]);
const FILES = [
  ["page.html", HTML, "text/html"], ["page.htm", HTML, ""], ["picture.svg", SVG, "image/svg+xml"], ["page.xhtml", XML, "application/xhtml+xml"], ["page.xml", XML, "text/xml"],
  ["page.mhtml", `MIME-Version: 1.0\nContent-Type: text/html\n\n${HTML}`, "multipart/related"], ["false.png", HTML, "image/png"], ["page", HTML, "text/html"], ["both.gif", POLYGLOT, "image/gif"],
  ["script.js", MARK, "text/javascript"], ["style.css", `@import "${BEACON}"; body { background: url("${BEACON}") }`, "text/css"], ["data.json", `{"__proto__": {"x": 1}, "</script><script>": "${RUN}"}`, "application/json"],
  ["paper.pdf", `%PDF-1.4\n1 0 obj << /Type /Catalog /OpenAction << /S /JavaScript /JS (app.alert(1)) >> >> endobj\ntrailer << /Root 1 0 R >>\n%%EOF`, "application/pdf"],
  ["film.mp4", "no film", "video/mp4"], ["sound.mp3", HTML, "audio/mpeg"], ["nothing", "", ""],
];

/** Number of concurrent pages: most of their time is waiting. */
const PAGES = 4;

/** Opens each on one of several pages, and checks at the end that no unexpected event happened on them. */
async function lookAt(items, address, look) {
  const waiting = [...items];
  await Promise.all(Array.from({ length: PAGES }, async () => {
    const page = await open("about:blank");
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      await page.goto(address(item));
      await look(page, item);
    }
    await close(page);
  }));
}

/** Drops files of these names that are not on a disk. */
const drop = (page, names) => page.evaluate((names) => {
  const files = names.map((name) => new File([name], name));
  const event = new DragEvent("drop", { bubbles: true, cancelable: true });
  Object.defineProperty(event, "dataTransfer", { value: { items: [], files } });
  document.querySelector(".browser").dispatchEvent(event);
}, names);

/** Opens a dialog by a key, checks its title, and closes it. */
async function dialog(page, key, title) {
  await page.keyboard.press(key);
  await page.getByRole("dialog").getByRole("heading", { name: title, exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

export const tests = {
  async hostile_names_are_text_in_every_view() {
    for (const name of NAMES) await store("hostile", `names/${name}`, "x");
    const page = await open("/-/files/hostile/names/");
    // Only visible rows have elements.
    await page.setViewportSize({ width: 1280, height: 1600 });
    await waitForRows(page, NAMES.length);
    const shown = await page.locator(".row .name").allTextContents();
    assert.deepEqual([...shown].sort(), [...NAMES].sort());
    await lookAt(NAMES, (name) => `/-/files/hostile/names/${encodeURIComponent(name)}`, async (page, name) => {
      await page.locator("dialog.preview h2").getByText(name, { exact: true }).waitFor();
      await page.waitForFunction(() => !document.querySelector(".stage .waiting"));
      assert.equal(await page.locator("dialog.preview h2").textContent(), name);
    });
    await page.goto(`/-/search/hostile?q=${encodeURIComponent("script")}`);
    await page.locator(".row mark").first().waitFor();
    await page.goto("/-/files/hostile/names/?view=tiles");
    await page.locator(".tile:focus").first().waitFor();
    await page.keyboard.press("Control+a");
    await page.getByRole("toolbar").getByText(`${NAMES.length} selected`).waitFor();
    await page.keyboard.press("f");
    await page.locator(".forms li").first().waitFor();
    await page.keyboard.press("Escape");
    await page.locator(".forms").waitFor({ state: "detached" });
    await page.goto(`/-/search/hostile?q=${encodeURIComponent(NAMES[0])}&parent=${encodeURIComponent("<b>/")}`);
    await page.getByText("No results for").waitFor();
    await close(page);
  },

  async hostile_names_are_text_in_every_operation() {
    const [first, second] = [NAMES[0], NAMES[1]];
    for (const name of [first, second]) await store("hostile", `${FOLDER}/done/${name}`, name);
    const page = await open(`/-/files/hostile/${encodeURIComponent(FOLDER)}/done/`);
    await waitForRows(page, 2);
    assert.deepEqual(await page.locator(".crumbs a").allTextContents(), ["hostile", FOLDER, "done"]);
    // In confirmation dialogs.
    await page.locator(".row .tick").nth(1).click();
    await page.getByRole("toolbar").getByText("1 selected").waitFor();
    const name = await page.locator(".row[aria-selected=true] .name").textContent();
    await dialog(page, "F2", `Rename ${name}`);
    await dialog(page, "m", `Move “${name}”`);
    await page.keyboard.press("Shift+F10");
    await page.getByRole("menu", { name: `Actions for ${name}` }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("menu").waitFor({ state: "detached" });
    // In notifications.
    await page.keyboard.press("Delete");
    await page.locator(".note", { hasText: `“${name}” deleted.` }).getByRole("button", { name: "Undo" }).click();
    await page.locator(".note", { hasText: `“${name}” restored.` }).waitFor();
    await waitForRows(page, 2);
    // As a folder, by a job.
    await page.goto("/-/files/hostile/?filter=onerror");
    await page.locator(".row .name").getByText(FOLDER, { exact: true }).waitFor();
    await page.locator(".row", { has: page.locator(".name").getByText(FOLDER, { exact: true }) }).locator(".tick").click();
    await page.getByRole("toolbar").getByText("1 selected").waitFor();
    await page.keyboard.press("Delete");
    await page.locator(".note", { hasText: `“${FOLDER}” deleted.` }).getByRole("button", { name: "Undo" }).click();
    await page.locator(".note", { hasText: `“${FOLDER}” restored.` }).waitFor();
    assert.equal((await keys("hostile", `${FOLDER}/`)).length, 2);
    await close(page);
  },

  async hostile_names_are_text_during_and_after_failed_upload() {
    const page = await open("/-/files/hostile/sent/");
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    await page.route("**/hostile/sent/*", (route) => (route.request().method() === "POST" ? route.fulfill({ status: 415, json: { success: false, code: "type_not_allowed", error: `No <b>${NAMES[1]}</b> here` } }) : route.continue()));
    await drop(page, NAMES.slice(0, 4));
    await page.locator(".uploads h2", { hasText: "4 files failed" }).waitFor();
    await page.locator(".reason", { hasText: `No <b>${NAMES[1]}</b> here` }).waitFor();
    assert.deepEqual((await page.locator(".item .name").allTextContents()).sort(), NAMES.slice(0, 4).map((name) => `sent/${name}`).sort());
    await page.unroute("**/hostile/sent/*");
    await page.getByRole("button", { name: "Retry failed" }).click();
    await page.locator(".uploads h2", { hasText: "4 files uploaded" }).waitFor();
    await waitForRows(page, 4);
    await close(page);
  },

  async hostile_account_name_is_text() {
    const page = await open("/-/", { session: await newcomer(FOLDER) });
    await page.locator(".who").getByText(FOLDER, { exact: true }).waitFor();
    await close(page);
  },

  async hostile_files_execute_nothing_in_previews() {
    for (const [name, body, type] of FILES) await store("hostile", `files/${name}`, body, type);
    const page = await open("/-/files/hostile/files/?view=tiles");
    await page.locator(".tile").nth(FILES.length - 1).waitFor();
    await close(page);
    const looks = [...FILES.map(([name]) => `/-/files/hostile/files/${name}`), ...["false.png", "picture.svg", "both.gif"].map((name) => `/-/playground/hostile/files/${name}?width=20`)];
    await lookAt(looks, (address) => address, async (page, address) => {
      await page.locator(address.includes("playground") ? "#main > *" : "dialog.preview .stage").first().waitFor();
      await page.waitForFunction(() => !document.querySelector(".stage .waiting"));
      // Every script would have started once the page's own resources are loaded.
      await page.waitForLoadState("networkidle");
      assert.deepEqual(await page.evaluate(() => [document.title.includes("trug"), document.querySelectorAll("script").length]), [true, 2], address);
    });
  },

  async hostile_files_opened_directly_do_not_reach_dashboard() {
    const made = { bucketName: "pages", serveHtml: true };
    await api("POST", "/api/buckets", JSON.stringify(made), { "Content-Type": "application/json" });
    for (const [name, body, type] of FILES) {
      await store("hostile", `opened/${name}`, body, type);
      await store("pages", `opened/${name}`, body, type);
    }
    await store("pages", "opened/framing.html", FILES.map(([name]) => `<iframe src="${name}"></iframe><embed src="${name}"><object data="${name}"></object><script src="${name}"></script>`).join(""), "text/html");
    const page = await open("/-/");
    await page.locator(".card").first().waitFor();
    const kept = () => page.evaluate(() => JSON.stringify(Object.entries(localStorage)));
    const before = await kept();
    for (const bucket of ["hostile", "pages"]) {
      for (const name of [...FILES.map(([name]) => name), ...(bucket === "pages" ? ["framing.html"] : [])]) {
        // Some are downloads in a browser.
        await page.goto(`/${bucket}/opened/${name}`, { waitUntil: "load" }).catch((error) => { if (!/Download is starting|ERR_ABORTED/.test(error.message)) throw error; });
        assert.notEqual(await page.title(), "ran", `${bucket}/${name}`);
      }
    }
    // A policy violation is expected here, and the effects of scripts are not.
    assert.deepEqual(page.executed, []);
    page.faults = [];
    await page.goto("/-/");
    await page.locator(".card").first().waitFor();
    assert.equal(await kept(), before);
    await close(page);
  },

  async user_scripts_are_blocked_in_dashboard_by_csp() {
    await store("hostile", "scripts/script.js", MARK, "text/javascript");
    const page = await open("/-/");
    await page.locator(".card").first().waitFor();
    const outcome = await page.evaluate(() => new Promise((done) => {
      const script = document.createElement("script");
      script.onload = () => done("ran");
      script.onerror = () => done("refused");
      // Capabilities of an injected tag: no nonce, an address of this origin.
      try {
        script.setAttribute("src", "/hostile/scripts/script.js");
        document.head.append(script);
      } catch (error) {
        done(error.name);
      }
    }));
    assert.notEqual(outcome, "ran");
    const answer = await page.evaluate(async () => {
      try {
        const worker = await navigator.serviceWorker.register("/hostile/scripts/script.js");
        return `registered ${worker.scope}`;
      } catch {
        return "refused";
      }
    });
    assert.equal(answer, "refused");
    assert.deepEqual(page.executed, []);
    await page.context().close();
  },
};
