// Before anybody is signed in: signing in, setting the server up, taking up an invitation.

import { acceptInvitation, setUp, signIn } from "./api.mjs";
import { choice, field, form } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { snippet } from "./parts.mjs";

/** Argon2 is given no more than this. */
const PASSWORD_MAX = 128;
const PASSWORD_MIN = 10;

/** @param {string} title @param {string} about @param {...any} contents */
function page(title, about, ...contents) {
  document.title = `${title} – trug`;
  return make("main", { class: "entrance" },
    make("section", null, make("p", { class: "logo" }, icon("trug", "icon large"), "trug"), make("h1", null, title), make("p", { class: "faint" }, about), ...contents));
}

const newPassword = () => field("Password", { name: "password", type: "password", required: true, minlength: PASSWORD_MIN, maxlength: PASSWORD_MAX, autocomplete: "new-password" }, `At least ${PASSWORD_MIN} characters. A few words are easier to remember than signs.`);

/** The way in that an address names. @param {any} place @param {boolean} setUpNeeded @param {() => Promise<void>} entered */
export function entrance(place, setUpNeeded, entered) {
  if (place.view === "set-up") return setUpPage(place.secret, entered);
  if (place.view === "invitation") return invitationPage(place.secret, entered);
  return signInPage(setUpNeeded, entered);
}

/** @param {boolean} setUpNeeded @param {() => Promise<void>} entered */
function signInPage(setUpNeeded, entered) {
  if (setUpNeeded) {
    return page("Nobody is here yet", "This server has no operator. When it started it printed a link to set it up, which works once, for half an hour.",
      make("p", null, "If the link is lost or too old, start the server again: it prints another."),
      make("p", null, "Or, on the machine itself: ", make("code", null, "trug account create --role operator"), ", then ", make("code", null, "trug account password"), "."));
  }
  return page("Sign in", "To see the buckets and files of this server.",
    form([
      field("Name", { name: "name", required: true, autocomplete: "username", autocapitalize: "none", spellcheck: "false", autofocus: true }),
      field("Password", { name: "password", type: "password", required: true, maxlength: PASSWORD_MAX, autocomplete: "current-password" }),
    ], "Sign in", async ({ name, password }) => {
      await signIn(name, password);
      await entered();
    }));
}

/** @param {string} token @param {() => Promise<void>} entered */
function setUpPage(token, entered) {
  if (token === "") {
    return page("The link is incomplete", "A link to set up ends in # and a long token. Copy all of the line that the server printed.");
  }
  const it = page("Set up trug", "Make the account that runs this server, and a place for the first files.",
    form([
      field("Your name", { name: "name", required: true, maxlength: 100, autocomplete: "username", autocapitalize: "none", spellcheck: "false" }),
      newPassword(),
      field("First bucket", { name: "bucketName", required: true, minlength: 3, maxlength: 63, value: "files", pattern: "[a-z0-9][a-z0-9._\\-]*", autocapitalize: "none", spellcheck: "false" }, "3 to 63 characters out of a–z, 0–9, - . _ It stands in the address of every file."),
      choice("Who may read its files", { name: "access" }, [["public", "Anyone with the address"], ["private", "With a key, or signed in"]]),
    ], "Set up", async (values) => {
      const answer = await setUp({ token, ...values });
      it.replaceWith(ready(answer, values.bucketName, entered));
      history.replaceState(null, "", "/-/");
    }));
  return it;
}

/** The first key, shown this once, with what to do with it. @param {any} answer @param {string} bucket @param {() => Promise<void>} entered */
function ready(answer, bucket, entered) {
  const key = answer.key;
  const base = document.documentElement.dataset.publicUrl || location.origin;
  return page("It is set up", "This is your first API key. It is shown only now: keep it where you keep passwords.",
    make("div", { class: "snippets" },
      snippet("API key", key),
      snippet("Upload from a shell", `curl -H "Authorization: Bearer ${key}" -F file=@cat.jpg ${base}/${bucket}/`)),
    make("p", null, make("a", { href: `/-/integrations/sharex?bucket=${encodeURIComponent(bucket)}`, download: true }, "An uploader for ShareX"), ", in which you put this key where it says API_KEY."),
    make("p", { class: "buttons" }, make("button", { type: "button", class: "primary", click: () => entered() }, "To the files")));
}

/** @param {string} token @param {() => Promise<void>} entered */
function invitationPage(token, entered) {
  if (token === "") return page("The link is incomplete", "A link of an invitation ends in # and a long token. Ask for it again, and copy all of it.");
  return page("Welcome", "You were invited to this server. Choose a password for your account.",
    form([newPassword()], "Set password", async ({ password }) => {
      await acceptInvitation(token, password);
      history.replaceState(null, "", "/-/");
      await entered();
    }));
}
