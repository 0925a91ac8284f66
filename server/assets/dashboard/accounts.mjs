// All accounts of the server, for operators: roles, quotas, plans, and links for choosing a password.

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
const ROLES = [["user", "User – own buckets and API keys"], ["operator", "Operator – also manage the server and all accounts"]];

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
      make("span", { class: "badges" }, it.role === "operator" ? badge("operator", "good") : "user", !it.hasPassword && badge("Invitation pending"),
        hasPlan(it) && [badge(it.plan), standingBadge(it.standing)]),
      [it.storageBytesMax === null ? "No limit" : bytes(it.storageBytesMax), it.objectCountMax !== null && make("small", null, `${number(it.objectCountMax)} files`)],
      when(it.createdAt),
      make("span", { class: "buttons" },
        button("Edit", () => edit(it, list), { name: `edit-${it.id}`, "aria-label": `Edit ${it.name}` }),
        button(it.hasPassword ? "Password link" : "Invite", () => link(it), { name: `invite-${it.id}`, "aria-label": `${it.hasPassword ? "Password link for" : "Invite"} ${it.name}` })),
    ]) };
  }, () => (find.text() ? find.nothing() : nothing("people", "No accounts yet", "Create an account and send its owner an invitation link.")));
  const fairUse = button("Run fair-use check", () => look(list), { title: "Applies the fair-use policy to accounts on the Free plan", hidden: true });
  return page("Accounts", { about: "Accounts own buckets and API keys.", actions: [
    fairUse,
    button("New account", () => create(list), { class: "primary", image: "plus" })] }, find.element, list.element);
}

/** @param {any} values */
const limits = (values) => ({
  storageBytesMax: sizeOf(values.storageBytesMax, "Storage quota"),
  objectCountMax: values.objectCountMax.trim() === "" ? null : Number(values.objectCountMax),
});

/** @param {any} [it] */
const limitFields = (it) => make("div", { class: "pair" },
  field("Storage quota", { name: "storageBytesMax", value: sizeText(it?.storageBytesMax), placeholder: "No limit", spellcheck: "false" }, "For example 50 GB"),
  field("File quota", { name: "objectCountMax", type: "number", min: 0, step: 1, value: it?.objectCountMax ?? "", placeholder: "No limit" }));

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
    return () => tellOnce(`Link for ${it.name}`, `Send this link to ${it.name}. It works once and expires ${moment(expiresAt)}. It will not be shown again.`, snippet("Link", url));
  };
  if (!it.hasPassword) return makeIt().then((tell) => tell(), (error) => note(error.advice ?? error.message, null, { kind: "bad", seconds: 12 }));
  return askFirst(`Password link for ${it.name}`, `${it.name} chooses a new password with this link, which signs out all sessions. Earlier links stop working.`, "Create link", makeIt);
}

/** @param {{load: () => any}} list */
function look(list) {
  askFirst("Run fair-use check", "Accounts on the Free plan that exceed their quota or usage limits move one level: good → notified → upgrade requested → throttled → suspended, at most one level every 3 days. You can undo each change.", "Run check and apply", async () => {
    const { accountCount, violationCount, steps } = await sweep();
    list.load();
    return () => open("Fair use", [make("div", { class: "report" }, facts([["Checked", count(accountCount, "account")], ["Over the limit", number(violationCount)], ["Changes", number(steps.length)]]),
      steps.length === 0 ? make("p", { class: "faint" }, icon("check"), " No accounts changed.")
        : table("Changes", [["Account"], ["New standing"], ["Reason", "wide"]], steps.map((/** @type {any} */ it) => [it.name, standingBadge(it.to), it.reason])).element)], { class: "wide" });
  });
}
