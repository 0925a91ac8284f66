// Servers of single tests. `servers.rs` has the processes; here it is asked to start, kill and start them again.

import { connect } from "node:net";
import { options } from "./driver.mjs";

/** Asks for something to be done, and reads the answer. */
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
      const told = JSON.parse(text);
      if (told.error) fail(new Error(told.error));
      else done(told);
    });
  });
}

/** What is done with a server that was started, and listens at the same address after each start. */
const running = ({ name, base }) => ({
  base,
  /** Ends it without a word: nothing in it gets to run again. */
  kill: () => ask({ do: "kill", name }),
  startAgain: () => ask({ do: "start again", name }),
  /** Lets it work only now and then, until it is sped up or ends. */
  slowDown: () => ask({ do: "slow down", name }),
  speedUp: () => ask({ do: "speed up", name }),
  /** Turns a byte over where these words lie on its disk. It does not run then. */
  damage: (text) => ask({ do: "damage", name, text }),
  /** Ends it as a service manager does. */
  stop: () => ask({ do: "stop", name }),
});

/** A server over an empty folder, or one with the account `ann`, and the set-up link that it printed. */
export async function startServer({ withAccount = false } = {}) {
  const told = await ask({ do: "start", account: withAccount });
  return { ...running(told), link: told.printed.match(/^ {2}(http:\/\/\S+\/-\/set-up#\S+)$/m)[1] };
}

/**
 * A server that was used for weeks, as `past.rs` says. Its webhooks go to the receiver, from which it takes files, too.
 * @param {string} receiver @param {number} files so many lie in `heap/sub/`
 */
export async function startWithPast(receiver, files) {
  const told = await ask({ do: "start with a past", receiver, files });
  return { ...running(told), past: told.past };
}
