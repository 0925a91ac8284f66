// Generated video and audio for the tests, too long for a browser to load completely before playing.

/** Elements of a WebM file (EBML): an id, a length of eight bytes, and the content. @param {string} id @param {...(Buffer | string)} parts */
function element(id, ...parts) {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE((1n << 56n) | BigInt(body.length));
  return Buffer.concat([Buffer.from(id, "hex"), length, body]);
}

function number(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/**
 * A video of as many seconds as there are frames, each of which is shown for one. Each is followed by a large skipped gap.
 * @param {Buffer[]} frames of VP8, each whole in itself @param {number} width @param {number} height @param {number} gap bytes
 */
export function webm(frames, width, height, gap) {
  const duration = Buffer.alloc(8);
  duration.writeDoubleBE(frames.length * 1000);
  const head = element("1a45dfa3", element("4286", number(1)), element("42f7", number(1)), element("42f2", number(4)), element("42f3", number(8)),
    element("4282", "webm"), element("4287", number(4)), element("4285", number(2)));
  const about = element("1549a966", element("2ad7b1", number(1_000_000)), element("4489", duration), element("4d80", "trug"), element("5741", "trug"));
  const tracks = element("1654ae6b", element("ae", element("d7", number(1)), element("73c5", number(1)), element("83", number(1)), element("86", "V_VP8"),
    element("e0", element("b0", number(width)), element("ba", number(height)))));
  const clusters = frames.map((frame, second) => element("1f43b675", element("e7", number(second * 1000)),
    element("a3", Buffer.from([0x81, 0, 0, 0x80]), frame), element("ec", Buffer.alloc(gap))));
  // Offset of each second; its own length does not depend on that.
  const index = (start) => {
    let at = start;
    return element("1c53bb6b", ...clusters.map((cluster, second) => {
      const cue = element("bb", element("b3", number(second * 1000)), element("b7", element("f7", number(1)), element("f1", number(at))));
      at += cluster.length;
      return cue;
    }));
  };
  const cues = index(about.length + tracks.length + index(0).length);
  return Buffer.concat([head, element("18538067", about, tracks, cues, ...clusters)]);
}

/** One complete frame of VP8 for each colour, encoded by the browser itself. @returns {Promise<Buffer[]>} */
export async function framesOf(page, width, height, colours) {
  const made = await page.evaluate(async ([width, height, colours]) => {
    const frames = [];
    const encoder = new VideoEncoder({
      output: (chunk) => {
        const bytes = new Uint8Array(chunk.byteLength);
        chunk.copyTo(bytes);
        frames.push([...bytes]);
      },
      error: (error) => { throw error; },
    });
    encoder.configure({ codec: "vp8", width, height, bitrate: 2_000_000 });
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d");
    colours.forEach((colour, at) => {
      context.fillStyle = colour;
      context.fillRect(0, 0, width, height);
      const frame = new VideoFrame(canvas, { timestamp: at * 1_000_000 });
      encoder.encode(frame, { keyFrame: true });
      frame.close();
    });
    await encoder.flush();
    return frames;
  }, [width, height, colours]);
  return made.map((bytes) => Buffer.from(bytes));
}

/** A tone on two channels, of so many seconds. */
export function tone(seconds) {
  const rate = 44_100;
  const body = Buffer.alloc(44 + 4 * rate * seconds);
  body.write("RIFF", 0);
  body.writeUInt32LE(body.length - 8, 4);
  body.write("WAVEfmt ", 8);
  body.writeUInt32LE(16, 16);
  body.writeUInt16LE(1, 20);
  body.writeUInt16LE(2, 22);
  body.writeUInt32LE(rate, 24);
  body.writeUInt32LE(4 * rate, 28);
  body.writeUInt16LE(4, 32);
  body.writeUInt16LE(16, 34);
  body.write("data", 36);
  body.writeUInt32LE(body.length - 44, 40);
  // A repeated period of 100 samples.
  const period = Buffer.alloc(400);
  for (let at = 0; at < 100; at += 1) {
    const value = Math.round(9_000 * Math.sin((at / 50) * Math.PI));
    period.writeInt16LE(value, 4 * at);
    period.writeInt16LE(value, 4 * at + 2);
  }
  body.fill(period, 44);
  return body;
}
