// Files looked at, and pictures made at other sizes and in other formats.

import assert from "node:assert/strict";
import { close, focused, open, shot, store, withClipboard } from "./driver.mjs";
import { disc, landscape, pdf, wav } from "./pictures.mjs";

/** @type {Promise<void> | null} */
let filling = null;

/** The folder that these tests look at; whoever comes first fills it. */
export const fillFolder = () => (filling ??= fill());

async function fill() {
  for (let number = 1; number <= 8; number += 1) await store("photos", `look/hills ${number}.png`, landscape(960, 640, number));
  await store("photos", "look/disc.png", disc(400));
  await store("photos", "look/tone.wav", wav());
  await store("photos", "look/paper.pdf", pdf());
  await store("photos", "look/note.txt", "First line\nSecond line\n");
  await store("photos", "look/data.json", '{"b":[1,2],"a":"text"}');
  await store("photos", "look/bytes.bin", Buffer.from([0, 1, 2, 254, 255, ...Buffer.from("letters")]));
  await store("photos", "look/long.txt", "0123456789\n".repeat(100_000));
}

const stage = (page) => page.locator("dialog.preview .stage");

export const tests = {
  async "a picture is looked at closely, and those beside it by arrows"() {
    await fillFolder();
    const page = await open("/-/files/photos/look/hills%202.png");
    await page.locator("dialog.preview .about p", { hasText: "960 × 640" }).waitFor();
    await shot(page, "preview-picture");
    const width = () => page.locator(".canvas img").evaluate((it) => it.getBoundingClientRect().width);
    await page.keyboard.press("0");
    assert.equal(Math.round(await width()), 960);
    await page.keyboard.press("+");
    assert.equal(Math.round(await width()), 1440);
    // An arrow leads on as soon as the folder has come.
    await page.locator("dialog.preview .next").waitFor();
    await page.keyboard.press("ArrowRight");
    await page.getByRole("heading", { name: "hills 3.png" }).waitFor();
    await page.waitForURL(/hills%203.png/);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await page.getByRole("heading", { name: "hills 1.png" }).waitFor();
    await page.keyboard.press("Escape");
    await page.waitForURL(/\/look\/$/);
    await focused(page, "hills 1.png");
    await page.goBack();
    await close(page);
  },

  async "text, JSON, bytes, sound and documents are shown as what they are"() {
    await fillFolder();
    const page = await open("/-/files/photos/look/note.txt");
    await stage(page).getByText("Second line").waitFor();
    await page.goto("/-/files/photos/look/data.json");
    await stage(page).getByText('"a": "text"').waitFor();
    await page.goto("/-/files/photos/look/bytes.bin");
    await stage(page).getByText("00 01 02 fe ff 6c 65 74").waitFor();
    await page.goto("/-/files/photos/look/long.txt");
    await stage(page).getByText("The first 524 kB of 1.10 MB").waitFor();
    await page.goto("/-/files/photos/look/tone.wav");
    await page.waitForFunction(() => Math.abs(document.querySelector("audio")?.duration - 1) < 0.1);
    await page.goto("/-/files/photos/look/paper.pdf");
    await page.locator("iframe").waitFor();
    await page.goto("/-/files/photos/look/none.txt");
    await page.getByText("This file is not here any more").waitFor();
    await close(page);
  },

  async "tiles show pictures, small ones"() {
    await fillFolder();
    const page = await open("/-/files/photos/look/?view=tiles");
    await page.waitForFunction(() => document.querySelectorAll(".tile img.here").length >= 9);
    const widths = await page.evaluate(() => [...document.querySelectorAll(".tile img")].map((it) => it.naturalWidth));
    assert.ok(widths.every((width) => width <= 400), widths.join());
    await shot(page, "files-tiles");
    await focused(page, "bytes.bin", ".tile");
    await page.keyboard.press("ArrowRight");
    await focused(page, "data.json", ".tile");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "data.json" }).waitFor();
    await close(page);
  },

  "the playground makes what is chosen, and gives the address and a snippet": () => withClipboard(async () => {
    await fillFolder();
    const page = await open("/-/files/photos/look/hills%204.png");
    await page.locator("dialog.preview .about p", { hasText: "960 × 640" }).waitFor();
    await page.getByRole("button", { name: "Other sizes and formats (p)" }).waitFor();
    await page.keyboard.press("p");
    const made = page.locator("figure", { hasText: "Result" });
    await made.getByText("800 × 533").waitFor();
    await page.getByLabel("Width").fill("300");
    await page.getByLabel("Format").selectOption("jpg");
    await made.getByText("300 × 200 · JPEG").waitFor();
    await page.waitForURL(/width=300/);
    await page.locator(".saving", { hasText: "smaller" }).waitFor();
    await page.getByRole("button", { name: "Copy" }).first().click();
    await page.locator(".note", { hasText: "copied" }).waitFor();
    const url = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(url.endsWith("/photos/look/hills%204.png?width=300&format=jpg"), url);
    const answer = await fetch(url.replace(/^https?:\/\/[^/]+/, new URL(page.url()).origin));
    assert.equal(answer.headers.get("content-type"), "image/jpeg");
    assert.match(await page.locator("pre[aria-label='For a page']").textContent(), /<picture>[^]*image\/avif[^]*image\/webp[^]*<\/picture>/);
    await page.getByLabel("Height").fill("300");
    await page.getByLabel("When both are set").selectOption("cover");
    await made.getByText("300 × 300 · JPEG").waitFor();
    await shot(page, "playground");
    await close(page);
  }),
};
