// URLs, `srcset`, `<picture>` and the loaders of frameworks: no requests.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Trug } from "@trug/client";
import { loader } from "@trug/client/next";
import provider, { getImage } from "@trug/client/nuxt";

const pics = new Trug({ url: "https://files.example.org/" }).bucket("pics");
const root = "https://files.example.org/pics";

test("url escapes each segment and appends options", () => {
  assert.equal(pics.url("a b/ü?#%.jpg"), `${root}/a%20b/%C3%BC%3F%23%25.jpg`);
  assert.equal(
    pics.url("cat.jpg", { width: 400, format: "webp", fit: "cover", height: 300, quality: 75, dpr: 2 }),
    `${root}/cat.jpg?width=400&height=300&fit=cover&format=webp&quality=75&dpr=2`,
  );
  assert.equal(pics.url("cat.jpg", { download: true }), `${root}/cat.jpg?download=true`);
  assert.equal(pics.url("cat.jpg", { download: "a&b.jpg" }), `${root}/cat.jpg?download=a%26b.jpg`);
  assert.equal(pics.url("cat.jpg", { download: false, width: undefined }), `${root}/cat.jpg`);
});

test("srcset has one candidate for each width", () => {
  assert.equal(
    pics.srcset("cat.jpg", { widths: [400, 800], format: "auto" }),
    `${root}/cat.jpg?width=400&format=auto 400w, ${root}/cat.jpg?width=800&format=auto 800w`,
  );
  // A comma or a space of the name must not end a candidate.
  assert.equal(pics.srcset("a, b.jpg", { widths: [1] }), `${root}/a%2C%20b.jpg?width=1 1w`);
});

test("picture has AVIF and WebP sources and a fallback", () => {
  const { sources, img } = pics.picture("cat.png", { widths: [400, 800], sizes: "50vw", alt: "A cat", quality: 70 });
  assert.deepEqual(
    sources.map((it) => it.type),
    ["image/avif", "image/webp"],
  );
  assert.equal(
    sources[0].srcset,
    `${root}/cat.png?width=400&format=avif&quality=70 400w, ${root}/cat.png?width=800&format=avif&quality=70 800w`,
  );
  assert.deepEqual(img, {
    src: `${root}/cat.png?width=800&quality=70`,
    sizes: "50vw",
    alt: "A cat",
    srcset: `${root}/cat.png?width=400&quality=70 400w, ${root}/cat.png?width=800&quality=70 800w`,
  });
});

test("Next.js loader handles paths, URLs of the bucket and others", () => {
  const load = loader(`${root}/`);
  assert.equal(
    load({ src: "/2026/a b.jpg", width: 640, quality: 75 }),
    `${root}/2026/a%20b.jpg?width=640&format=auto&quality=75`,
  );
  assert.equal(load({ src: "cat.jpg", width: 640 }), `${root}/cat.jpg?width=640&format=auto`);
  assert.equal(load({ src: `${root}/a%20b.jpg`, width: 64 }), `${root}/a%20b.jpg?width=64&format=auto`);
  assert.equal(load({ src: "https://other.example/x.jpg", width: 64 }), "https://other.example/x.jpg");
  assert.equal(loader(root, { format: "webp" })({ src: "cat.jpg", width: 1 }), `${root}/cat.jpg?width=1&format=webp`);
});

test("Nuxt provider maps modifiers", () => {
  assert.equal(provider().getImage, getImage);
  const options = { baseURL: root, modifiers: { width: 300, height: 200, fit: "outside", background: "red" } };
  assert.equal(getImage("/cat.jpg", options).url, `${root}/cat.jpg?width=300&height=200&fit=cover&format=auto`);
  assert.equal(
    getImage("cat.jpg", { baseURL: root, modifiers: { fit: "inside", format: "png" } }).url,
    `${root}/cat.jpg?fit=contain&format=png`,
  );
  assert.equal(getImage("cat.jpg", { baseURL: root }).url, `${root}/cat.jpg?format=auto`);
});
