// Names and files that want to run. Nothing does, and no policy has to step in: `close` looks at both.

import assert from "node:assert/strict";
import { close, open, store, waitForRows } from "./driver.mjs";

const RUN = "alert(document.domain)";
const NAMES = [
  `<img src=x onerror=${RUN}>.txt`, `"><script>${RUN}<`, `'onmouseover='${RUN}.png`, `javascript:${RUN}`, "{{7*7}}${7*7}.txt",
  "\u202Egnp.exe", "a\u200Bb.txt", "%3Cscript%3E.txt", "<svg onload=alert(1)>.svg", "&lt;b&gt;.txt", "x".repeat(200), "  spaces  .txt", "__proto__", "constructor.txt", "-rf", "con.txt", "😀 👩‍👩‍👧 ñ.txt",
];
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="${RUN}"><script>${RUN}</script><rect width="40" height="40"/></svg>`;
const FILES = [
  ["page.html", `<script>${RUN}</script>`, "text/html"], ["picture.svg", SVG, "image/svg+xml"], ["page.xhtml", `<html xmlns="http://www.w3.org/1999/xhtml"><script>${RUN}</script></html>`, ""],
  ["false.png", `<script>${RUN}</script>`, "image/png"], ["script.js", RUN, "text/javascript"], ["data.json", `{"__proto__": {"x": 1}, "</script><script>": "${RUN}"}`, "application/json"],
  ["paper.pdf", `%PDF-1.4 1 0 obj << /OpenAction << /S /JavaScript /JS (app.alert(1)) >> >>`, "application/pdf"], ["film.mp4", "no film", "video/mp4"], ["nothing", "", ""],
];

export const tests = {
  async "hostile names are text in every view"() {
    for (const name of NAMES) await store("hostile", `names/${name}`, "x");
    const page = await open("/-/files/hostile/names/");
    await waitForRows(page, NAMES.length);
    const shown = await page.locator(".row .name").allTextContents();
    assert.deepEqual([...shown].sort(), [...NAMES].sort());
    for (const name of NAMES) {
      await page.goto(`/-/files/hostile/names/${encodeURIComponent(name)}`);
      await page.locator("dialog.preview h2").waitFor();
      assert.equal(await page.locator("dialog.preview h2").textContent(), name);
      await page.waitForFunction(() => !document.querySelector(".stage .waiting"));
    }
    await page.goto(`/-/search/hostile?q=${encodeURIComponent("script")}`);
    await page.locator(".row mark").first().waitFor();
    await page.goto("/-/files/hostile/names/?view=tiles");
    await page.locator(".tile").first().waitFor();
    await page.keyboard.press("Control+a");
    await page.keyboard.press("f");
    await page.locator(".forms li").first().waitFor();
    await page.keyboard.press("Escape");
    await page.goto(`/-/search/hostile?q=${encodeURIComponent(NAMES[0])}&parent=${encodeURIComponent("<b>/")}`);
    await page.getByText("Nothing is called like").waitFor();
    await close(page);
  },

  async "hostile files are looked at and do nothing"() {
    for (const [name, body, type] of FILES) await store("hostile", `files/${name}`, body, type);
    const page = await open("/-/files/hostile/files/?view=tiles");
    await page.locator(".tile").nth(FILES.length - 1).waitFor();
    for (const [name] of FILES) {
      await page.goto(`/-/files/hostile/files/${name}`);
      await page.waitForFunction(() => document.querySelector(".stage") && !document.querySelector(".stage .waiting"));
      await page.waitForTimeout(150);
      assert.deepEqual(await page.evaluate(() => [document.title.includes("trug"), document.querySelectorAll("script").length]), [true, 2]);
    }
    await close(page);
  },

  async "a script of a user is refused to the dashboard, also by its policy"() {
    const page = await open("/-/");
    await page.locator(".card").first().waitFor();
    const outcome = await page.evaluate(() => new Promise((done) => {
      const script = document.createElement("script");
      script.onload = () => done("ran");
      script.onerror = () => done("refused");
      // What an injected tag could do: no nonce, an address of this origin.
      try {
        script.setAttribute("src", "/hostile/files/script.js");
        document.head.append(script);
      } catch (error) {
        done(error.name);
      }
    }));
    assert.notEqual(outcome, "ran");
    const answer = await page.evaluate(async () => {
      try {
        const worker = await navigator.serviceWorker.register("/hostile/files/script.js");
        return `registered ${worker.scope}`;
      } catch {
        return "refused";
      }
    });
    assert.equal(answer, "refused");
    assert.deepEqual(page.ran, []);
    await page.context().close();
  },
};
