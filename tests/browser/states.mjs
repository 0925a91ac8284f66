// Rare states: every dialog, empty places, errors, work in progress. Checked as other views are.

import { api, close, open, options, store } from "./driver.mjs";
import { inFront, look } from "./looks.mjs";
import { framesOf, webm } from "./media.mjs";
import { fillBucket, openAs } from "./operator.mjs";
import { fillFolder } from "./preview.mjs";
import { asOperator as ask } from "./sessions.mjs";

const LOOK = "/-/files/photos/look/";
const STATES = "/-/files/photos/states/";
const VECTOR = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 30"><circle cx="20" cy="15" r="11" fill="teal"/></svg>';

/** Usage over time, by the minute or by the hour. */
function usage(step) {
  const ms = { minute: 60_000, hour: 3_600_000 }[step];
  const length = { minute: 60, hour: 24 }[step];
  const end = Math.floor(Date.now() / ms) * ms;
  const points = Array.from({ length }, (_, index) => {
    const wave = 1 + Math.sin((index / length) * Math.PI * 4) + (index % 7) / 7;
    return {
      time: new Date(end - (length - 1 - index) * ms).toISOString(), requests: Math.round(1200 * wave), errors: index % 11 === 0 ? 3 : 0, refusals: Math.round(12 * wave),
      bytesOut: Math.round(8e7 * wave), bytesIn: Math.round(6e6 * wave), images: Math.round(90 * wave), imageMs: Math.round(4200 * wave), objectCount: index < 3 ? null : 12_000 + index * 40,
      storedBytes: index < 3 ? null : 5e9 + index * 3e7,
    };
  });
  return { step, from: points[0].time, to: points.at(-1).time, ...(step === "minute" ? { since: points[0].time } : {}), points };
}

/** A full store, nothing of which was verified or backed up. */
const FULL = {
  health: "full", disk: { totalBytes: 500e9, freeBytes: 4e9, reserveBytes: 5e9 }, index: { bytes: 41e6, waitingChanges: 812, condemned: false },
  kinds: [{ kind: "log", segments: 14, liveBytes: 11e9, deadBytes: 3.2e9 }, { kind: "compacted", segments: 30, liveBytes: 29e9, deadBytes: 1e9 }, { kind: "big", segments: 812, liveBytes: 92e9, deadBytes: 0 }],
  segments: [{ id: 12, kind: "log", bytes: 1e9, liveBytes: 3e8, deadBytes: 7e8, objects: 912, sealed: true, verifiedAt: null, damageCount: 0 }], segmentsTruncated: true,
  retained: { files: 3, bytes: 2.5e9, nextReleaseAt: "2026-11-23T13:00:00.000Z" }, verifiedSince: null, lastBackup: null, damageCount: 0, damage: [], compaction: { wouldFree: 0, wouldCopy: 0, segments: 0 },
};

const press = (label, options = {}) => (page) => page.getByRole("button", { name: label, ...options }).first().click();
const asked = (label) => inFront(press(label));
const then = (...steps) => async (page) => { for (const step of steps) await step(page); };
const seen = (selector) => (page) => page.locator(selector).first().waitFor();
const filled = (label, text) => (page) => page.getByRole("dialog").getByLabel(label).fill(text);
const sent = (label) => (page) => page.getByRole("dialog").getByRole("button", { name: label, exact: true }).click();
const typed = (key) => (page) => page.keyboard.press(key);
const said = (words) => (page) => page.getByText(words).first().waitFor();

/** Two seconds of video. */
async function film() {
  const page = await open(LOOK);
  const frames = await framesOf(page, 640, 360, ["#3b6ea5", "#f2b134"]);
  await close(page);
  return webm(frames, 640, 360, 0);
}

/** @type {Promise<void> | null} */
let filling = null;

async function fill() {
  await fillFolder();
  await store("photos", "states/film.webm", await film());
  await store("photos", "states/empty.txt", "");
  await store("photos", "states/sign.svg", VECTOR);
  await store("photos", "states/a long name of a file that has much to say about what is in it, and goes on and on.txt", "text");
  await store("photos", "states/broken.png", "this is no picture");
}

