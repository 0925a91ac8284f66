// Pages of files that others open: the lightbox of shared links, previews of text and documents, and public pages.

import assert from "node:assert/strict";
import { api, close, open, shot, store } from "./driver.mjs";
import { lookAtPublicPages } from "./looks.mjs";
import { framesOf, webm } from "./media.mjs";
import { landscape, pdf } from "./pictures.mjs";

const FOLDER = "shown-to-others/";
const TEXT = "<script>document.title = 'ran'</script>\nsecond line";

/** Creates a link; returns the path of its page. */
async function link(wish) {
  const body = JSON.stringify(wish);
  const created = await (await api("POST", "/api/buckets/photos/links", body, { "Content-Type": "application/json" })).json();
  return new URL(created.link.url).pathname;
}

/** @type {Promise<void> | null} */
let filling = null;

/** The folder of these tests; the first one fills it. */
const fillFolder = () => (filling ??= fill());

async function fill() {
  for (const number of [1, 2, 3]) await store("photos", `${FOLDER}hill-${number}.png`, landscape(600, 400, number));
  await store("photos", `${FOLDER}notes.txt`, TEXT);
  await store("photos", `${FOLDER}long.txt`, "0123456789 ".repeat(9_000));
  await store("photos", `${FOLDER}paper.pdf`, pdf());
}

const visit = (path, context = {}) => open(path, { session: null, ...context });
const loaded = (page) => page.waitForFunction(() => {
  const image = document.querySelector("dialog[open] img");
  return image?.complete && image.naturalWidth > 0;
});
const images = [1, 2, 3].map((number) => `${FOLDER}hill-${number}.png`);

export const tests = {
  async gallery_lightbox_works_by_mouse_keyboard_and_touch() {
    await fillFolder();
    const path = await link({ paths: images, title: "Hills" });
    const page = await visit(path);
    await page.getByRole("link", { name: /hill-2.png/ }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("2 of 3").waitFor();
    await loaded(page);
    await page.keyboard.press("ArrowRight");
    await dialog.getByText("3 of 3").waitFor();
    await dialog.getByRole("img", { name: "hill-3.png" }).waitFor();
    await page.keyboard.press("ArrowRight");
    await dialog.getByText("1 of 3").waitFor();
    await page.keyboard.press("ArrowLeft");
    await dialog.getByText("3 of 3").waitFor();
    await dialog.getByRole("button", { name: "Previous image" }).click();
    await dialog.getByText("2 of 3").waitFor();
    assert.equal(new URL(await dialog.getByRole("link", { name: "Download" }).evaluate((it) => it.href)).pathname, `${path}/f/${images[1]}`);
    const box = await dialog.getByRole("img").boundingBox();
    const client = await page.context().newCDPSession(page);
    const touch = (type, x) => client.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x, y: box.y + box.height / 2 }] });
    await touch("touchStart", box.x + 300);
    for (const x of [250, 200, 150, 100]) await touch("touchMove", box.x + x);
    await touch("touchEnd");
    await dialog.getByText("3 of 3").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await page.locator(".gallery a:focus", { hasText: "hill-3.png" }).waitFor();
    assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, path);
    await close(page);
  },

  async gallery_without_scripts_opens_image_page() {
    await fillFolder();
    const page = await visit(await link({ paths: images }), { javaScriptEnabled: false });
    await page.getByRole("link", { name: /hill-2.png/ }).click();
    await page.waitForURL(/\?file=/);
    await page.getByRole("heading", { name: "hill-2.png" }).waitFor();
    await page.getByRole("link", { name: "← All files" }).click();
    await page.getByRole("link", { name: /hill-1.png/ }).waitFor();
    await page.context().close();
  },

  async lightbox_reports_missing_image() {
    await fillFolder();
    const page = await visit(await link({ paths: images }));
    await page.route("**/hill-1.png?width=1600**", (route) => route.fulfill({ status: 404 }));
    await page.getByRole("link", { name: /hill-1.png/ }).click();
    await page.getByText("This image can’t be displayed.").waitFor();
    await page.getByRole("button", { name: "Next image" }).click();
    await loaded(page);
    await page.getByText("This image can’t be displayed.").waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await close(page);
  },

  async shared_text_and_documents_are_previewed_not_executed() {
    await fillFolder();
    const page = await visit(await link({ paths: [`${FOLDER}notes.txt`] }));
    assert.equal(await page.locator("pre").textContent(), TEXT);
    assert.equal(await page.title(), "notes.txt");
    await page.goto(await link({ paths: [`${FOLDER}long.txt`] }));
    await page.getByText("Showing the first 65.5 kB of 99 kB.").waitFor();
    await page.getByRole("link", { name: "Show all" }).click();
    await page.waitForFunction(() => document.body.textContent.length === 99_000);
    await close(page);
    const paper = await visit("/-/docs");
    const framed = paper.waitForResponse((response) => response.url().includes("/f/") && response.request().resourceType() === "document");
    await paper.goto(await link({ paths: [`${FOLDER}paper.pdf`] }));
    const response = await framed;
    assert.deepEqual([response.status(), response.headers()["content-type"]], [200, "application/pdf"]);
    assert.match(response.headers()["content-security-policy"], /sandbox/);
    await paper.getByRole("link", { name: "Open the document" }).waitFor();
    await close(paper);
  },

  async shared_video_plays_and_seeks() {
    const maker = await visit("/-/docs");
    const frames = await framesOf(maker, 64, 48, ["#c00000", "#00a000", "#0000c0"]);
    await close(maker);
    const film = webm(Array.from({ length: 60 }, (_, second) => frames[second % 3]), 64, 48, 300_000);
    await store("photos", "shown-film/film.webm", film, "video/webm");
    const page = await visit(await link({ paths: ["shown-film/film.webm"], title: "Film" }));
    await page.waitForFunction(() => Math.abs(document.querySelector("video").duration - 60) < 1.1);
    const ahead = page.waitForResponse((response) => response.status() === 206 && Number(/^bytes (\d+)-/.exec(response.headers()["content-range"])?.[1]) > 5_000_000);
    await page.locator("video").evaluate((it) => { it.muted = true; it.currentTime = 50; return it.play(); });
    await ahead;
    await page.waitForFunction(() => !document.querySelector("video").seeking && document.querySelector("video").currentTime > 50.1);
    await shot(page, "share-film");
    await close(page);
  },

  async shared_file_pages_are_accessible_and_fit_all_screens() {
    await fillFolder();
    const pages = [
      ["share-gallery", await link({ paths: [FOLDER], title: "Hills of the summer", message: "For Mia & Jonas.\nSee you soon!" })],
      ["share-lightbox", await link({ paths: [FOLDER] })],
      ["share-image", await link({ paths: [`${FOLDER}hill-1.png`] })],
      ["share-text", await link({ paths: [`${FOLDER}long.txt`] })],
      ["share-limited", await link({ paths: [`${FOLDER}paper.pdf`], downloadsMax: 3 })],
      ["public-file", `/-/v/photos/${FOLDER}hill-1.png`],
      ["public-text", `/-/v/photos/${FOLDER}notes.txt`],
      ["public-missing", `/-/v/photos/${FOLDER}none.png`],
    ];
    await lookAtPublicPages(pages, async (page, name) => {
      if (name !== "share-lightbox") return;
      await page.getByRole("link", { name: /hill-2.png/ }).click();
      await loaded(page);
    });
  },
};
