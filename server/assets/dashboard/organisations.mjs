// Organisations: accounts that share buckets, who belongs to them, and what each may.

import { filesAddress } from "./address.mjs";
import { ask, choice, field } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { complain, note } from "./live.mjs";
import { acceptMembership, accounts, createOrganisation, declineMembership, deleteOrganisation, membershipInvitations, organisation, organisations, putMember, removeMember, renameOrganisation } from "./manage.mjs";
import { askFirst, badge, button, finder, nothing, page, panel, part, table, when } from "./parts.mjs";
import { go } from "./router.mjs";
import { count } from "./text.mjs";

/** Roles, and what they may. @type {[string, string][]} */
const ROLES = [
  ["viewer", "viewer: reads and lists files"], ["member", "member: uploads and deletes, too"],
  ["admin", "admin: makes, changes and deletes buckets, too"], ["owner", "owner: decides who belongs to it, too"],
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
    ? find.text() ? find.nothing() : nothing("people", "No organisation yet", "In an organisation several accounts share buckets, each with a role.", make("p", { class: "buttons" }, button("New organisation", create, { class: "primary", image: "plus" })))
    : make("div", { class: "cards" }, found.map((it) => make("a", { class: "card", href: addressOf(it.id) }, make("span", { class: "emblem" }, icon("people")), make("strong", null, it.name),
      make("span", { class: "amount" }, count(it.members.length, "member")), make("span", { class: "faint" }, `You are ${roleOf(it, frame.account)}`)))));
  /** @type {{element: any, load: () => Promise<any>}} */
  const list = part(() => organisations(find.text()), (found) => {
    find.tell(found.length);
    return draw(found);
  });
  const invited = part(membershipInvitations, (found) => found.map((/** @type {any} */ it) => invitation(it, invited)));
  return page("Organisations", { about: "Accounts that share buckets.", actions: [button("New organisation", create, { class: "primary", image: "plus" })] }, invited.element, find.element, list.element);
}

/** @param {any} it @param {{load: () => any}} invited */
function invitation(it, invited) {
  return panel(`Invitation to ${it.name}`, { about: `You would join as ${it.role}. Members see the name of your account once you accept.` }, make("p", { class: "buttons start" },
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
        about: [`Your role is ${role}.`, decides ? "" : " An owner decides who belongs to it."],
        actions: [decides && button("Invite a member", () => takeIn(it, frame, whole), { class: "primary", image: "plus" })].filter(Boolean),
      }, table("Members", [["Name"], ["Role"], ["Do", "act"]], members.map((member) => [
        [make("strong", null, member.name), member.account === me && badge("you"), member.account === it.account && badge("its account", "good"), make("small", null, make("code", null, member.account))],
        decides && member.account !== it.account ? roleChoice(it, member, whole) : badge(member.role),
        member.account === it.account ? "" : (decides || member.account === me) && button(member.account === me ? "Leave" : "Remove", () => remove(it, member, me, whole), { class: "danger", name: `remove-${member.account}`, "aria-label": member.account === me ? "Leave" : `Remove ${member.name}` }),
      ])).element),
      it.invited.length > 0 && panel("Invited", { about: "They become members when they accept, under Organisations." }, table("Invited", [["Account"], ["Role"], ["Do", "act"]], it.invited.map((/** @type {any} */ invited) => [
        make("code", null, invited.account), badge(invited.role),
        decides && button("Take back", () => removeMember(it.id, invited.account).then(() => whole.load(), complain), { class: "danger", name: `uninvite-${invited.account}`, "aria-label": `Take back the invitation of ${invited.account}` }),
      ])).element),
      panel("Buckets", { about: "They count towards the account that owns the organisation." }, buckets.length === 0
        ? make("p", { class: "faint" }, "None yet. An admin makes one under All buckets, and chooses this organisation there.")
        : make("ul", { class: "ways" }, buckets.map((/** @type {any} */ bucket) => make("li", null, make("a", { href: filesAddress(bucket.bucketName) }, bucket.bucketName), make("span", { class: "faint" }, ` ${count(bucket.objectCount, "file")}`))))),
      panel("The organisation", {}, make("p", { class: "faint" }, "Since ", when(it.createdAt), ". Its id is ", make("code", null, it.id), "."),
        decides && make("p", { class: "buttons start" },
          button("Rename", () => ask("Rename the organisation", [nameField(it.name)], "Rename", async ({ name }) => {
            await renameOrganisation(id, name);
            whole.load();
          })),
          button("Delete", () => askFirst(`Delete ${it.name}`, buckets.length > 0 ? "It has buckets: delete them first." : "Its members lose nothing but each other: it has no buckets.", "Delete it", async () => {
            await deleteOrganisation(id);
            note(`${it.name} is deleted.`);
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
    await putMember(it.id, member.account, event.target.value).then(() => note(`${member.name} is ${event.target.value} now.`), complain);
    whole.load();
  } }, ROLES.map(([name]) => make("option", { value: name, selected: name === member.role }, name)));
}

/** @param {any} it @param {any} frame @param {{load: () => any}} whole */
async function takeIn(it, frame, whole) {
  // Operators know all accounts, and choose where these are few; others are told an id by its holder.
  const known = frame.account?.role === "operator" ? await accounts(null).catch(() => null) : null;
  const others = known?.nextCursor === null && known.accounts.filter((/** @type {any} */ account) => ![...it.members, ...it.invited].some((/** @type {any} */ member) => member.account === account.id));
  if (others && others.length === 0) return note("Everybody on this server belongs to it or is invited.", { label: "Make an account", run: () => go("/-/accounts") });
  ask(`Invite a member to ${it.name}`, [
    others ? choice("Account", { name: "account" }, others.map((/** @type {any} */ account) => [account.id, account.name]))
      : field(known ? "Name or id of the account" : "Id of the account", { name: "account", required: true, spellcheck: "false", autocapitalize: "none" }, "Its holder finds it under Your account."),
    choice("Role", { name: "role" }, ROLES, "member"),
  ], "Invite", async ({ account, role }) => {
    await putMember(it.id, known && !others ? await idOf(account.trim()) : account.trim(), role);
    whole.load();
  });
}

/** The id of an account by its name, or by itself. @param {string} called */
async function idOf(called) {
  const { accounts: found } = await accounts(null, called, 1000);
  const account = found.find((/** @type {any} */ it) => it.name === called || it.id === called);
  if (!account) throw new Error(`No account is called “${called}”.`);
  return account.id;
}

/** @param {any} it @param {any} member @param {string} me @param {{load: () => any}} whole */
function remove(it, member, me, whole) {
  const isMe = member.account === me;
  askFirst(isMe ? `Leave ${it.name}` : `Remove ${member.name}`, isMe ? "You lose its buckets at once." : `${member.name} loses the buckets of ${it.name} with the next request.`, isMe ? "Leave" : "Remove", async () => {
    await removeMember(it.id, member.account);
    if (isMe) go("/-/organisations");
    else whole.load();
  });
}
