// Generated files for the tests: pictures, audio, a document.

import { crc32, deflateSync } from "node:zlib";

/** A PNG with the pixels that `colour` returns, each of four bytes. */
export function png(width, height, colour) {
  const rows = Buffer.alloc(height * (1 + 4 * width));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) rows.set(colour(x, y), y * (1 + 4 * width) + 1 + 4 * x);
  }
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    const check = Buffer.alloc(4);
    check.writeUInt32BE(crc32(body) >>> 0);
    return Buffer.concat([length, body, check]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 6, 0, 0, 0], 8);
  const magic = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([magic, chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

/** Hills under an evening sky, different for each number. */
export function landscape(width, height, number) {
  const hill = (x, layer) => height * (0.45 + 0.16 * layer) + height * 0.09 * Math.sin((x / width) * (3 + layer) + number * 1.7 + layer * 2);
  const turn = (number * 47) % 360;
  const tone = (base, by) => Math.max(0, Math.min(255, Math.round(base + 60 * Math.sin(((turn + by) * Math.PI) / 180))));
  return png(width, height, (x, y) => {
    for (let layer = 2; layer >= 0; layer -= 1) {
      if (y > hill(x, layer)) return [tone(70 - 18 * layer, 0), tone(110 - 26 * layer, 90), tone(100 - 22 * layer, 200), 255];
    }
    const part = y / height;
    return [tone(150 + 70 * part, 0), tone(140 + 40 * part, 120), tone(190 - 60 * part, 240), 255];
  });
}

/** A disc on a transparent background. */
export const disc = (side) => png(side, side, (x, y) => (Math.hypot(x - side / 2, y - side / 2) < side * 0.4 ? [40, 105, 74, 255] : [0, 0, 0, 0]));

/** A tone of a second. */
export function wav() {
  const samples = 8_000;
  const body = Buffer.alloc(44 + 2 * samples);
  body.write("RIFF", 0);
  body.writeUInt32LE(36 + 2 * samples, 4);
  body.write("WAVEfmt ", 8);
  body.writeUInt32LE(16, 16);
  body.writeUInt16LE(1, 20);
  body.writeUInt16LE(1, 22);
  body.writeUInt32LE(8_000, 24);
  body.writeUInt32LE(16_000, 28);
  body.writeUInt16LE(2, 32);
  body.writeUInt16LE(16, 34);
  body.write("data", 36);
  body.writeUInt32LE(2 * samples, 40);
  for (let at = 0; at < samples; at += 1) body.writeInt16LE(Math.round(9_000 * Math.sin(at / 3)), 44 + 2 * at);
  return body;
}

/** A document of one page with a line on it. */
export function pdf() {
  const content = "BT /F1 24 Tf 60 700 Td (Hello from a PDF) Tj ET";
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
  ];
  let text = "%PDF-1.4\n";
  const places = objects.map((object, index) => {
    const at = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const start = text.length;
  text += `xref\n0 6\n0000000000 65535 f \n${places.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("")}`;
  return Buffer.from(`${text}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`);
}
