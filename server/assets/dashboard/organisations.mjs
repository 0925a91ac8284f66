// Organisations: accounts that share buckets, their members and roles.

import { filesAddress } from "./address.mjs";
import { ask, choice, field } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { complain, note } from "./live.mjs";
import { acceptMembership, accounts, createOrganisation, declineMembership, deleteOrganisation, membershipInvitations, organisation, organisations, putMember, removeMember, renameOrganisation } from "./manage.mjs";
import { askFirst, badge, button, finder, nothing, page, panel, part, table, when } from "./parts.mjs";
import { go } from "./router.mjs";
import { count } from "./text.mjs";

/** Roles with their labels, from the least to the most access. @type {[string, string][]} */
const ROLES = [
  ["viewer", "Viewer – read and list files"], ["member", "Member – also upload and delete"],
  ["admin", "Admin – also create, change and delete buckets"], ["owner", "Owner – also manage members"],
];

/** @param {string} id */
const addressOf = (id) => `/-/organisations/${encodeURIComponent(id)}`;
/** @param {any} it @param {any} account */
const roleOf = (it, account) => it.members.find((/** @type {any} */ member) => member.account === account?.id)?.role ?? "viewer";

/** @param {any} place @param {any} frame */
export function view(place, frame) {
  return place.bucket === "" ? all(place, frame) : one(place.bucket, frame);
}

/** @param {any} place @param {any} frame */
function all(place, frame) {
  const find = finder("Find", place, () => list.load());
  const draw = (/** @type {any[]} */ found) => (found.length === 0
    ? find.text() ? find.nothing() : nothing("people", "No organisations yet", "Share buckets between accounts, with a role for each member.", make("p", { class: "buttons" }, button("New organisation", create, { class: "primary", image: "plus" })))
    : make("div", { class: "cards" }, found.map((it) => make("a", { class: "card", href: addressOf(it.id) }, make("span", { class: "emblem" }, icon("people")), make("strong", null, it.name),
      make("span", { class: "amount" }, count(it.members.length, "member")), make("span", { class: "faint" }, `Your role: ${roleOf(it, frame.account)}`)))));
  /** @type {{element: any, load: () => Promise<any>}} */
  const list = part(() => organisations(find.text()), (found) => {
    find.tell(found.length);
    return draw(found);
  });
  const invited = part(membershipInvitations, (found) => found.map((/** @type {any} */ it) => invitation(it, invited)));
  return page("Organisations", { about: "Share buckets between accounts.", actions: [button("New organisation", create, { class: "primary", image: "plus" })] }, invited.element, find.element, list.element);
}

/** @param {any} it @param {{load: () => any}} invited */
function invitation(it, invited) {
  return panel(`Invitation to ${it.name}`, { about: `Your role would be ${it.role}. Members see your account name after you accept.` }, make("p", { class: "buttons start" },
    button("Accept", () => acceptMembership(it.id).then(() => go(addressOf(it.id)), complain), { class: "primary", name: `accept-${it.id}` }),
    button("Decline", () => declineMembership(it.id).then(() => invited.load(), complain), { name: `decline-${it.id}` })));
}

const nameField = (value = "") => field("Name", { name: "name", required: true, maxlength: 100, value, spellcheck: "false" });

function create() {
  ask("New organisation", [nameField()], "Create", async ({ name }) => {
    const it = await createOrganisation(name);
    go(addressOf(it.id));
  });
}

