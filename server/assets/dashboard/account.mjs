// The signed-in account: name, plan and standing, password, and sessions.

import { ask, field, form } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { complain, note } from "./live.mjs";
import { changePassword, endSession, endSessions, ownAccount, renameSelf, sessions } from "./manage.mjs";
import { copyAndTell } from "./copy.mjs";
import { askFirst, badge, button, facts, page, panel, part, table, when } from "./parts.mjs";
import { bytes, number } from "./text.mjs";

const PASSWORD_MIN = 10;
const PASSWORD_MAX = 128;

/** The effect of each standing on an account. @type {Record<string, string>} */
export const STANDINGS = {
  good: "No restrictions.", notified: "Usage exceeds the plan.", upgrade_requested: "Usage has exceeded the plan for some time. A higher plan is needed.",
  throttled: "Rate limits are reduced to 10% until usage is back within the plan.", suspended: "Account suspended. Only public files are served.",
};

/** Whether an account is on a limited plan, or was. @param {any} account */
export const hasPlan = (account) => account.plan !== "Business" || account.standing !== "good";

/** @param {string} standing */
export const standingBadge = (standing) => badge(standing.replaceAll("_", " "), standing === "good" ? "good" : standing === "suspended" || standing === "throttled" ? "bad" : "warn");

/** The history of an account's standing. @param {any[]} changes */
export const standingHistory = (changes) => (changes.length === 0 ? null : make("details", null, make("summary", null, "History"),
  make("ol", { class: "history" }, changes.map((it) => make("li", null, when(it.at), ` ${it.from.replaceAll("_", " ")} → ${it.to.replaceAll("_", " ")}: ${it.reason} (${it.by})`)))));

/** Plan and standing of an account on a limited plan. @param {any} account @returns {[string, any][]} */
export const standingFacts = (account) => (hasPlan(account) ? [
  ["Plan", account.plan],
  ["Standing", [standingBadge(account.standing), make("small", null, STANDINGS[account.standing] ?? ""), standingHistory(account.standingChanges ?? [])]],
] : []);

/** Browser and operating system by a `User-Agent` header. @param {string} agent */
export function browserOf(agent) {
  const name = [["Edg/", "Edge"], ["OPR/", "Opera"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"], ["curl/", "curl"]].find(([mark]) => agent.includes(mark))?.[1];
  const system = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], ["Mac OS", "macOS"], ["Linux", "Linux"]].find(([mark]) => agent.includes(mark))?.[1];
  return [name, system].filter(Boolean).join(" on ") || agent.slice(0, 60) || "Unknown";
}

/** @param {any} _place @param {any} frame */
export function view(_place, frame) {
  const own = part(ownAccount, (account) => [
    facts([
      ["Name", [make("strong", null, account.name), " ", button("Rename", () => rename(account, own, frame), { class: "link" })]],
      ["ID", [make("code", null, account.id), " ", button("Copy", () => copyAndTell(account.id, "ID copied"), { class: "link", "aria-label": "Copy ID" }), make("small", null, "Share it to be invited to an organisation.")]],
      ["Role", account.role === "operator" ? badge("operator", "good") : "user"],
      ...standingFacts(account),
      ["Storage quota", [account.storageBytesMax === null && account.objectCountMax === null ? "No limit" : [account.storageBytesMax === null ? "No size limit" : bytes(account.storageBytesMax), ", ", account.objectCountMax === null ? "no file limit" : `${number(account.objectCountMax)} files`], " ", make("a", { href: "/-/usage" }, "Usage")]],
      ["Created", when(account.createdAt)],
    ])]);
  const places = part(sessions, (all) => table("Active sessions", [["Browser"], ["IP address"], ["Signed in"], ["Last seen"], ["Actions", "act"]], all.map((/** @type {any} */ it) => [
    [make("strong", { title: it.agent }, browserOf(it.agent)), it.current && badge("This session", "good")], it.address || "Unknown", when(it.createdAt), when(it.lastSeenAt),
    it.current ? "" : button("Sign out", () => endSession(it.id).then(() => places.load(), complain), { name: `end-${it.id}`, "aria-label": `Sign out ${browserOf(it.agent)}` }),
  ])).element);
  const secret = (/** @type {string} */ label, /** @type {any} */ attributes, /** @type {string} */ hint = "") => field(label, { type: "password", required: true, maxlength: PASSWORD_MAX, ...attributes }, hint);
  const password = form([
    make("input", { type: "text", hidden: true, autocomplete: "username", value: frame.account?.name ?? "", name: "username" }),
    secret("Current password", { name: "current", autocomplete: "current-password" }),
    secret("New password", { name: "wanted", minlength: PASSWORD_MIN, autocomplete: "new-password" }, `At least ${PASSWORD_MIN} characters. A few words are easier to remember than symbols.`),
    secret("Repeat new password", { name: "again", autocomplete: "new-password" }),
  ], "Change password", async ({ current, wanted, again }) => {
    if (wanted !== again) throw new Error("The new passwords don't match.");
    await changePassword(current, wanted);
    password.reset();
    note("Password changed. All other sessions were signed out.");
    places.load();
  });
  return page("Your account", {},
    panel("Profile", {}, own.element),
    panel("Password", { about: "Changing your password signs out all other sessions." }, password),
    panel("Active sessions", {
      about: "Sessions expire after 7 days without use.",
      actions: [button("Sign out everywhere", () => askFirst("Sign out everywhere", "Ends all sessions, including this one. API keys keep working.", "Sign out everywhere", async () => {
        await endSessions();
        frame.left();
      }), { class: "danger" })],
    }, places.element));
}

/** @param {any} account @param {{load: () => any}} own @param {any} frame */
function rename(account, own, frame) {
  ask("Change your name", [field("Name", { name: "name", required: true, maxlength: 100, value: account.name, spellcheck: "false", autocapitalize: "none" }, "You use this name to sign in.")], "Rename", async ({ name }) => {
    const { name: now } = await renameSelf(name);
    frame.rename(now);
    own.load();
  });
}
