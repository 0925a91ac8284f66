// Puts the page together: who is signed in, which view the address names, and what stays while views change.

import { Browser } from "./browser.mjs";
import { explain, session, whenSignedOut } from "./api.mjs";
import { fill, make } from "./dom.mjs";
import { invitationPage, setUpPage, signInPage } from "./entrance.mjs";
import { Frame } from "./frame.mjs";
import { Home } from "./home.mjs";
import { icon, maskOf } from "./icons.mjs";
import { Playground } from "./playground.mjs";
import { here, start, turn } from "./router.mjs";
import { tellUnfinished } from "./uploads.mjs";

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
/** @type {any} */
let known = null;
/** @type {Frame | null} */
let frame = null;
/** @type {any} */
let view = null;

/** @param {ReturnType<typeof here>} place */
function show(place) {
  if (place.view === "set-up") return alone(setUpPage(place.secret, enter));
  if (place.view === "invitation") return alone(invitationPage(place.secret, enter));
  // The address stays, and is shown as soon as somebody is there.
  if (!known?.signedIn) return alone(signInPage(known?.setUpNeeded ?? false, enter));
  if (place.view === "sign-in") return turn("/-/");
  if (view?.follow?.(place)) return;
  if (!frame) {
    frame = new Frame(known.account, () => leave());
    fill(app, frame.element);
    tellUnfinished();
  }
  view?.close();
  view = viewOf(place, frame);
  frame.show(view.element, place.bucket);
}

/** @param {ReturnType<typeof here>} place @param {Frame} around */
function viewOf(place, around) {
  const isBucket = place.bucket !== "";
  if (place.view === "") return new Home(around);
  if ((place.view === "files" || place.view === "search") && isBucket) return new Browser(place, around);
  if (place.view === "playground" && place.key !== "") {
    around.searchIn(place.bucket, "");
    return new Playground(place);
  }
  around.searchIn("");
  const element = make("div", { class: "empty" }, icon("warning", "icon large"), make("p", null, "There is no such view."), make("p", null, make("a", { href: "/-/" }, "To all buckets")));
  return { element, close() {} };
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
