// The page: the session, the view of the address, and the frame around it.

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

/** Views whose modules are loaded on demand. @type {Record<string, () => Promise<any>>} */
const LATER = {
  account: () => import("./account.mjs"), accounts: () => import("./accounts.mjs"), audit: () => import("./audit.mjs"), connect: () => import("./connect.mjs"),
  deleted: () => import("./deleted.mjs"), keys: () => import("./keys.mjs"), links: () => import("./links.mjs"), organisations: () => import("./organisations.mjs"),
  playground: () => import("./playground.mjs"), search: () => import("./search-all.mjs"), server: () => import("./server.mjs"), settings: () => import("./settings.mjs"), storage: () => import("./storage.mjs"), usage: () => import("./usage.mjs"),
  webhooks: () => import("./webhooks.mjs"),
};
/** Views of one bucket. */
const OF_BUCKETS = ["deleted", "playground", "settings", "webhooks"];
/** Views whose addresses may name a bucket. */
const WITH_BUCKETS = ["connect", "links", "usage", ...OF_BUCKETS];

/** Number of the latest navigation: a view that loads too late is dropped. */
let latest = 0;

/** @param {ReturnType<typeof here>} place */
function show(place) {
  const mine = (latest += 1);
  const isEntrance = ["set-up", "invitation"].includes(place.view);
  // The address is shown after signing in.
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
    return put(stay(make("div", { class: "empty" }, icon("search", "icon large"), make("h1", null, "Page not found"), make("p", null, "The URL may be incomplete or from an older version."),
      make("p", { class: "buttons" }, make("a", { class: "as-button", href: "/-/" }, "Home")))));
  }
  put(stay(make("p", { class: "faint coming" }, "Loading…")));
  around.searchIn(WITH_BUCKETS.includes(place.view) ? place.bucket : "");
  return later(mine, LATER[place.view], async (module) => {
    const next = await module.view(place, around);
    if (mine !== latest) return next.close();
    put(next);
    // The pressed link is removed.
    if (document.activeElement === document.body) around.main.focus({ preventScroll: true });
  });
}

/** A static view. @param {Element} element */
const stay = (element) => ({ element, close() {} });

/** Shows a view when its module is loaded. @param {number} mine @param {() => Promise<any>} load @param {(module: any) => any} done */
async function later(mine, load, done) {
  try {
    const module = await bring(load);
    if (mine === latest) await done(module);
  } catch (error) {
    if (mine !== latest) return;
    const isNewer = error instanceof TypeError;
    const problem = make("div", { class: "empty" }, icon("warning", "icon large"), make("p", { role: "alert" }, isNewer ? "Couldn't load this page. The server may have been updated." : explain(error)),
      make("button", { type: "button", click: () => location.reload() }, icon("again"), "Reload"));
    fill(frame ? frame.main : app, problem);
  }
}

/** Shows a page without the frame. @param {Element} page */
function alone(page) {
  view?.close();
  frame?.close();
  view = frame = null;
  // An open dialog would cover the page.
  for (const dialog of document.querySelectorAll("dialog[open]")) /** @type {HTMLDialogElement} */ (dialog).close();
  fill(app, page);
}

/** Loads the session and shows the address. */
async function enter() {
  known = await session();
  show(here());
}

function leave() {
  known = { signedIn: false };
  show(here());
}

for (const name of ["folder", "file", "picture", "film", "sound", "text", "archive", "check", "dots", "warning"]) {
  document.documentElement.style.setProperty(`--icon-${name}`, maskOf(name));
}
// The focus ring is for keyboard users.
addEventListener("keydown", () => { document.documentElement.dataset.keys = ""; }, { capture: true });
addEventListener("pointerdown", () => { delete document.documentElement.dataset.keys; }, { capture: true });
whenSignedOut(() => { if (known?.signedIn) leave(); });
try {
  known = await session();
  start(show);
} catch (error) {
  fill(app, make("main", { class: "entrance" }, make("section", null, make("p", { class: "logo" }, icon("trug", "icon large"), "trug"),
    make("h1", null, "The server isn't responding"), make("p", { role: "alert" }, explain(error)),
    make("p", { class: "buttons" }, make("button", { type: "button", class: "primary", click: () => location.reload() }, "Try again")))));
}