const refused = (status, code, error, more = {}) => [status, { code, error, ...more }];
const DENIED = refused(403, "forbidden", "The account may not delete in this bucket");
const BUSY = refused(503, "overloaded", "The server is busy");

/** Chooses files that are sent slowly. */
const sending = (count) => async (page) => {
  const client = await page.context().newCDPSession(page);
  page.once("framenavigated", () => client.detach());
  await client.send("Network.enable");
  await client.send("Network.emulateNetworkConditions", { offline: false, latency: 20, downloadThroughput: -1, uploadThroughput: 400_000 });
  const files = Array.from({ length: count }, (_, number) => ({ name: `holiday ${number + 1}.jpg`, mimeType: "image/jpeg", buffer: Buffer.alloc(number === 0 ? 200_000 : 3_500_000, "x") }));
  await page.locator(".pick-files").setInputFiles(files);
  await page.locator(".item[data-state=sending]").first().waitFor();
  await page.locator(".uploads header p", { hasText: /\/s · .* left/ }).waitFor();
};
const choose = (page) => page.locator(".pick-files").setInputFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") }, { name: "list.txt", mimeType: "text/plain", buffer: Buffer.from("list") }]);

/** Drags files over the page. */
async function hold(page) {
  const client = await page.context().newCDPSession(page);
  const data = { items: [], files: [options.folder], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver"]) await client.send("Input.dispatchDragEvent", { type, x: 250, y: 400, data });
  await page.locator(".shade:not([hidden])").waitFor();
}

const bucket = (name, more = {}) => ({
  bucketName: name, access: "public", type: "standard", objectCount: 1_204, totalBytes: 5_400_000_000, quotaBytes: null, createdAt: "2026-03-02T10:00:00.000Z", account: "a", organisation: null, ...more,
});
const MANY_BUCKETS = { buckets: Array.from({ length: 30 }, (_, number) => bucket(`project-${number + 1}`, number % 3 === 0 ? { access: "private", quotaBytes: 6e9 } : {})), nextCursor: null };
const GOOD_BYE = { "DELETE **/photos/states/**": {} };

/** Files: name, address, awaited selector, actions, session, and overridden responses. */
const FILES = [
  ["film", `${STATES}film.webm`, "video", (page) => page.waitForFunction(() => document.querySelector("video").readyState > 1)],
  ["sound", `${LOOK}tone.wav`, "audio", (page) => page.waitForFunction(() => document.querySelector("audio").readyState > 0)],
  ["paper", `${LOOK}paper.pdf`, "iframe"],
  ["vector", `${STATES}sign.svg`, ".zoom:not([hidden])"],
  ["long-text", `${LOOK}long.txt`, ".stage pre"],
  ["no-bytes", `${STATES}empty.txt`, ".stage .empty"],
  ["gone-file", `${LOOK}none.txt`, ".stage [role=alert]"],
  ["broken-picture", `${STATES}broken.png`, ".stage [role=alert]"],
  ["zoomed", `${LOOK}hills%202.png`, ".zoom:not([hidden])", then(typed("0"), typed("+"), typed("+"))],
  ["filter-none", `${LOOK}?filter=zzz`, ".empty h2"],
  ["results-none", "/-/search/photos?q=zzzzqqq", ".empty h2"],
  ["results-within", "/-/search/photos?q=hills&parent=look/", ".chip"],
  ["hovered", LOOK, ".row", (page) => page.locator(".row").nth(3).hover()],
  ["focused", STATES, ".row:focus", typed("ArrowDown")],
  ["tiles-chosen", `${LOOK}?view=tiles&selected=disc.png&selected=paper.pdf`, ".tile[aria-selected=true]", seen(".tile img.here")],
  ["folder-new", LOOK, ".row:focus", inFront(typed("n"))],
  ["move", `${LOOK}?selected=note.txt&selected=data.json`, ".selection-bar:not([hidden])", inFront(typed("m"))],
  ["rename-refused", STATES, ".row:focus", then(inFront(typed("F2")), filled("Name", "a/b"), sent("Rename"), seen(".problem:not([hidden])"))],
  ["forms-many", `${LOOK}?selected=note.txt&selected=data.json`, ".selection-bar:not([hidden])", inFront(typed("f"))],
  ["dropping", LOOK, ".row", hold],
  ["uploading", `${STATES}sent/`, ".tools .primary", sending(7)],
  ["upload-failed", `${STATES}sent/`, ".tools .primary", then(choose, seen(".reason:not([hidden])")), undefined, { "POST **/photos/states/**": refused(415, "type_not_allowed", "The bucket takes no text/plain") }],
  ["deleted-note", STATES, ".row:focus", then(typed("Delete"), seen(".note")), undefined, GOOD_BYE],
  ["refused-note", STATES, ".row:focus", then(typed("Delete"), seen(".note.bad")), undefined, { "DELETE **/photos/states/**": DENIED }],
  ["listing-failed", LOOK, ".empty [role=alert]", undefined, undefined, { "GET **/api/list-objects?*": BUSY }],
  ["playground-failed", "/-/playground/photos/states/broken.png", ".panes .problem"],
  ["home-none", "/-/", ".empty h2", undefined, undefined, { "GET **/api/buckets?*": { buckets: [], nextCursor: null } }],
  ["home-failed", "/-/", ".empty [role=alert]", undefined, undefined, { "GET **/api/buckets?*": BUSY }],
  ["home-many", "/-/", ".card", undefined, undefined, { "GET **/api/buckets?*": MANY_BUCKETS, "GET **/api/usage/history?*": usage("hour") }],
  ["links-public", "/-/links/photos/look/note.txt", ".columns form", then(press("Create upload link"), press("Show URL"), seen(".outcome .snippet"))],
  ["upload-link", LOOK, ".row:focus", then(inFront(typed(".")), press(/^Copy upload link/), seen(".note"))],
  ["organisations-none", "/-/organisations", ".empty h3", undefined, undefined, { "GET **/api/organisations?*": { organisations: [], invitations: [], nextCursor: null } }],
  ["not-allowed", "/-/storage", "[role=alert]"],
  ["no-module", "/-/audit", "[role=alert]", undefined, undefined, { "GET **/assets/*/audit.mjs": null }],
  ["sign-in-refused", "/-/", ".entrance form", async (page) => {
    await page.getByLabel("Name").fill("nobody");
    await page.getByLabel("Password").fill("not the password");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".problem:not([hidden])").waitFor();
  }, null, { "POST **/-/session": refused(401, "wrong_password", "Wrong name or password") }],
  ["nobody-yet", "/-/", ".entrance summary", undefined, null, { "GET **/-/session": { signedIn: false, setUpNeeded: true } }],
  ["unreachable", "/-/", ".entrance [role=alert]", undefined, null, { "GET **/-/session": null }],
  ["set-up-cut", "/-/set-up", ".entrance h1", undefined, null],
  ["set-up-expired", "/-/set-up#token", ".entrance h1:has-text('expired')", undefined, null, { "POST **/-/set-up": refused(410, "link_expired", "The link has expired") }],
  ["set-up-over", "/-/set-up#token", ".entrance a", undefined, null, { "POST **/-/set-up": refused(410, "set_up_done", "This server is already set up") }],
  ["set-up", "/-/set-up#token", ".entrance form", undefined, null, { "POST **/-/set-up": { accounts: [] } }],
  ["set-up-adopting", "/-/set-up#token", ".entrance form", undefined, null, { "POST **/-/set-up": { accounts: [{ name: "ann", hasBucket: true }] } }],
  ["set-up-done", "/-/set-up#token", ".entrance form", async (page) => {
    await page.getByLabel("Password").fill("four words are enough");
    await page.getByRole("button", { name: "Create" }).click();
    await page.locator("pre[aria-label='API key']").waitFor();
  }, null, { "POST **/-/set-up": { accounts: [{ name: "ann", hasBucket: true }], key: "trug_hpu5qwzh626g7rlv_54exyqykg4lexjnplcdzqfofrmdpg3q57wly2x4z3vyoqogdi77a_pnxa35a", s3: { accessKeyId: "hpu5qwzh626g7rlv", secretAccessKey: "54exyqykg4lexjnplcdzqfofrmdpg3q57wly2x4z3vyoqogdi77a" }, apiKey: { scopes: ["upload"] } } }],
];

