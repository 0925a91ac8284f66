// Puts the page together: who is signed in, which view the address names, and what stays while views change.

import { Browser } from "./browser.mjs";
import { explain, session, whenSignedOut } from "./api.mjs";
import { fill, make } from "./dom.mjs";
import { Frame } from "./frame.mjs";
import { Home } from "./home.mjs";
import { icon, maskOf } from "./icons.mjs";
import { bring } from "./later.mjs";
import { here, start, turn } from "./router.mjs";
import { tellUnfinished } from "./uploads.mjs";

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
/** @type {any} */
let known = null;
/** @type {Frame | null} */
let frame = null;
/** @type {any} */
let view = null;

/** Views whose modules come when the first of them is opened. @type {Record<string, () => Promise<any>>} */
const LATER = {
  account: () => import("./account.mjs"), accounts: () => import("./accounts.mjs"), audit: () => import("./audit.mjs"), connect: () => import("./connect.mjs"),
  deleted: () => import("./deleted.mjs"), keys: () => import("./keys.mjs"), links: () => import("./links.mjs"), organisations: () => import("./organisations.mjs"),
  playground: () => import("./playground.mjs"), settings: () => import("./settings.mjs"), storage: () => import("./storage.mjs"), usage: () => import("./usage.mjs"),
  webhooks: () => import("./webhooks.mjs"),
};
/** Views of one bucket. */
const OF_BUCKETS = ["deleted", "playground", "settings", "webhooks"];
/** Views whose addresses may name a bucket. */
const WITH_BUCKETS = ["connect", "links", "usage", ...OF_BUCKETS];

/** What was asked for last; what comes too late for something else is not shown. */
let asked = 0;

/** @param {ReturnType<typeof here>} place */
function show(place) {
  const mine = (asked += 1);
  const isEntrance = ["set-up", "invitation"].includes(place.view);
  // The address stays, and is shown as soon as somebody is there.
  if (isEntrance || !known?.signedIn) return later(mine, () => import("./entrance.mjs"), (entrance) => alone(entrance.entrance(place, known?.setUpNeeded ?? false, enter)));
  if (place.view === "sign-in") return turn("/-/");
  if (view?.follow?.(place)) return;
  if (!frame) {
    frame = new Frame(known.account, () => leave());
    fill(app, frame.element);
    tellUnfinished();
  }
  const around = frame;
  const put = (/** @type {any} */ next) => {
    view?.close();
    view = next;
    if (view.title) document.title = `${view.title} – trug`;
    around.show(view.element, WITH_BUCKETS.includes(place.view) || view instanceof Browser ? place.bucket : "");
  };
  if (place.view === "") return put(new Home(around));
  if (["files", "search"].includes(place.view) && place.bucket !== "") return put(new Browser(place, around));
  if (!(place.view in LATER) || (OF_BUCKETS.includes(place.view) && place.bucket === "") || (place.view === "playground" && place.key === "")) {
    around.searchIn("");
    return put(stay(make("div", { class: "empty" }, icon("search", "icon large"), make("h1", null, "There is no such page"), make("p", null, "The address may be cut off, or from another version of the dashboard."),
      make("p", { class: "buttons" }, make("a", { class: "as-button", href: "/-/" }, "All buckets")))));
  }
  put(stay(make("p", { class: "faint coming" }, "Loading …")));
  around.searchIn(WITH_BUCKETS.includes(place.view) ? place.bucket : "");
  return later(mine, LATER[place.view], async (module) => {
    const next = await module.view(place, around);
    if (mine !== asked) return next.close();
    put(next);
    // What was pressed is gone.
    if (document.activeElement === document.body) around.main.focus({ preventScroll: true });
  });
}

/** A view that nothing has to be done for. @param {Element} element */
const stay = (element) => ({ element, close() {} });

/** Goes on when the module is there. @param {number} mine @param {() => Promise<any>} load @param {(module: any) => any} done */
async function later(mine, load, done) {
  try {
    const module = await bring(load);
    if (mine === asked) await done(module);
  } catch (error) {
    if (mine !== asked) return;
    const isNewer = error instanceof TypeError;
    const problem = make("div", { class: "empty" }, icon("warning", "icon large"), make("p", { role: "alert" }, isNewer ? "This page could not be loaded. The server may have been updated since you opened it." : explain(error)),
      make("button", { type: "button", click: () => location.reload() }, icon("again"), "Load the page again"));
    fill(frame ? frame.main : app, problem);
  }
}

/** Shows a page without the frame. @param {Element} page */
function alone(page) {
  view?.close();
  frame?.close();
  view = frame = null;
  // What was asked in front of the view would keep everybody out.
  for (const dialog of document.querySelectorAll("dialog[open]")) /** @type {HTMLDialogElement} */ (dialog).close();
  fill(app, page);
}

/** Looks who is signed in, and shows what the address names. */
async function enter() {
  known = await session();
  show(here());
}

function leave() {
  known = { signedIn: false };
  show(here());
}

for (const name of ["folder", "file", "picture", "film", "sound", "text", "archive", "check"]) {
  document.documentElement.style.setProperty(`--icon-${name}`, maskOf(name));
}
// Whether the one who is here uses keys, which is when rings show where the focus is.
addEventListener("keydown", () => { document.documentElement.dataset.keys = ""; }, { capture: true });
addEventListener("pointerdown", () => { delete document.documentElement.dataset.keys; }, { capture: true });
whenSignedOut(() => { if (known?.signedIn) leave(); });
try {
  known = await session();
  start(show);
} catch (error) {
  fill(app, make("main", { class: "entrance" }, make("section", null, make("p", { class: "logo" }, icon("trug", "icon large"), "trug"),
    make("h1", null, "The server does not answer"), make("p", { role: "alert" }, explain(error)),
    make("p", { class: "buttons" }, make("button", { type: "button", class: "primary", click: () => location.reload() }, "Try again")))));
}
