// All accounts of the server, for its operator: who there is, what they may, and links with which they choose their passwords.

import { hasPlan, standingBadge, STANDINGS, standingHistory } from "./account.mjs";
import { ask, choice, field, open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { note } from "./live.mjs";
import { accounts, createAccount, editAccount, invite, sweep } from "./manage.mjs";
import { askFirst, badge, button, facts, finder, nothing, page, paged, snippet, table, tellOnce, when } from "./parts.mjs";
import { sizeOf, sizeText } from "./sizes.mjs";
import { bytes, count, moment, number } from "./text.mjs";

/** @type {[string, string][]} */
const PLANS = [["Free", "Free"], ["Starter", "Starter"], ["Pro", "Pro"], ["Business", "Business"]];
/** @type {[string, string][]} */
const ROLES = [["user", "user"], ["operator", "operator: manages the server and all accounts"]];

/** @param {any} place */
export function view(place) {
  const find = finder("Find", place, () => list.load());
  /** @type {{element: any, load: () => Promise<any>}} */
  const list = paged("Accounts", [["Name"], ["Role"], ["Quota"], ["Created"], ["Actions", "act"]], async (cursor) => {
    const answer = await accounts(cursor, find.text());
    if (cursor === null) find.tell(answer.accounts.length, answer.nextCursor === null);
    if (answer.accounts.some(hasPlan)) fairUse.hidden = false;
    return { cursor: answer.nextCursor, rows: answer.accounts.map((/** @type {any} */ it) => [
      [make("strong", null, it.name), make("small", null, make("code", null, it.id))],
      make("span", { class: "badges" }, it.role === "operator" ? badge("operator", "good") : "user", !it.hasPassword && badge("invitation pending"),
        hasPlan(it) && [badge(it.plan), standingBadge(it.standing)]),
      [it.storageBytesMax === null ? "no limit" : bytes(it.storageBytesMax), it.objectCountMax !== null && make("small", null, `${number(it.objectCountMax)} files`)],
      when(it.createdAt),
      make("span", { class: "buttons" },
        button("Edit", () => edit(it, list), { name: `edit-${it.id}`, "aria-label": `Edit ${it.name}` }),
        button(it.hasPassword ? "New password link" : "Invite", () => link(it), { name: `invite-${it.id}`, "aria-label": `${it.hasPassword ? "New password link for" : "Invite"} ${it.name}` })),
    ]) };
  }, () => (find.text() ? find.nothing() : nothing("people", "No account yet", "Create an account and send its owner an invitation link.")));
  const fairUse = button("Check fair use", () => look(list), { title: "Applies the fair-use policy to accounts on the plan Free", hidden: true });
  return page("Accounts", { about: "Accounts own buckets and API keys.", actions: [
    fairUse,
    button("New account", () => create(list), { class: "primary", image: "plus" })] }, find.element, list.element);
}

/** @param {any} values */
const limits = (values) => ({
  storageBytesMax: sizeOf(values.storageBytesMax, "The quota"),
  objectCountMax: values.objectCountMax.trim() === "" ? null : Number(values.objectCountMax),
});

/** @param {any} [it] */
const limitFields = (it) => make("div", { class: "pair" },
  field("Storage quota", { name: "storageBytesMax", value: sizeText(it?.storageBytesMax), placeholder: "no limit", spellcheck: "false" }, "Such as 50 GB."),
  field("File quota", { name: "objectCountMax", type: "number", min: 0, step: 1, value: it?.objectCountMax ?? "", placeholder: "no limit" }));

const nameField = (value = "") => field("Name", { name: "name", required: true, maxlength: 100, value, spellcheck: "false", autocapitalize: "none" }, "Used to sign in. Must be unique.");

/** @param {{load: () => any}} list */
function create(list) {
  ask("New account", [nameField(), choice("Role", { name: "role" }, ROLES, "user"), limitFields()], "Create", async (values) => {
    const account = await createAccount({ name: values.name, role: values.role, ...limits(values) });
    list.load();
    return () => link(account);
  });
}

/** @param {any} it @param {{load: () => any}} list */
function edit(it, list) {
  const standings = Object.entries(STANDINGS).map(([name, what]) => /** @type {[string, string]} */ ([name, `${name.replaceAll("_", " ")}: ${what}`]));
  ask(`Edit ${it.name}`, [
    nameField(it.name), choice("Role", { name: "role" }, ROLES, it.role), limitFields(it),
    make("details", { open: hasPlan(it) }, make("summary", null, "Plan and standing"),
      choice("Plan", { name: "plan" }, PLANS, it.plan), choice("Standing", { name: "standing" }, standings, it.standing), standingHistory(it.standingChanges ?? [])),
  ], "Save", async (values) => {
    const wanted = { name: values.name, plan: values.plan, role: values.role, standing: values.standing, ...limits(values) };
    const changes = Object.fromEntries(Object.entries(wanted).filter(([name, value]) => value !== it[name]));
    if (Object.keys(changes).length > 0) await editAccount(it.id, changes);
    note(Object.keys(changes).length > 0 ? "Saved." : "No changes.");
    list.load();
  });
}

/** @param {any} it */
function link(it) {
  const makeIt = async () => {
    const { url, expiresAt } = await invite(it.id);
    return () => tellOnce(`A link for ${it.name}`, `Send it to ${it.name}: it is good once, until ${moment(expiresAt)}. It is shown this once.`, snippet("Link", url));
  };
  if (!it.hasPassword) return makeIt().then((tell) => tell(), (error) => note(error.advice ?? error.message, null, { kind: "bad", seconds: 12 }));
  return askFirst(`A new password for ${it.name}`, "With the link its holder chooses another password, and all sessions of the account end then. Links made before are good no more.", "Make the link", makeIt);
}

/** @param {{load: () => any}} list */
function look(list) {
  askFirst("Check fair use", "Accounts of the plan Free that store more than their quota, or whose use is far beyond the plan for long, go one step on: from good by notified, upgrade requested and throttled to suspended, with three days between. You can take it back.", "Check, and take the steps", async () => {
    const { accountCount, violationCount, steps } = await sweep();
    list.load();
    return () => open("Fair use", [make("div", { class: "told" }, facts([["Looked at", count(accountCount, "account")], ["Beyond fair use", number(violationCount)], ["Steps taken", number(steps.length)]]),
      steps.length === 0 ? make("p", { class: "faint" }, icon("check"), " Nobody was moved.")
        : table("Steps", [["Account"], ["To"], ["Why", "wide"]], steps.map((/** @type {any} */ it) => [it.name, standingBadge(it.to), it.reason])).element)], { class: "wide" });
  });
}
