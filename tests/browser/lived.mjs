// A server with weeks of history, and a local receiver: webhooks are sent to it, and files fetched from it.

import { createServer } from "node:http";
import { open, options } from "./driver.mjs";
import { startWithPast } from "./servers.mjs";
import { asking, signIn } from "./sessions.mjs";

/** Content of the file `desk/2026/letter.txt`, which is once on the disk. */
export const LETTER = "Dear reader, these words lie once on the disk.";

/** The receiver: it records posted bodies, and serves its files. */
async function machine() {
  const it = {
    origin: "",
    /** @type {{path: string, id: string, event: any}[]} */
    seen: [],
    /** Response to posts. */
    answer: { status: 503, text: "busy" },
    /** Files by path; a promise is awaited. @type {Map<string, string | Promise<string>>} */
    files: new Map(),
    end: () => server.close(),
  };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (request.method === "POST") {
      it.seen.push({ path: request.url, id: request.headers["webhook-id"], event: JSON.parse(body) });
      return response.writeHead(it.answer.status).end(it.answer.text);
    }
    const file = await it.files.get(request.url);
    if (file === undefined) return response.writeHead(404).end("not here");
    return response.writeHead(200, { "Content-Type": "text/plain" }).end(file);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  it.origin = `http://127.0.0.1:${server.address().port}`;
  return it;
}

/** Starts both. `ask` sends requests as the operator, who is signed in on pages of `openAs`. */
export async function live({ files = 0 } = {}) {
  const other = await machine();
  const server = await startWithPast(other.origin, files);
  const { name, password } = options.operator;
  const session = await signIn(name, { password, at: server.base });
  return {
    ...server, other,
    /** The id of the operator's account. */
    olga: (await asking(session, "GET", "/api/account", undefined, server.base)).account.id,
    ask: (method, path, body) => asking(session, method, path, body, server.base),
    openAs: (address, how = {}) => open(address, { session, at: server.base, ...how }),
    /** Damages a byte of the letter, while the server is down. */
    async spoil() {
      await server.kill();
      await server.damage(LETTER);
      await server.startAgain();
    },
  };
}

/** The same server for all tests of a file, started by the first of them. @param {{files?: number}} [how] */
export function shared(how) {
  /** @type {ReturnType<typeof live> | null} */
  let started = null;
  return () => (started ??= live(how));
}
