// A server that was used for weeks, and a machine beside it: webhooks are sent there, and files fetched from there.

import { createServer } from "node:http";
import { open, options } from "./driver.mjs";
import { startWithPast } from "./servers.mjs";
import { asking, signIn } from "./sessions.mjs";

/** Words of the file `desk/2026/letter.txt`, which lie once on the disk. */
export const LETTER = "Dear reader, these words lie once on the disk.";

/** The machine: it writes down what is posted to it, and sends the files that it has. */
async function machine() {
  const it = {
    origin: "",
    /** @type {{path: string, id: string, event: any}[]} */
    seen: [],
    /** What it answers to what is posted. */
    answer: { status: 503, text: "busy" },
    /** Files by path; what is promised is waited for. @type {Map<string, string | Promise<string>>} */
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

/** Starts both. `ask` asks as the operator, who is signed in on pages of `openAs`. */
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
    /** Turns a byte of the letter over, while the server is down. */
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