const when = "2026-11-20T10:00:00.000Z";
const HOOK = {
  id: "whk_1", url: "https://shop.example/hook?of=trug", events: ["s3:ObjectCreated:*"], prefix: "calls/", enabled: true, disabledReason: null, pendingCount: 14, retryingCount: 3,
  deadLetterCount: 2, droppedCount: 0, lastAttemptAt: when, lastStatus: 503, lastError: "response status 500", lastDeliveryAt: when, createdAt: when,
};
const LETTERS = ["one", "two"].map((name) => ({ eventId: `evt_${name}`, type: "ObjectCreated:Post", key: `calls/2026/november/${name}.wav`, timestamp: when, attemptCount: 10, givenUpAt: when, status: 503, deliveryError: "response status 500", answer: "busy" }));
const JOB = { id: "j1", kind: "emptyBucket", bucketName: "states", prefix: null, to: null, account: "a", state: "running", done: 40_400, total: 100_000, unit: "files", createdAt: when, startedAt: when, endedAt: null, error: null, errorCode: null, result: { bytes: 0, skipped: 0, damageCount: 0 } };
const JOBS = { jobs: [
  JOB, { ...JOB, id: "j2", kind: "importUrls", prefix: "calls/", state: "done", done: 12, unit: "addresses", result: { bytes: 5e6, skipped: 1, damageCount: 0, failures: [{ url: "https://example.com/cat.jpg", error: "answered 404" }] } },
  { ...JOB, id: "j3", kind: "moveFolder", prefix: "old/", to: "new/", state: "failed", error: "A file of that name exists" }, { ...JOB, id: "j4", kind: "compact", bucketName: null, unit: "bytes", done: 4e8, total: 9e8 },
], nextCursor: null };
const KEY = { apiKey: { id: "k", name: "phone", scopes: ["upload"], bucketName: "states", prefix: null }, key: "trug_hpu5qwzh626g7rlv_54exyqykg4lexjnplcdzqfofrmdpg3q57wly2x4z3vyoqogdi77a_pnxa35a" };
const LIMITED = { accounts: [{ id: "acc_1", name: "eve", role: "user", plan: "Free", standing: "notified", standingChanges: [], hasPassword: false, storageBytesMax: 1, objectCountMax: null, createdAt: when }], nextCursor: null };
const SWEPT = { accountCount: 4, violationCount: 1, steps: [{ account: "a", name: "eve", from: "good", to: "notified", reason: "stores more than its quota" }] };

