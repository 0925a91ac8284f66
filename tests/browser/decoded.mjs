// Every picture of the fixtures, as Chromium decodes the stored file and as it decodes the rendered variants.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { base, close, open, store } from "./driver.mjs";

const FIXTURES = new URL("../fixtures/", import.meta.url);
/** Folders of fixtures, and the media type of their files. */
const TYPES = { avif: "image/avif", bmp: "image/bmp", gif: "image/gif", ico: "image/x-icon", jpeg: "image/jpeg", webp: "image/webp" };
/** The mean difference of a sample, of 255, alpha multiplied in. Measured: up to 0.48, of AVIF. */
const MEAN_MAX = 0.7;
/** Files without pixels, of which Chromium draws nothing on a canvas: they are clear here. */
const WITHOUT_PIXELS = { "26_bytes.gif": [1, 1], "empty_lzw.gif": [40, 30] };

const files = Object.entries(TYPES).flatMap(([folder, type]) => readdirSync(new URL(`${folder}/`, FIXTURES)).map((name) => ({
  name, type, bytes: readFileSync(new URL(`${folder}/${name}`, FIXTURES)), address: `/photos/decoded/${folder}-${name}`,
})));

async function made(file, query) {
  const answer = await fetch(`${base}${encodeURI(file.address)}?${query}`);
  assert.equal(answer.status, 200, `${file.name} as ${query}: ${await answer.clone().text()}`);
  return { type: answer.headers.get("content-type"), bytes: Buffer.from(await answer.arrayBuffer()) };
}

/** Size and pixels (in base64) of a still picture, or of the first frame of an animation; null where nothing is drawn. */
const still = (page, { type, bytes }) => page.evaluate(async ([type, text]) => {
  const bitmap = await createImageBitmap(new Blob([Uint8Array.fromBase64(text)], { type })).catch(() => null);
  if (!bitmap) return null;
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
  return { width: bitmap.width, height: bitmap.height, pixels: new Uint8Array(data.buffer).toBase64() };
}, [type, bytes.toString("base64")]);

/** Frames with their milliseconds and pixels (in base64), and the loop count. */
const film = (page, { type, bytes }) => page.evaluate(async ([type, text]) => {
  const decoder = new ImageDecoder({ data: Uint8Array.fromBase64(text), type });
  await decoder.tracks.ready;
  await decoder.completed;
  const { frameCount, repetitionCount } = decoder.tracks.selectedTrack;
  const frames = [];
  for (let frameIndex = 0; frameIndex < frameCount; frameIndex += 1) {
    const { image } = await decoder.decode({ frameIndex });
    const canvas = new OffscreenCanvas(image.displayWidth, image.displayHeight);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    frames.push({ ms: image.duration / 1000, width: canvas.width, height: canvas.height, pixels: new Uint8Array(data.buffer).toBase64() });
    image.close();
  }
  return { frames, repetitions: repetitionCount === Infinity ? "for ever" : repetitionCount };
}, [type, bytes.toString("base64")]);

/** Samples of a picture: red, green, blue and alpha of each pixel. */
const samples = ({ pixels }) => Buffer.from(pixels, "base64");

function difference(one, other) {
  let sum = 0;
  for (let at = 0; at < one.length; at += 4) {
    for (let channel = 0; channel < 3; channel += 1) {
      sum += Math.abs(one[at + channel] * one[at + 3] - other[at + channel] * other[at + 3]) / 255;
    }
    sum += Math.abs(one[at + 3] - other[at + 3]);
  }
  return sum / one.length;
}

function assertAlike(stored, shown, name) {
  assert.deepEqual([shown.width, shown.height], [stored.width, stored.height], name);
  const mean = difference(samples(stored), samples(shown));
  assert.ok(mean <= MEAN_MAX, `${name}: mean difference ${mean.toFixed(2)}`);
}

function assertSameFilm(stored, shown, what) {
  assert.equal(shown.repetitions, stored.repetitions, what);
  assert.deepEqual(shown.frames.map((frame) => frame.ms), stored.frames.map((frame) => frame.ms), what);
  for (const [index, frame] of stored.frames.entries()) assertAlike(frame, shown.frames[index], what);
}

/** Returns the number of frames that Chromium finds. */
const frameCount = (page, { type, bytes }) => page.evaluate(async ([type, text]) => {
  const decoder = new ImageDecoder({ data: Uint8Array.fromBase64(text), type });
  await decoder.tracks.ready;
  await decoder.completed;
  return decoder.tracks.selectedTrack?.frameCount ?? 0;
}, [type, bytes.toString("base64")]);

export const tests = {
  async rendered_images_match_stored_file_in_chromium() {
    const page = await open("/-/docs", { session: null });
    for (const file of files) {
      await store("photos", file.address.replace("/photos/", ""), file.bytes, file.type);
      const [stored, shown] = [await still(page, file), await still(page, await made(file, "format=png"))];
      if (file.name in WITHOUT_PIXELS) {
        assert.deepEqual([stored, [shown.width, shown.height]], [null, WITHOUT_PIXELS[file.name]], file.name);
        assert.ok(samples(shown).every((sample) => sample === 0), file.name);
        continue;
      }
      assert.ok(stored, `${file.name}: Chromium shows nothing`);
      assertAlike(stored, shown, file.name);
    }
    await close(page);
    return `${files.length} pictures`;
  },

  async rendered_animations_keep_frames_times_and_loops() {
    const page = await open("/-/docs", { session: null });
    let films = 0;
    for (const file of files) {
      if (file.type !== "image/gif" || await frameCount(page, file) < 2) continue;
      await store("photos", file.address.replace("/photos/", "film-"), file.bytes, file.type);
      const stored = await film(page, file);
      const copy = { ...file, address: file.address.replace("/photos/", "/photos/film-") };
      for (const query of ["format=webp&quality=100", "format=gif&width=4000"]) {
        assertSameFilm(stored, await film(page, await made(copy, query)), `${file.name} as ${query}`);
      }
      // Converted to WebP, and decoded again.
      const webp = { ...file, type: "image/webp", address: `${copy.address}.webp` };
      const { bytes } = await made(copy, "format=webp&quality=100");
      await store("photos", webp.address.replace("/photos/", ""), bytes, webp.type);
      assertSameFilm(stored, await film(page, await made(webp, "format=gif")), `${file.name} as WebP as GIF`);
      films += 1;
    }
    assert.ok(films >= 4, `${films} films`);
    await close(page);
    return `${films} films`;
  },
};
