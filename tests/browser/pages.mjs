// The views of the management, light and dark, wide and narrow: no serious axe violation, no horizontal scrolling.

import { look } from "./looks.mjs";
import { shared } from "./lived.mjs";
import { fillBucket } from "./operator.mjs";

/** A server with weeks of history, with content for all views. */
const lived = shared();
let filling = null;
let crew = "";

const filled = () => (filling ??= fill());

async function fill() {
  const server = await lived();
  const { ask } = server;
  await fillBucket("desk", ["2026/rest.txt", "note.txt"], {}, ask);
  await ask("DELETE", "/desk/2026/rest.txt");
  await ask("DELETE", "/desk/note.txt");
  await ask("POST", "/api/keys", { name: "phone", scopes: ["upload", "read", "manage"], bucketName: "desk", prefix: "calls/" });
  const { apiKey } = await ask("POST", "/api/keys", { name: "old one", scopes: ["list"] });
  await ask("DELETE", `/api/keys/${apiKey.id}`);
  await ask("POST", "/api/buckets/desk/webhooks", { url: "https://shop.example/hook?of=trug", events: ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"], prefix: "2026/" });
  const { organisation } = await ask("POST", "/api/organisations", { name: "Crew" });
  await ask("POST", `/api/organisations/${organisation.id}/members`, { account: server.past.ann, role: "member" });
  crew = organisation.id;
  // Damage is known once it is read.
  await server.spoil();
  await ask("GET", "/desk/2026/letter.txt").then(() => { throw new Error("the letter is whole"); }, (error) => { if (!/damaged/.test(error.message)) throw error; });
}

/** Name, address, awaited selector, and the actions before the check. */
const views = (webhook) => [
  ["overview", "/-/", ".home-grid"],
  ["keys", "/-/keys", "table"],
  ["keys-ended", "/-/keys", "table", (page) => page.getByRole("button", { name: /expired or revoked/ }).click()],
  ["key-new", "/-/keys", "table", (page) => page.getByRole("button", { name: "New API key" }).click()],
  ["connect", "/-/connect/desk", ".snippet pre"],
  ["connect-sharex", "/-/connect/desk", ".snippet pre", (page) => page.getByRole("tab", { name: "ShareX" }).click()],
  ["links", "/-/links/desk/2026/letter.txt", ".columns form"],
  ["settings", "/-/settings/desk", "form fieldset"],
  ["settings-empty", "/-/settings/desk", "form fieldset", (page) => page.getByRole("button", { name: "Empty…" }).click()],
  ["webhooks", "/-/webhooks/desk", ".webhook"],
  ["webhook-new", "/-/webhooks/desk", ".webhook", (page) => page.getByRole("button", { name: "New webhook" }).click()],
  ["given-up", `/-/webhooks/desk/${webhook}`, "table"],
  ["deleted", "/-/deleted/desk/", "table"],
  ["deleted-none", "/-/deleted/desk/none/", ".empty"],
  ["account", "/-/account", "table"],
  ["accounts", "/-/accounts", "table"],
  ["account-edit", "/-/accounts", "table", (page) => page.getByRole("button", { name: "Edit ann" }).click()],
  ["organisations", "/-/organisations", ".card"],
  ["organisation", `/-/organisations/${crew}`, "table"],
  ["usage", "/-/usage", ".plot path"],
  ["usage-table", "/-/usage/desk?over=week", ".plot path", (page) => page.locator(".plot summary").first().click()],
  ["audit", "/-/audit", "table"],
  ["audit-files", "/-/audit?log=files", "table"],
  ["storage", "/-/storage", ".danger-panel"],
  ["storage-segments", "/-/storage", ".glances", (page) => page.locator("summary", { hasText: /segments?$/ }).click()],
  ["more", "/-/files/desk/", ".row", (page) => page.getByRole("button", { name: /^More actions/ }).click()],
  ["import", "/-/files/desk/", ".row", async (page) => {
    await page.keyboard.press(".");
    await page.getByRole("button", { name: /^Import from URLs/ }).click();
  }],
  ["no-view", "/-/settings/", ".empty"],
];

/** Views that look like others on a narrow screen. */
const LIKE_OTHERS = ["keys-ended", "connect-sharex", "settings-empty", "deleted-none", "import", "no-view", "storage-segments"];

async function lookAtPages(kind) {
  await filled();
  const server = await lived();
  const all = views(server.past.webhook);
  await look(kind, kind === "wide" ? all : all.filter(([name]) => !LIKE_OTHERS.includes(name)), (how) => server.openAs("/-/", how));
}

export const tests = {
  management_views_are_accessible_and_fit_wide_screens: () => lookAtPages("wide"),
  management_views_are_accessible_and_fit_narrow_screens: () => lookAtPages("narrow"),
};
