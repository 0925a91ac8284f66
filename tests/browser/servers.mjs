// Servers of single tests. `servers.rs` owns the processes; this module requests start, kill and restart.

import { connect } from "node:net";
import { options } from "./driver.mjs";

/** Sends a command, and reads the response. */
function ask(what) {
  return new Promise((done, fail) => {
    const [host, port] = options.servers.split(":");
    const socket = connect(Number(port), host, () => socket.write(`${JSON.stringify(what)}\n`));
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (part) => { text += part; });
    socket.on("error", fail);
    socket.on("close", () => {
      if (text === "") return fail(new Error(`${JSON.stringify(what)} was not done`));
      const reply = JSON.parse(text);
      if (reply.error) fail(new Error(reply.error));
      else done(reply);
    });
  });
}

/** Operations on a started server, which listens at the same address after each start. */
const running = ({ name, base }) => ({
  base,
  /** Kills it without any cleanup. */
  kill: () => ask({ do: "kill", name }),
  startAgain: () => ask({ do: "start again", name }),
  /** Lets it run intermittently, until it is sped up or ends. */
  slowDown: () => ask({ do: "slow down", name }),
  speedUp: () => ask({ do: "speed up", name }),
  /** Damages a byte of these words on its disk. The server is down then. */
  damage: (text) => ask({ do: "damage", name, text }),
  /** Stops it as a service manager does. */
  stop: () => ask({ do: "stop", name }),
});

/** A server over an empty folder, or one with the account `ann`, and the set-up link that it printed. */
export async function startServer({ withAccount = false } = {}) {
  const reply = await ask({ do: "start", account: withAccount });
  return { ...running(reply), link: reply.printed.match(/^ {2}(http:\/\/\S+\/-\/set-up#\S+)$/m)[1] };
}

/**
 * Starts a server with weeks of history, created by `past.rs`. Its webhooks go to the receiver, from which it also imports files.
 * @param {string} receiver @param {number} files so many lie in `heap/sub/`
 */
export async function startWithPast(receiver, files) {
  const reply = await ask({ do: "start with a past", receiver, files });
  return { ...running(reply), past: reply.past };
}
