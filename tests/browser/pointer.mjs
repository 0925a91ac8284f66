// The pointer on the file list: selection by clicks and rectangles, menus, moving and copying by drag and by the picker.

import assert from "node:assert/strict";
import { api, close, focused, keys, open, options, shot, shows, store, waitForRows } from "./driver.mjs";
import { asOperator, newcomer } from "./sessions.mjs";

const note = (page, text) => page.locator(".note", { hasText: text });
const text = async (key) => (await api("GET", `/photos/${key}`, undefined, { "Cache-Control": "no-cache" })).text();

/** Stores files of these names, each with its own name as content. */
async function filled(folder, names) {
  await Promise.all(names.map((name) => store("photos", `${folder}/${name}`, `${name}\n`)));
}

const row = (page, name) => page.locator(".row").filter({ has: page.locator(".name").getByText(name, { exact: true }) });

/** Waits until exactly these rows are selected. */
async function selected(page, names) {
  await page.waitForFunction((wanted) => {
    const found = [...document.querySelectorAll(".row[aria-selected=true] .name")].map((it) => it.textContent).sort();
    return JSON.stringify(found) === JSON.stringify(wanted);
  }, [...names].sort());
}

/** A point of a row outside of its name. */
async function rowPoint(page, name) {
  const box = await row(page, name).boundingBox();
  return { x: box.x + box.width * 0.5, y: box.y + box.height / 2 };
}

/** Presses at a point, moves over others, and releases at the last one. */
async function drag(page, from, ...points) {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  for (const point of points) await page.mouse.move(point.x, point.y, { steps: 4 });
}

const painted = (page) => page.evaluate(() => String(getSelection()).length);
const menu = (page) => page.getByRole("menu");

