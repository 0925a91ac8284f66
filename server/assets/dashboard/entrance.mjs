// Sign-in, set-up and invitation pages.

import { acceptInvitation, checkInvitation, checkSetUp, setUp, signIn } from "./api.mjs";
import { connections } from "./connect.mjs";
import { bucketNameField, choice, field, form } from "./dialog.mjs";
import { fill, make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { failure, snippet, tick } from "./parts.mjs";

/** Bytes of a password at most. */
const PASSWORD_MAX = 128;
const PASSWORD_MIN = 10;

/** Title and text of a set-up link that cannot be used, by the code of the error. @type {Record<string, [string, string]>} */
const BAD_LINKS = {
  link_not_found: ["This set-up link doesn't work", "It was replaced by a restart, or part of it is missing. Copy the newest link from the server's output."],
  link_expired: ["This set-up link has expired", "Restart the server to get a new one."],
  set_up_done: ["This server is already set up", "Sign in, or ask an operator for an invitation."],
};

/** @param {string} title @param {string} about @param {...any} contents */
function page(title, about, ...contents) {
  document.title = `${title} – trug`;
  return make("main", { class: "entrance" },
    make("section", null, make("p", { class: "logo" }, icon("trug", "icon large"), "trug"), make("h1", null, title), make("p", { class: "faint" }, about), ...contents));
}

const newPassword = () => field("Password", { name: "password", type: "password", required: true, minlength: PASSWORD_MIN, maxlength: PASSWORD_MAX, autocomplete: "new-password" }, `At least ${PASSWORD_MIN} characters. A few words are easier to remember than symbols.`);

const signInLink = () => make("p", { class: "buttons" }, make("a", { class: "as-button primary", href: "/-/" }, "Sign in"));

/** The page of an address without a session. @param {any} place @param {boolean} setUpNeeded @param {() => Promise<void>} entered */
export function entrance(place, setUpNeeded, entered) {
  if (place.view === "set-up") return setUpPage(place.secret, entered);
  if (place.view === "invitation") return invitationPage(place.secret, entered);
  return setUpNeeded ? notSetUpPage() : signInPage(entered);
}

function notSetUpPage() {
  const code = (/** @type {string} */ text) => make("code", null, text);
  return page("This server isn't set up yet", "Open the set-up link printed when the server started. It works once and expires after 30 minutes; restart the server to get a new one.",
    make("details", null, make("summary", null, "Where is the link?"),
      make("p", null, "In the terminal of the server, or in its log:"),
      make("ul", null, make("li", null, code("journalctl -u trug -n 50")), make("li", null, code("docker logs trug")))),
    make("details", null, make("summary", null, "Set up without the link"),
      make("p", null, "Run on the server, with the name of your account:"),
      make("ul", null,
        make("li", null, code("trug account create NAME"), ", or for an existing account ", code("trug account edit NAME --role operator")),
        make("li", null, code("trug account password NAME")))));
}

/** @param {() => Promise<void>} entered */
function signInPage(entered) {
  return page("Sign in", "Forgot your password? Ask an operator of this server for a password link.",
    form([
      field("Name", { name: "name", required: true, autocomplete: "username", autocapitalize: "none", spellcheck: "false", autofocus: true }),
      field("Password", { name: "password", type: "password", required: true, maxlength: PASSWORD_MAX, autocomplete: "current-password" }),
    ], "Sign in", async ({ name, password }) => {
      await signIn(name, password);
      await entered();
    }));
}

/** Checks the link before it shows the form. @param {string} token @param {() => Promise<void>} entered */
function setUpPage(token, entered) {
  if (token === "") return page("This set-up link doesn't work", "Part of the link is missing. Copy the whole line from the server's output.");
  const it = page("Set up trug", "Checking the link…");
  const check = () => checkSetUp(token).then(
    ({ accounts }) => it.replaceWith(setUpForm(token, accounts, entered)),
    (error) => {
      const [title, about] = BAD_LINKS[error.code] ?? [];
      it.replaceWith(title ? page(title, about, error.code === "set_up_done" && signInLink()) : page("Set up trug", "", failure(error, () => location.reload())));
    });
  check();
  return it;
}

/** @param {string} token @param {{name: string, hasBucket: boolean}[]} accounts @param {() => Promise<void>} entered */
function setUpForm(token, accounts, entered) {
  const NEW = "";
  const bucketField = bucketNameField("First bucket", "pics");
  const access = choice("Visibility", { name: "access" }, [["public", "Public – anyone with the URL"], ["private", "Private – signed-in users, API keys and links"]]);
  const nameField = field("Name", { name: "name", required: true, maxlength: 100, autocomplete: "username", autocapitalize: "none", spellcheck: "false" }, "You use this name to sign in.");
  const bucket = make("div", { class: "stack" }, bucketField, access);
  const name = make("div", { class: "stack" }, nameField);
  // An account of the command line becomes the operator.
  const existing = choice("Account", { name: "existing", change: (/** @type {any} */ event) => adopt(event.target.value) },
    [...accounts.map((/** @type {any} */ account) => /** @type {[string, string]} */ ([account.name, account.name])), [NEW, "New account"]]);
  const adopt = (/** @type {string} */ chosen) => {
    const account = accounts.find((account) => account.name === chosen);
    fill(name, account ? null : nameField);
    fill(bucket, ...(account?.hasBucket ? [] : [bucketField, access]));
  };
  if (accounts.length > 0) adopt(accounts[0].name);
  const it = page("Set up trug", "Create the administrator account and your first bucket.",
    form([accounts.length > 0 && existing, name, newPassword(), bucket], "Create", async ({ existing: chosen, ...values }) => {
      const done = await setUp({ token, name: chosen || values.name, ...values });
      it.replaceWith(ready(done, done.bucket?.bucketName ?? "", entered));
      history.replaceState(null, "", "/-/");
    }));
  return it;
}

/** Shows the first key, once. @param {any} done @param {string} bucket @param {() => Promise<void>} entered */
function ready(done, bucket, entered) {
  const open = make("button", { type: "button", class: "primary", disabled: true, click: () => entered() }, "Open my files");
  return page("You're all set", "Save this API key now; it will not be shown again.",
    make("div", { class: "snippets" },
      snippet("API key", done.key),
      done.s3 && snippet("S3 access key ID", done.s3.accessKeyId),
      done.s3 && snippet("S3 secret access key", done.s3.secretAccessKey)),
    bucket !== "" && make("details", null, make("summary", null, "Use it with curl, ShareX, aws-cli and others"),
      connections(bucket, { key: done.key, s3: done.s3 ?? null, scopes: done.apiKey?.scopes })),
    tick("I have saved it", { change: (/** @type {any} */ event) => { open.disabled = !event.target.checked; } }),
    make("p", { class: "buttons" }, open));
}

/** Title and text of an invitation that cannot be used, by the code of the error. @type {Record<string, [string, string]>} */
const BAD_INVITATIONS = {
  link_not_found: ["This invitation doesn't work", "It was used or replaced. Sign in, or ask for a new one."],
  link_expired: ["This invitation has expired", "Ask for a new one."],
};

/** Checks the invitation before it shows the form. @param {string} token @param {() => Promise<void>} entered */
function invitationPage(token, entered) {
  if (token === "") return page("This invitation doesn't work", "Part of the link is missing. Copy all of it, or ask for a new one.");
  const it = page("Welcome", "Checking the invitation…");
  checkInvitation(token).then(({ name }) => it.replaceWith(invitationForm(token, name, entered)), (error) => {
    const [title, about] = BAD_INVITATIONS[error.code] ?? [];
    it.replaceWith(title ? page(title, about, signInLink()) : page("Welcome", "", failure(error, () => location.reload())));
  });
  return it;
}

/** @param {string} token @param {string} name @param {() => Promise<void>} entered */
function invitationForm(token, name, entered) {
  return page(`Welcome, ${name}`, "Choose a password.",
    form([
      make("p", null, "You will sign in as ", make("strong", null, name), "."),
      // Password managers store the name with the password.
      make("input", { class: "unseen", name: "username", autocomplete: "username", value: name, tabindex: "-1", "aria-hidden": "true", readonly: true }),
      newPassword(),
    ], "Set password", async ({ password }) => {
      await acceptInvitation(token, password);
      history.replaceState(null, "", "/-/");
      await entered();
    }));
}
