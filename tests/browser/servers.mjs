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

/** A server over an empty folder, which listens at the same address after each start. */
export async function startServer() {
  const { name, base, printed } = await ask({ do: "start" });
  return {
    base,
    /** The link that it printed, which sets it up. */
    link: printed.match(/^http:\/\/\S+\/-\/set-up#\S+$/m)[0],
    /** Ends it without a word: nothing in it gets to run again. */
    kill: () => ask({ do: "kill", name }),
    startAgain: () => ask({ do: "start again", name }),
    /** Ends it as a service manager does. */
    stop: () => ask({ do: "stop", name }),
  };
}