/** Pages of the management, as the operator sees them. */
const managed = (crew) => [
  ["key-refused", "/-/keys", "table", then(asked("New API key"), (page) => page.getByRole("dialog").getByLabel("upload").uncheck(), sent("Create"), seen(".problem:not([hidden])"))],
  ["key-once", "/-/keys", "table", then(asked("New API key"), sent("Create"), seen(".once"), seen(".dialog-body .tabs")), undefined, { "POST **/api/keys": KEY }],
  ["key-revoke", "/-/keys", "table", asked(/^Revoke/)],
  ["keys-none", "/-/keys", ".empty", undefined, undefined, { "GET **/api/keys?*": { apiKeys: [], nextCursor: null } }],
  ["links-made", "/-/links/states/a.txt", ".columns form", then(press("Create upload link"), seen(".outcome .snippet"), press("Create download link"), seen(".columns > :last-child .snippet"))],
  ["link-shared", "/-/links/states/a.txt", ".columns form", then(asked("Share bucket"), sent("Create link"), seen("dialog .snippet"))],
  ["link-refused", "/-/links/states/none.txt", ".columns form", then(press("Create download link"), seen(".problem:not([hidden])")), undefined, { "POST **/download-links": refused(404, "file_not_found", "File not found") }],
  ["settings-job", "/-/settings/states", ".how-far", undefined, undefined, { "GET **/api/jobs?*": JOBS }],
  ["settings-refused", "/-/settings/states", "form fieldset", then((page) => page.getByLabel("Storage quota", { exact: true }).fill("2 elephants"), press("Save"), seen(".problem:not([hidden])"))],
  ["settings-delete", "/-/settings/states", "form fieldset", then(asked("Delete…"), (page) => page.getByRole("dialog").getByRole("textbox").fill("other"), sent("Delete bucket"), seen(".problem:not([hidden])"))],
  ["webhooks-none", "/-/webhooks/states", ".empty"],
  ["webhook-failing", "/-/webhooks/states", ".webhook", undefined, undefined, { "GET **/webhooks?*": { webhooks: [HOOK, { ...HOOK, id: "whk_2", enabled: false, disabledReason: "Every try failed for 5 days" }], nextCursor: null } }],
  ["webhook-delete", "/-/webhooks/states", ".webhook", asked("Delete"), undefined, { "GET **/webhooks?*": { webhooks: [HOOK], nextCursor: null } }],
  ["webhook-test", "/-/webhooks/states", ".webhook", asked("Send test"), undefined, {
    "GET **/webhooks?*": { webhooks: [HOOK], nextCursor: null }, "POST **/test": { delivered: false, status: 500, deliveryError: "response status 500", answer: "<html><h1>Internal server error</h1></html>", durationMs: 1_204 },
  }],
  ["webhook-letters", "/-/webhooks/states/whk_1", "table", (page) => page.locator("summary").first().click(), undefined, { "GET **/webhooks/whk_1": { webhook: HOOK }, "GET **/dead-letters?*": { deadLetters: LETTERS, nextCursor: null } }],
  ["webhook-no-letters", "/-/webhooks/states/whk_1", ".empty", undefined, undefined, { "GET **/webhooks/whk_1": { webhook: { ...HOOK, deadLetterCount: 0 } }, "GET **/dead-letters?*": { deadLetters: [], nextCursor: null } }],
  ["deleted-taken", "/-/deleted/states/", "table", asked(/^Restore gone/), undefined, { "POST **/undelete": refused(409, "already_exists", "A file of that name exists") }],
  ["deleted-folder", "/-/deleted/states/", "table", asked(/^Restore entire bucket/)],
  ["account-rename", "/-/account", "table", asked("Rename")],
  ["account-out", "/-/account", "table", asked("Sign out everywhere")],
  ["account-refused", "/-/account", "table", async (page) => {
    await page.getByLabel("Current password").fill("four words are enough");
    await page.getByLabel("New password", { exact: true }).fill("another password");
    await page.getByLabel("Repeat new password").fill("yet another password");
    await page.getByRole("button", { name: "Change password" }).click();
    await page.locator(".problem:not([hidden])").waitFor();
  }],
  ["account-new", "/-/accounts", "table", asked("New account")],
  ["account-link", "/-/accounts", "table", then(asked("Password link for ann"), sent("Create link"), seen(".once")), undefined, { "POST **/invitations": { url: "https://files.example/-/invitation#hpu5qwzh626g7rlv54exyqykg4lexjnplcdzqfofrmdpg3q57wly2x4z", expiresAt: when } }],
  ["fair-use", "/-/accounts", "table", asked("Run fair-use check"), undefined, { "GET **/api/accounts?*": LIMITED }],
  ["fair-use-steps", "/-/accounts", "table", then(asked("Run fair-use check"), sent("Run check and apply"), seen(".report table")), undefined, { "GET **/api/accounts?*": LIMITED, "POST **/accounts/sweep": SWEPT }],
  ["organisation-new", "/-/organisations", ".card", asked("New organisation")],
  ["member-new", `/-/organisations/${crew}`, "table", asked("Invite member"), undefined, { "GET **/api/accounts?*": { accounts: [{ id: "acc_1", name: "dora" }], nextCursor: null } }],
  ["member-none", `/-/organisations/${crew}`, "table", then(press("Invite member"), seen(".note")), undefined, { "GET **/api/accounts?*": { accounts: [], nextCursor: null } }],
  ["member-remove", `/-/organisations/${crew}`, "table", asked(/^Remove/)],
  ["organisation-delete", `/-/organisations/${crew}`, "table", asked("Delete")],
  ["usage-none", "/-/usage", ".empty", undefined, undefined, { "GET **/api/usage/history?*": { step: "hour", points: [] } }],
  ["usage-hour", "/-/usage?over=hour", ".plot path", (page) => page.locator(".field-of-plot").first().hover(), undefined, { "GET **/api/usage/history?*": usage("minute") }],
  ["audit-none", "/-/audit?action=member.", ".empty", undefined, undefined, { "GET **/api/audit?*": { entries: [], nextCursor: null } }],
  ["audit-files-none", "/-/audit?log=files", ".empty", undefined, undefined, { "GET **/api/audit/files?*": { entries: [], nextCursor: null } }],
  ["audit-failed", "/-/audit", ".empty [role=alert]", undefined, undefined, { "GET **/api/audit?*": BUSY }],
  ["storage-full", "/-/storage", ".glances", seen(".how-far"), undefined, { "GET **/api/storage": FULL, "GET **/api/jobs?*": JOBS }],
  ["import-outcome", "/-/files/states/", ".row", then(typed("."), press(/^Import from URLs/), filled("URLs", "https://example.com/a.jpg\nhttps://example.com/b.jpg"), sent("Import"), said("1 file imported, 1 URL failed")), undefined, {
    "POST **/api/jobs": [202, { job: { id: "i1", state: "waiting", done: 0, total: 2 } }], "GET **/api/jobs/i1": { job: { id: "i1", state: "done", done: 2, total: 2, failures: [{ url: "https://example.com/b.jpg", error: "it answered 404" }] } },
  }],
];