/** @param {string} id @param {any} frame */
function one(id, frame) {
  const me = frame.account?.id;
  const whole = part(async () => ({ it: await organisation(id), buckets: (await frame.loaded.catch(() => [])).filter((/** @type {any} */ bucket) => bucket.organisation === id) }), ({ it, buckets }) => {
    const role = roleOf(it, frame.account);
    const decides = role === "owner";
    heading.textContent = it.name;
    if (!shown.stopped.aborted) document.title = `${it.name} – trug`;
    const members = [...it.members].sort((a, b) => ROLES.findIndex(([name]) => name === b.role) - ROLES.findIndex(([name]) => name === a.role) || a.name.localeCompare(b.name));
    return [
      panel("Members", {
        about: [`Your role is ${role}.`, decides ? "" : " Owners manage members."],
        actions: [decides && button("Invite member", () => takeIn(it, frame, whole), { class: "primary", image: "plus" })].filter(Boolean),
      }, table("Members", [["Name"], ["Role"], ["Actions", "act"]], members.map((member) => [
        [make("strong", null, member.name), member.account === me && badge("You"), member.account === it.account && badge("Owning account", "good"), make("small", null, make("code", null, member.account))],
        decides && member.account !== it.account ? roleChoice(it, member, whole) : badge(member.role),
        member.account === it.account ? "" : (decides || member.account === me) && button(member.account === me ? "Leave" : "Remove", () => remove(it, member, me, whole), { class: "danger", name: `remove-${member.account}`, "aria-label": member.account === me ? "Leave" : `Remove ${member.name}` }),
      ])).element),
      it.invited.length > 0 && panel("Invited", { about: "Accounts become members when they accept the invitation under Organisations." }, table("Invited", [["Account"], ["Role"], ["Actions", "act"]], it.invited.map((/** @type {any} */ invited) => [
        make("code", null, invited.account), badge(invited.role),
        decides && button("Withdraw", () => removeMember(it.id, invited.account).then(() => whole.load(), complain), { class: "danger", name: `uninvite-${invited.account}`, "aria-label": `Withdraw the invitation of ${invited.account}` }),
      ])).element),
      panel("Buckets", { about: "Storage counts towards the owning account." }, buckets.length === 0
        ? make("p", { class: "faint" }, "No buckets yet. Admins can create one on the home page with this organisation as owner.")
        : make("ul", { class: "ways" }, buckets.map((/** @type {any} */ bucket) => make("li", null, make("a", { href: filesAddress(bucket.bucketName) }, bucket.bucketName), make("span", { class: "faint" }, ` ${count(bucket.objectCount, "file")}`))))),
      panel("Details", {}, make("p", { class: "faint" }, "Created ", when(it.createdAt), " · ID ", make("code", null, it.id)),
        decides && make("p", { class: "buttons start" },
          button("Rename", () => ask("Rename organisation", [nameField(it.name)], "Rename", async ({ name }) => {
            await renameOrganisation(id, name);
            whole.load();
          })),
          button("Delete", () => askFirst(`Delete ${it.name}`, buckets.length > 0 ? "Delete its buckets first." : "The organisation has no buckets; no files are deleted.", "Delete organisation", async () => {
            await deleteOrganisation(id);
            note(`${it.name} deleted.`);
            go("/-/organisations");
          }), { class: "danger" }))),
    ];
  });
  const shown = page("Organisation", { about: make("a", { href: "/-/organisations" }, "All organisations") }, whole.element);
  const heading = shown.element.querySelector("h1");
  return shown;
}

/** @param {any} it @param {any} member @param {{load: () => any}} whole */
function roleChoice(it, member, whole) {
  return make("select", { "aria-label": `Role of ${member.name}`, "data-name": `role-${member.account}`, change: async (/** @type {any} */ event) => {
    await putMember(it.id, member.account, event.target.value).then(() => note(`${member.name} is now ${event.target.value}.`), complain);
    whole.load();
  } }, ROLES.map(([name]) => make("option", { value: name, selected: name === member.role }, name)));
}

/** @param {any} it @param {any} frame @param {{load: () => any}} whole */
async function takeIn(it, frame, whole) {
  // Operators choose from all accounts if these are few; others enter an ID that its owner gave them.
  const known = frame.account?.role === "operator" ? await accounts(null).catch(() => null) : null;
  const others = known?.nextCursor === null && known.accounts.filter((/** @type {any} */ account) => ![...it.members, ...it.invited].some((/** @type {any} */ member) => member.account === account.id));
  if (others && others.length === 0) return note("Everyone on this server is already a member or invited.", { label: "Create account", run: () => go("/-/accounts") });
  ask(`Invite a member to ${it.name}`, [
    others ? choice("Account", { name: "account" }, others.map((/** @type {any} */ account) => [account.id, account.name]))
      : field(known ? "Account name or ID" : "Account ID", { name: "account", required: true, spellcheck: "false", autocapitalize: "none" }, "Shown to its owner under Your account."),
    choice("Role", { name: "role" }, ROLES, "member"),
  ], "Invite", async ({ account, role }) => {
    await putMember(it.id, known && !others ? await idOf(account.trim()) : account.trim(), role);
    whole.load();
  });
}

/** The ID of an account, by its name or ID. @param {string} called */
async function idOf(called) {
  const { accounts: found } = await accounts(null, called, 1000);
  const account = found.find((/** @type {any} */ it) => it.name === called || it.id === called);
  if (!account) throw new Error(`No account named “${called}”.`);
  return account.id;
}

/** @param {any} it @param {any} member @param {string} me @param {{load: () => any}} whole */
function remove(it, member, me, whole) {
  const isMe = member.account === me;
  askFirst(isMe ? `Leave ${it.name}` : `Remove ${member.name}`, isMe ? "You lose access to its buckets immediately." : `${member.name} loses access to the buckets of ${it.name} immediately.`, isMe ? "Leave" : "Remove", async () => {
    await removeMember(it.id, member.account);
    if (isMe) go("/-/organisations");
    else whole.load();
  });
}
