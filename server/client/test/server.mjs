// The server under test, and a proxy in front of it that injects failures.
//
// Guarantees: the proxy passes everything else unchanged. Non-goals: tests.

import { createServer, request as httpRequest } from "node:http";
import { Trug } from "@trug/client";

/** URL and key of the server, and the path of Chromium. `tests/browser/client_package.rs` starts them. */
export const { base, key, chromium } = JSON.parse(process.env.TRUG_CLIENT_OPTIONS);

export const trug = new Trug({ url: base, key });

let count = 0;

/** Creates a bucket of its own for a test. */
export async function newBucket(settings = {}, client = trug) {
  count += 1;
  const { bucketName } = await client.createBucket(`test-${process.pid}-${count}`, settings);
  return client.bucket(bucketName);
}

/** Returns bytes that differ at each position, for a comparison of the whole content. */
export function bytes(length, seed = 1) {
  const words = new Uint32Array(Math.ceil(length / 4));
  let state = seed;
  for (let at = 0; at < words.length; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    words[at] = state;
  }
  return new Uint8Array(words.buffer, 0, length);
}

/** Whether a file has exactly these bytes. */
export async function holds(bucket, path, expected) {
  const stored = Buffer.from(await (await bucket.download(path)).arrayBuffer());
  return stored.equals(Buffer.from(expected.buffer, expected.byteOffset, expected.byteLength));
}

/**
 * Starts a proxy. `fault(request, number)` returns what to do with a request: nothing, a `status` with `headers` to
 * send instead, `cutAfter` so many body bytes, `dropReply` to lose the response, or `hang`.
 */
export async function startProxy(fault = () => undefined) {
  const proxy = { seen: [], fault };
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    proxy.seen.push({ method, url, headers });
    const what = proxy.fault({ method, url, headers }, proxy.seen.length) ?? {};
    if (what.hang) return;
    if (what.status) {
      incoming.resume();
      outgoing.writeHead(what.status, what.headers);
      outgoing.end(what.body);
      return;
    }
    const target = new URL(url, base);
    const passed = httpRequest(target, { method, headers }, (reply) => {
      if (what.dropReply) {
        reply.resume();
        reply.on("end", () => incoming.socket.destroy());
        return;
      }
      outgoing.writeHead(reply.statusCode, reply.rawHeaders);
      reply.pipe(outgoing);
    });
    passed.on("error", () => incoming.socket.destroy());
    incoming.on("close", () => {
      if (!incoming.complete) passed.destroy();
    });
    let received = 0;
    incoming.on("data", (chunk) => {
      received += chunk.length;
      if (what.cutAfter !== undefined && received > what.cutAfter) {
        passed.destroy();
        incoming.socket.destroy();
        return;
      }
      if (!passed.write(chunk)) {
        incoming.pause();
        passed.once("drain", () => incoming.resume());
      }
    });
    incoming.on("end", () => passed.end());
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  proxy.url = `http://127.0.0.1:${server.address().port}`;
  proxy.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return proxy;
}