let crew = "";

async function fillManaged() {
  if (crew !== "") return;
  await fillBucket("states", ["a.txt", "gone/b.txt", "gone/c.txt"], { access: "private" });
  for (const name of ["gone/b.txt", "gone/c.txt"]) await ask("DELETE", `/states/${name}`);
  await ask("POST", "/api/keys", { name: "website", scopes: ["upload", "read", "list", "delete", "presign", "manage"] });
  const { accounts } = await ask("GET", "/api/accounts?limit=1000");
  const { organisation } = await ask("POST", "/api/organisations", { name: "Night shift of the games server" });
  await ask("POST", `/api/organisations/${organisation.id}/members`, { account: accounts.find((it) => it.name === "ann").id, role: "admin" });
  await api("POST", `/api/organisations/${organisation.id}/membership`);
  crew = organisation.id;
}

/** Views with colours of their own: axe checks these only, because each check takes a second. */
const COLOURED = ["film", "no-bytes", "hovered", "uploading", "upload-failed", "deleted-note", "refused-note", "sign-in-refused", "set-up-done", "set-up-adopting", "key-once", "settings-job", "settings-delete", "webhook-failing", "storage-full", "usage-hour"];

/** All are checked on a narrow screen, where space is short; and elsewhere if screenshots are requested. */
const chosen = (kind, views) => (kind === "narrow" || options.shots ? views : views.filter(([name]) => COLOURED.includes(name)));

async function lookAtFiles(kind) {
  await (filling ??= fill());
  await look(kind, chosen(kind, FILES));
}

async function lookAtPages(kind) {
  await fillManaged();
  await look(kind, chosen(kind, managed(crew)), (how) => openAs("/-/", how));
}

export const tests = {
  rare_file_states_are_accessible_and_fit_wide_screens: () => lookAtFiles("wide"),
  rare_file_states_are_accessible_and_fit_narrow_screens: () => lookAtFiles("narrow"),
  rare_page_states_are_accessible_and_fit_wide_screens: () => lookAtPages("wide"),
  rare_page_states_are_accessible_and_fit_narrow_screens: () => lookAtPages("narrow"),
};
