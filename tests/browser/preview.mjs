// File preview, and pictures in other sizes and formats.

import assert from "node:assert/strict";
import { close, focused, open, shot, store, withClipboard } from "./driver.mjs";
import { framesOf, tone, webm } from "./media.mjs";
import { disc, landscape, pdf, wav } from "./pictures.mjs";

/** @type {Promise<void> | null} */
let filling = null;

/** The folder of these tests; the first one fills it. */
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

/** Seconds of the media, and bytes between those of a video: more than a browser loads in advance. */
const SECONDS = 60;
const GAP = 300_000;
/** `HTMLMediaElement.NETWORK_EMPTY` and `NETWORK_NO_SOURCE`: nothing is fetched. */
const NOTHING_LOADS = [0, 3];
/** The colour of a second of the video. */
const COLOURS = ["#c00000", "#00a000", "#0000c0"];

/** Plays the media of a preview, seeks far ahead by a range, and closes it, after which nothing continues. */
async function play(page, kind, address, far) {
  const under = new Set();
  const ranges = [];
  const isMeant = (request) => request.resourceType() === "media";
  page.on("request", (request) => { if (isMeant(request)) under.add(request); });
  page.on("requestfinished", (request) => under.delete(request));
  page.on("requestfailed", (request) => under.delete(request));
  page.on("response", async (answer) => {
    if (!isMeant(answer.request())) return;
    const { range } = await answer.request().allHeaders();
    ranges.push({ from: Number(/^bytes=(\d+)-/.exec(range)?.[1]), status: answer.status() });
  });
  await page.goto(address);
  const player = page.locator(`dialog.preview ${kind}`);
  await page.waitForFunction(([kind, seconds]) => Math.abs(document.querySelector(kind)?.duration - seconds) < 1.1, [kind, SECONDS]);
  await player.focus();
  await page.keyboard.press(" ");
  await page.waitForFunction((kind) => !document.querySelector(kind).paused && document.querySelector(kind).currentTime > 0.2, kind);
  const loaded = await player.evaluate((it) => it.buffered.end(it.buffered.length - 1));
  assert.ok(loaded < far, `all of it was there before it was asked for: ${loaded} s`);
  await player.evaluate((it, far) => { it.currentTime = far; }, far);
  await page.waitForFunction(([kind, far]) => !document.querySelector(kind).seeking && document.querySelector(kind).currentTime > far + 0.1, [kind, far]);
  assert.ok(ranges.some((it) => it.from > far * 100_000 && it.status === 206), JSON.stringify(ranges));
  assert.equal(await player.evaluate((it) => it.error), null);
  const seen = await player.evaluate((it) => {
    if (it.tagName !== "VIDEO") return null;
    const canvas = new OffscreenCanvas(1, 1);
    canvas.getContext("2d").drawImage(it, 0, 0, 1, 1);
    return { second: Math.floor(it.currentTime), pixel: [...canvas.getContext("2d").getImageData(0, 0, 1, 1).data] };
  });
  const held = await player.elementHandle();
  await page.locator("dialog.preview").getByRole("button", { name: "Close (Esc)" }).click();
  await page.locator("dialog.preview").waitFor({ state: "detached" });
  assert.deepEqual(await held.evaluate((it) => [it.isConnected, it.paused]), [false, true]);
  assert.ok(NOTHING_LOADS.includes(await held.evaluate((it) => it.networkState)));
  for (const end = Date.now() + 10_000; under.size > 0 && Date.now() < end;) await new Promise((done) => setTimeout(done, 20));
  assert.deepEqual([...under].map((it) => it.url()), [], "it is still being fetched");
  return seen;
}

const stage = (page) => page.locator("dialog.preview .stage");

export const tests = {
  async preview_zooms_and_moves_to_neighbours_by_arrow_keys() {
    await fillFolder();
    const page = await open("/-/files/photos/look/hills%202.png");
    await page.locator("dialog.preview .about p", { hasText: "960 × 640" }).waitFor();
    await shot(page, "preview-picture");
    const width = () => page.locator(".canvas img").evaluate((it) => it.getBoundingClientRect().width);
    await page.keyboard.press("0");
    assert.equal(Math.round(await width()), 960);
    await page.keyboard.press("+");
    assert.equal(Math.round(await width()), 1440);
    // An arrow key continues once the folder is loaded.
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

  async preview_shows_text_json_bytes_audio_and_documents() {
    await fillFolder();
    const page = await open("/-/files/photos/look/note.txt");
    await stage(page).getByText("Second line").waitFor();
    await page.goto("/-/files/photos/look/data.json");
    await stage(page).getByText('"a": "text"').waitFor();
    await page.goto("/-/files/photos/look/bytes.bin");
    await stage(page).getByText("00 01 02 fe ff 6c 65 74").waitFor();
    await page.goto("/-/files/photos/look/long.txt");
    await stage(page).getByText("Showing the first 524 kB of 1.10 MB").waitFor();
    await page.goto("/-/files/photos/look/tone.wav");
    await page.waitForFunction(() => Math.abs(document.querySelector("audio")?.duration - 1) < 0.1);
    await page.goto("/-/files/photos/look/paper.pdf");
    await page.locator("iframe").waitFor();
    await page.goto("/-/files/photos/look/none.txt");
    await page.getByText("This file was moved, renamed or deleted").waitFor();
    await close(page);
  },

  async preview_seeks_in_media_by_ranges_and_stops_on_close() {
    const page = await open("/-/files/photos/played/");
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    const frames = await framesOf(page, 64, 48, COLOURS);
    await store("photos", "played/film.webm", webm(Array.from({ length: SECONDS }, (_, second) => frames[second % COLOURS.length]), 64, 48, GAP), "video/webm");
    await store("photos", "played/tone.wav", tone(SECONDS), "audio/wav");
    const { second, pixel } = await play(page, "video", "/-/files/photos/played/film.webm", 50);
    // The colour of that second, regardless of the others.
    assert.equal(pixel.indexOf(Math.max(...pixel.slice(0, 3))), second % COLOURS.length, `${pixel} in second ${second}`);
    await play(page, "audio", "/-/files/photos/played/tone.wav", 50);
    // A preview that is replaced by the next ends, too.
    await page.goto("/-/files/photos/played/film.webm");
    await page.locator("dialog.preview video").focus();
    const film = await page.locator("dialog.preview video").elementHandle();
    await page.getByRole("button", { name: "Next (→)" }).click();
    await page.locator("dialog.preview audio").waitFor();
    assert.ok(NOTHING_LOADS.includes(await film.evaluate((it) => it.networkState)));
    await close(page);
  },

  async grid_tiles_show_small_thumbnails() {
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
    await page.getByRole("button", { name: "Transform (p)" }).waitFor();
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
    assert.match(await page.locator("pre[aria-label='HTML']").textContent(), /<picture>[^]*image\/avif[^]*image\/webp[^]*<\/picture>/);
    await page.getByLabel("Height").fill("300");
    await page.getByLabel("Fit").selectOption("cover");
    await made.getByText("300 × 300 · JPEG").waitFor();
    await shot(page, "playground");
    await close(page);
  }),
};