export const tests = {
  async selection_by_click_ctrl_and_shift_paints_no_text() {
    const names = ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"];
    await filled("clicked", names);
    const page = await open("/-/files/photos/clicked/");
    await waitForRows(page, 5);
    const click = async (name, modifiers = []) => row(page, name).click({ position: { x: 400, y: 15 }, modifiers });
    await click("b.txt");
    await selected(page, ["b.txt"]);
    await click("d.txt", ["Shift"]);
    await selected(page, ["b.txt", "c.txt", "d.txt"]);
    assert.equal(await painted(page), 0);
    await click("c.txt", ["Control"]);
    await selected(page, ["b.txt", "d.txt"]);
    await click("e.txt", ["Control", "Shift"]);
    await selected(page, ["b.txt", "c.txt", "d.txt", "e.txt"]);
    await click("a.txt", ["Shift"]);
    await selected(page, ["a.txt", "b.txt", "c.txt"]);
    await row(page, "e.txt").locator(".tick").click();
    await selected(page, ["a.txt", "b.txt", "c.txt", "e.txt"]);
    await page.locator(".status", { hasText: "4 selected, 24 B" }).waitFor();
    await page.keyboard.press("Escape");
    await selected(page, []);
    await click("b.txt");
    // Between the last row and the bar of the selection.
    const last = await row(page, "e.txt").boundingBox();
    await page.mouse.click(last.x + 300, last.y + last.height + 60);
    await selected(page, []);
    assert.equal(await painted(page), 0);
    await row(page, "a.txt").locator(".name").click();
    await page.locator("dialog.preview").waitFor();
    await close(page);
  },

  async selection_by_rectangle_adds_with_ctrl_and_escape_restores_it() {
    const names = Array.from({ length: 8 }, (_, number) => `${number}.txt`);
    await filled("dragged", names);
    const page = await open("/-/files/photos/dragged/");
    await waitForRows(page, 8);
    await drag(page, await rowPoint(page, "1.txt"), await rowPoint(page, "2.txt"), await rowPoint(page, "3.txt"));
    await page.locator(".rectangle").waitFor();
    await shot(page, "rectangle");
    await page.mouse.up();
    await page.locator(".rectangle").waitFor({ state: "detached" });
    await selected(page, ["1.txt", "2.txt", "3.txt"]);
    assert.equal(await painted(page), 0);
    await page.keyboard.down("Control");
    await drag(page, await rowPoint(page, "6.txt"), await rowPoint(page, "5.txt"));
    await page.mouse.up();
    await page.keyboard.up("Control");
    await selected(page, ["1.txt", "2.txt", "3.txt", "5.txt", "6.txt"]);
    await drag(page, await rowPoint(page, "7.txt"), await rowPoint(page, "4.txt"));
    await selected(page, ["4.txt", "5.txt", "6.txt", "7.txt"]);
    await page.keyboard.press("Escape");
    await selected(page, ["1.txt", "2.txt", "3.txt", "5.txt", "6.txt"]);
    await page.mouse.up();
    await selected(page, ["1.txt", "2.txt", "3.txt", "5.txt", "6.txt"]);
    // From the free space below the rows.
    const lowest = await row(page, "7.txt").boundingBox();
    await page.keyboard.press("Escape");
    await drag(page, { x: lowest.x + 500, y: lowest.y + lowest.height + 60 }, await rowPoint(page, "6.txt"));
    await page.mouse.up();
    await selected(page, ["6.txt", "7.txt"]);
    // Tiles are selected in columns, too.
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.locator(".tile:focus").waitFor();
    const tile = async (name) => page.locator(".tile", { has: page.locator(".name").getByText(name, { exact: true }) }).boundingBox();
    const [one, last] = [await tile("1.txt"), await tile("7.txt")];
    const box = await page.locator(".browser .scroller").boundingBox();
    await drag(page, { x: box.x + box.width - 40, y: box.y + box.height - 30 }, { x: one.x + one.width + 20, y: Math.min(one.y, last.y) + 20 });
    await page.mouse.up();
    const found = await page.locator(".tile[aria-selected=true] .name").allTextContents();
    assert.ok(!found.includes("0.txt") && !found.includes("1.txt") && found.includes("2.txt"), found.join());
    await close(page);
  },

  async selection_by_rectangle_scrolls_a_long_list() {
    const page = await open("/-/files/many/");
    await waitForRows(page, options.many);
    await focused(page, "file-000000.txt");
    const box = await page.locator(".browser .scroller").boundingBox();
    await page.waitForFunction(() => !document.querySelector(".status").textContent.includes("so far"));
    await drag(page, { x: box.x + 500, y: box.y + 20 }, { x: box.x + 520, y: box.y + box.height - 5 });
    await page.waitForFunction(() => document.querySelector(".browser .scroller").scrollTop > 2_000);
    await page.mouse.up();
    const count = Number((await page.locator(".selection-bar strong").textContent()).replace(/\D/g, ""));
    assert.ok(count > 50, `${count} rows`);
    await close(page);
  },

  async context_menu_has_row_actions_and_works_by_keyboard() {
    await filled("menus", ["a.txt", "b.txt", "sub/c.txt"]);
    await store("photos", "menus/z.png", "no image");
    const page = await open("/-/files/photos/menus/");
    await waitForRows(page, 4);
    await row(page, "b.txt").click({ button: "right", position: { x: 300, y: 15 } });
    await menu(page).waitFor();
    await selected(page, ["b.txt"]);
    await shot(page, "context-menu");
    const entries = () => page.getByRole("menuitem").allTextContents();
    assert.deepEqual(await entries(), ["Open↵", "Share…", "Copy linkc", "Copy as…f", "Downloadd", "RenameF2", "Move to…m", "Copy to…", "Duplicate", "Infoi", "DeleteDel"]);
    assert.ok(!(await entries()).some((it) => it.startsWith("Transform")));
    await page.keyboard.press("Escape");
    await menu(page).waitFor({ state: "detached" });
    await focused(page, "b.txt");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+F10");
    await page.getByRole("menu", { name: "Actions for z.png" }).waitFor();
    await selected(page, ["z.png"]);
    await page.getByRole("menuitem", { name: "Transform…" }).waitFor();
    await page.keyboard.press("End");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^Delete/);
    await page.keyboard.press("r");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^Rename/);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Rename z.png" }).waitFor();
    await page.keyboard.press("Escape");
    // A folder of a public bucket has no link of its own.
    await row(page, "sub").hover();
    await row(page, "sub").getByRole("gridcell", { name: "Actions for sub" }).click();
    await page.getByRole("menu", { name: "Actions for sub" }).waitFor();
    assert.equal(await page.getByRole("menuitem", { name: /Copy link/ }).count(), 0);
    const archive = page.waitForEvent("download");
    await page.getByRole("menuitem", { name: "Download as zip" }).click();
    assert.equal((await archive).suggestedFilename(), "sub.zip");
    await menu(page).waitFor({ state: "detached" });
    const box = await page.locator(".browser .scroller").boundingBox();
    await page.mouse.click(box.x + 300, box.y + 250, { button: "right" });
    await page.getByRole("menuitem", { name: "Select all" }).click();
    await page.getByRole("toolbar").getByText("4 selected").waitFor();
    await page.getByRole("toolbar").getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menu", { name: "Actions for 4 items" }).waitFor();
    await close(page);
  },

  async context_menu_is_a_sheet_at_the_bottom_of_a_phone() {
    await filled("sheet", ["a.txt", "b.txt"]);
    const page = await open("/-/files/photos/sheet/", { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    await waitForRows(page, 2);
    await row(page, "a.txt").locator(".dots").tap();
    await menu(page).waitFor();
    const box = await page.locator("dialog.menu-dialog").boundingBox();
    assert.deepEqual([Math.round(box.x), Math.round(box.width), Math.round(box.y + box.height)], [0, 360, 740]);
    await shot(page, "context-menu-narrow");
    await page.getByRole("menuitem", { name: "Duplicate" }).tap();
    await note(page, "“a.txt” duplicated.").waitFor();
    await shows(page, ["a (1).txt", "a.txt", "b.txt"]);
    await close(page);
  },

  async context_menu_lacks_what_the_role_forbids() {
    await asOperator("POST", "/api/organisations", { name: "Readers" });
    const { organisations } = await asOperator("GET", "/api/organisations?limit=1000");
    const { id } = organisations.find((it) => it.name === "Readers");
    await asOperator("POST", "/api/buckets", { bucketName: "shelf-of-all", organisation: id, access: "private" });
    const session = await newcomer("rita");
    const { accounts } = await asOperator("GET", "/api/accounts?limit=1000");
    await asOperator("POST", `/api/organisations/${id}/members`, { account: accounts.find((it) => it.name === "rita").id, role: "viewer" });
    const page = await open("/-/organisations", { session });
    await page.evaluate(async (id) => fetch(`/api/organisations/${id}/membership`, { method: "POST" }), id);
    await page.route("**/api/list-objects?*", (route) => route.fulfill({ json: { success: true, Contents: [{ Key: "read me.txt", Size: 3, LastModified: "2026-01-01T00:00:00.000Z" }], CommonPrefixes: [], NextContinuationToken: null } }));
    await page.goto("/-/files/shelf-of-all/");
    await waitForRows(page, 1);
    await page.locator(".tools.read-only").waitFor();
    assert.equal(await page.getByRole("button", { name: "Upload", exact: true }).isVisible(), false);
    await row(page, "read me.txt").click({ button: "right", position: { x: 300, y: 15 } });
    await menu(page).waitFor();
    assert.deepEqual((await page.getByRole("menuitem").allTextContents()).map((it) => it.slice(0, 6)), ["Open↵", "Copy a", "Downlo", "Infoi"]);
    await close(page);
  },

  async move_by_dragging_onto_folders_and_breadcrumbs_and_undo() {
    await filled("pulled", ["a.txt", "b.txt", "c.txt", "into/d.txt"]);
    const page = await open("/-/files/photos/pulled/");
    await waitForRows(page, 4);
    await row(page, "a.txt").click({ position: { x: 400, y: 15 } });
    await row(page, "b.txt").click({ position: { x: 400, y: 15 }, modifiers: ["Control"] });
    await drag(page, await rowPoint(page, "b.txt"), await rowPoint(page, "c.txt"), await rowPoint(page, "into"));
    await page.locator(".row.drop-target .name", { hasText: "into" }).waitFor();
    await page.locator(".drag-badge", { hasText: "Move 2 items to into" }).waitFor();
    await shot(page, "dragging");
    await page.mouse.up();
    await note(page, "2 items moved to pulled/into/").waitFor();
    await shows(page, ["into", "c.txt"]);
    assert.deepEqual(await keys("photos", "pulled/"), ["pulled/c.txt", "pulled/into/a.txt", "pulled/into/b.txt", "pulled/into/d.txt"]);
    await note(page, "2 items moved").getByRole("button", { name: "Undo" }).click();
    await waitForRows(page, 4);
    await page.goto("/-/files/photos/pulled/into/");
    await waitForRows(page, 1);
    // By its name without selecting it first, and with Ctrl a copy.
    const name = await row(page, "d.txt").locator(".name").boundingBox();
    const crumb = await page.locator(".crumbs a", { hasText: "pulled" }).boundingBox();
    await drag(page, { x: name.x + 40, y: name.y + 20 }, { x: crumb.x + 10, y: crumb.y + 10 });
    await page.keyboard.down("Control");
    await page.locator(".drag-badge", { hasText: "Copy “d.txt” to pulled" }).waitFor();
    await page.mouse.up();
    await page.keyboard.up("Control");
    await note(page, "“d.txt” copied to pulled/").waitFor();
    assert.deepEqual(await keys("photos", "pulled/"), ["pulled/a.txt", "pulled/b.txt", "pulled/c.txt", "pulled/d.txt", "pulled/into/d.txt"]);
    // Escape drops nothing.
    await page.goto("/-/files/photos/pulled/");
    await waitForRows(page, 5);
    await row(page, "a.txt").click({ position: { x: 400, y: 15 } });
    await drag(page, await rowPoint(page, "a.txt"), await rowPoint(page, "into"));
    await page.locator(".drop-target").waitFor();
    await page.keyboard.press("Escape");
    await page.mouse.up();
    await page.locator(".drag-badge").waitFor({ state: "detached" });
    assert.equal(await text("pulled/a.txt"), "a.txt\n");
    await close(page);
  },

  async move_and_copy_by_the_folder_picker_with_conflicts() {
    await filled("picked", ["a.txt", "b.txt", "one/a.txt", "one/deep/x.txt", "two/y.txt"]);
    const page = await open("/-/files/photos/picked/");
    await waitForRows(page, 4);
    await row(page, "a.txt").locator(".tick").click();
    await row(page, "b.txt").locator(".tick").click();
    await page.keyboard.press("m");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: "Move 2 items" }).waitFor();
    // The tree is open at the folder, whose own row cannot be chosen.
    await dialog.getByRole("treeitem", { name: "picked", exact: true }).waitFor();
    await dialog.getByText("This is the current folder").waitFor();
    await dialog.getByRole("treeitem", { name: "two" }).waitFor();
    await shot(page, "picker");
    await dialog.getByRole("treeitem", { name: "picked", exact: true }).focus();
    await page.keyboard.press("ArrowDown");
    await dialog.getByText("Destination: photos/picked/one/").waitFor();
    await page.keyboard.press("ArrowRight");
    await dialog.getByRole("treeitem", { name: "deep" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Name already in use" }).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Continue" }).click();
    await note(page, "2 items moved to picked/one/").waitFor();
    assert.deepEqual(await keys("photos", "picked/one/"), ["picked/one/a (1).txt", "picked/one/a.txt", "picked/one/b.txt", "picked/one/deep/x.txt"]);
    await shows(page, ["one", "two"]);
    await note(page, "2 items moved").getByRole("button", { name: "Undo" }).click();
    await shows(page, ["one", "two", "a.txt", "b.txt"]);
    // A folder is copied with its contents, into a new one.
    await row(page, "one").locator(".tick").click();
    await page.keyboard.press("Shift+F10");
    await page.getByRole("menuitem", { name: "Copy to…" }).click();
    await dialog.getByRole("heading", { name: "Copy “one”" }).waitFor();
    await dialog.getByRole("treeitem", { name: "two" }).click();
    await dialog.getByRole("button", { name: "New folder" }).click();
    await dialog.getByLabel("Name of the new folder").fill("made");
    await page.keyboard.press("Enter");
    await dialog.getByText("Destination: photos/picked/two/made/").waitFor();
    await dialog.getByRole("button", { name: "Copy here" }).click();
    await note(page, "“one” copied to picked/two/made/").waitFor();
    assert.deepEqual(await keys("photos", "picked/two/"), ["picked/two/made/one/a.txt", "picked/two/made/one/deep/x.txt", "picked/two/y.txt"]);
    assert.equal(await text("picked/two/made/one/deep/x.txt"), "one/deep/x.txt\n");
    // Recent targets are offered, and a folder is not put into itself.
    await page.goto("/-/files/photos/picked/");
    await waitForRows(page, 4);
    await row(page, "two").locator(".tick").click();
    await page.keyboard.press("m");
    await dialog.getByRole("button", { name: "picked/one/" }).click();
    await dialog.getByText("Destination: photos/picked/one/").waitFor();
    await dialog.getByRole("treeitem", { name: "two" }).click({ force: true });
    await dialog.getByText("A folder can't be put into itself").waitFor();
    await dialog.getByRole("button", { name: "Move here" }).click();
    await dialog.getByRole("alert").getByText("A folder can't be put into itself").waitFor();
    await close(page);
  },

  async folder_rows_and_status_line_show_counts_size_and_date() {
    await filled("weighed", ["a.txt", "one/b.txt", "one/deep/c.txt", "two/d.txt"]);
    const page = await open("/-/files/photos/weighed/");
    await waitForRows(page, 3);
    await row(page, "one").locator(".type", { hasText: "2 files" }).waitFor();
    assert.equal(await row(page, "one").locator(".size").textContent(), "25 B");
    assert.match(await row(page, "one").locator(".time").textContent(), /^today, /);
    await page.locator(".status", { hasText: "2 folders, 1 file · 41 B" }).waitFor();
    await page.getByRole("columnheader", { name: "Size" }).getByRole("button").click();
    await shows(page, ["two", "one", "a.txt"]);
    await page.goto("/-/files/photos/");
    await page.locator(".row .type", { hasText: /^\d+ files?$/ }).first().waitFor();
    await close(page);
  },
};
