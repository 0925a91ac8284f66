// One's own account: name, plan and standing, password, and where it is signed in.

import { ask, field, form } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { complain, note } from "./live.mjs";
import { changePassword, endSession, endSessions, ownAccount, renameSelf, sessions } from "./manage.mjs";
import { copyAndTell } from "./copy.mjs";
import { askFirst, badge, button, facts, page, panel, part, table, when } from "./parts.mjs";
import { bytes, number } from "./text.mjs";

const PASSWORD_MIN = 10;
const PASSWORD_MAX = 128;

/** What a standing means for whoever has it. @type {Record<string, string>} */
export const STANDINGS = {
  good: "Everything works.", notified: "Use is beyond what the plan is for: look at the usage.", upgrade_requested: "Use has been beyond the plan for long: ask for another plan.",
  throttled: "All rates are a tenth, until use is within the plan again.", suspended: "Everything but public delivery is refused.",
};

/** Whether an account is on a limited plan, or was. @param {any} account */
export const hasPlan = (account) => account.plan !== "Business" || account.standing !== "good";

/** @param {string} standing */
export const standingBadge = (standing) => badge(standing.replaceAll("_", " "), standing === "good" ? "good" : standing === "suspended" || standing === "throttled" ? "bad" : "warn");

/** How an account came to its standing. @param {any[]} changes */
export const standingHistory = (changes) => (changes.length === 0 ? null : make("details", null, make("summary", null, "How it came to that"),
  make("ol", { class: "history" }, changes.map((it) => make("li", null, when(it.at), ` ${it.from.replaceAll("_", " ")} → ${it.to.replaceAll("_", " ")}: ${it.reason} (${it.by})`)))));

/** Plan and standing of an account on a limited plan. @param {any} account @returns {[string, any][]} */
export const standingFacts = (account) => (hasPlan(account) ? [
  ["Plan", account.plan],
  ["Standing", [standingBadge(account.standing), make("small", null, STANDINGS[account.standing] ?? ""), standingHistory(account.standingChanges ?? [])]],
] : []);

/** A browser by what it called itself. @param {string} agent */
export function browserOf(agent) {
  const name = [["Edg/", "Edge"], ["OPR/", "Opera"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"], ["curl/", "curl"]].find(([mark]) => agent.includes(mark))?.[1];
  const system = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], ["Mac OS", "macOS"], ["Linux", "Linux"]].find(([mark]) => agent.includes(mark))?.[1];
  return [name, system].filter(Boolean).join(" on ") || agent.slice(0, 60) || "not told";
}

/** @param {any} _place @param {any} frame */
export function view(_place, frame) {
  const own = part(ownAccount, (account) => [
    facts([
      ["Name", [make("strong", null, account.name), " ", button("Rename", () => rename(account, own, frame), { class: "link" })]],
      ["Id", [make("code", null, account.id), " ", button("Copy", () => copyAndTell(account.id, "Id copied"), { class: "link", "aria-label": "Copy the id" }), make("small", null, "With it others add you to their organisations.")]],
      ["Role", account.role === "operator" ? badge("operator", "good") : "user"],
      ...standingFacts(account),
      ["May store", [account.storageBytesMax === null && account.objectCountMax === null ? "as much as there is room for" : [account.storageBytesMax === null ? "any number of bytes" : bytes(account.storageBytesMax), ", ", account.objectCountMax === null ? "any number of files" : `${number(account.objectCountMax)} files`], " ", make("a", { href: "/-/usage" }, "Usage")]],
      ["Since", when(account.createdAt)],
    ])]);
  const places = part(sessions, (all) => table("Where you are signed in", [["Browser"], ["Address"], ["Signed in"], ["Last seen"], ["End", "act"]], all.map((/** @type {any} */ it) => [
    [make("strong", { title: it.agent }, browserOf(it.agent)), it.current && badge("this one", "good")], it.address || "not known", when(it.createdAt), when(it.lastSeenAt),
    it.current ? "" : button("Sign out", () => endSession(it.id).then(() => places.load(), complain), { name: `end-${it.id}`, "aria-label": `Sign out ${browserOf(it.agent)}` }),
  ])).element);
  const secret = (/** @type {string} */ label, /** @type {any} */ attributes, /** @type {string} */ hint = "") => field(label, { type: "password", required: true, maxlength: PASSWORD_MAX, ...attributes }, hint);
  const password = form([
    make("input", { type: "text", hidden: true, autocomplete: "username", value: frame.account?.name ?? "", name: "username" }),
    secret("Current password", { name: "current", autocomplete: "current-password" }),
    secret("New password", { name: "wanted", minlength: PASSWORD_MIN, autocomplete: "new-password" }, `At least ${PASSWORD_MIN} characters. A few words are easier to remember than signs.`),
    secret("Repeat it", { name: "again", autocomplete: "new-password" }),
  ], "Change password", async ({ current, wanted, again }) => {
    if (wanted !== again) throw new Error("The two new passwords are not alike: type them again.");
    await changePassword(current, wanted);
    password.reset();
    note("The password is changed. Everywhere else you are signed out.");
    places.load();
  });
  return page("Your account", {},
    panel("You", {}, own.element),
    panel("Password", { about: "A new password ends all sessions but this one." }, password),
    panel("Where you are signed in", {
      about: "A session ends after a week without use.",
      actions: [button("Sign out everywhere", () => askFirst("Sign out everywhere", "All sessions end, this one too. API keys stay as they are.", "Sign out everywhere", async () => {
        await endSessions();
        frame.left();
      }), { class: "danger" })],
    }, places.element));
}

/** @param {any} account @param {{load: () => any}} own @param {any} frame */
function rename(account, own, frame) {
  ask("Rename yourself", [field("Name", { name: "name", required: true, maxlength: 100, value: account.name, spellcheck: "false", autocapitalize: "none" }, "You sign in with it.")], "Rename", async ({ name }) => {
    const { name: now } = await renameSelf(name);
    frame.rename(now);
    own.load();
  });
}
