// The views of the management, light and dark, wide and narrow: nothing that axe calls serious, nothing to scroll sideways.

import { look, NARROW } from "./looks.mjs";
import { fillBucket, openAs } from "./operator.mjs";
import { asOperator as ask } from "./sessions.mjs";
import { tell } from "./told.mjs";

let isFilled = false;

/** A bucket of which all views have something to show. */
async function fill() {
  if (isFilled) return;
  isFilled = true;
  await fillBucket("desk", ["2026/letter.txt", "2026/list.txt", "note.txt"], { access: "private", quotaBytes: 1_000_000 });
  await ask("DELETE", "/desk/2026/list.txt");
  await ask("DELETE", "/desk/note.txt");
  await ask("POST", "/api/keys", { name: "phone", scopes: ["upload", "read", "manage"], bucketName: "desk", prefix: "calls/" });
  const { apiKey } = await ask("POST", "/api/keys", { name: "old one", scopes: ["list"] });
  await ask("DELETE", `/api/keys/${apiKey.id}`);
  await ask("POST", "/api/buckets/desk/webhooks", { url: "https://shop.example/hook?of=trug", events: ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"], prefix: "2026/" });
  const { accounts } = await ask("GET", "/api/accounts?limit=1000");
  const { organisation } = await ask("POST", "/api/organisations", { name: "Crew" });
  await ask("POST", `/api/organisations/${organisation.id}/members`, { account: accounts.find((it) => it.name === "ann").id, role: "member" });
  crew = organisation.id;
}
let crew = "";

/** Name, address, what is waited for, and what is done before it is looked at. */
const views = () => [
  ["overview", "/-/", ".overview"],
  ["keys", "/-/keys", "table"],
  ["keys-ended", "/-/keys", "table", (page) => page.getByRole("button", { name: /that ended/ }).click()],
  ["key-new", "/-/keys", "table", (page) => page.getByRole("button", { name: "New API key" }).click()],
  ["connect", "/-/connect/desk", ".snippet pre"],
  ["connect-sharex", "/-/connect/desk", ".snippet pre", (page) => page.getByRole("tab", { name: "ShareX" }).click()],
  ["links", "/-/links/desk/2026/letter.txt", ".columns form"],
  ["settings", "/-/settings/desk", "form fieldset"],
  ["settings-empty", "/-/settings/desk", "form fieldset", (page) => page.getByRole("button", { name: "Empty …" }).click()],
  ["webhooks", "/-/webhooks/desk", ".webhook"],
  ["webhook-new", "/-/webhooks/desk", ".webhook", (page) => page.getByRole("button", { name: "New webhook" }).click()],
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
  ["storage", "/-/storage", ".glances"],
  ["storage-segments", "/-/storage", ".glances", (page) => page.locator("summary", { hasText: "Each of" }).click()],
  ["more", "/-/files/desk/", ".row", (page) => page.getByRole("button", { name: /^More for this folder/ }).click()],
  ["import", "/-/files/desk/", ".row", async (page) => {
    await page.keyboard.press(".");
    await page.getByRole("button", { name: /^Import from addresses/ }).click();
  }],
  ["no-view", "/-/settings/", ".empty"],
];

/** What looks by night as it does by day, and like others on a narrow screen. */
const BY_DAY = ["keys-ended", "connect-sharex", "settings-empty", "deleted-none", "import", "no-view", "storage-segments"];

async function lookAtPages(kind, context, isAudited) {
  await fill();
  const begin = async (how) => {
    const page = await openAs("/-/", how);
    await tell(page);
    return page;
  };
  const all = views();
  await look(kind, context, isAudited, kind === "light" ? all : all.filter(([name]) => !BY_DAY.includes(name)), begin);
}

export const tests = {
  "pages of the management are in order by day": () => lookAtPages("light", { colorScheme: "light" }, true),
  "pages of the management are in order by night": () => lookAtPages("dark", { colorScheme: "dark" }, true),
  "pages of the management are in order on a narrow screen": () => lookAtPages("narrow", { colorScheme: "light", ...NARROW }, false),
};
