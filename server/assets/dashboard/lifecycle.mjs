// The expiry rules of a bucket.

import { ask, choice, field } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { note } from "./live.mjs";
import { editBucket, previewRules } from "./manage.mjs";
import { askFirst, badge, button, nothing, table, tick } from "./parts.mjs";
import { bytes, count, moment } from "./text.mjs";

/** Units of an age in seconds. @type {[string, string][]} */
const UNITS = [["60", "minutes"], ["3600", "hours"], ["86400", "days"]];
const DAY = 86400;

/** The largest unit of an age that is exact. @param {number} seconds */
const unitOf = (seconds) => UNITS.findLast(([unit]) => seconds % Number(unit) === 0) ?? ["1", "seconds"];
/** When files expire by a rule. @param {any} rule */
function when(rule) {
  if (rule.expireAt) return `At ${moment(rule.expireAt)}`;
  const [unit, name] = unitOf(rule.expireAfterSeconds);
  return `After ${count(rule.expireAfterSeconds / Number(unit), name.slice(0, -1))}`;
}
/** @param {any} rule */
const where = (rule) => (rule.prefix === "" ? "Whole bucket" : rule.prefix);

/** The rules of a bucket, with their actions. @param {any} bucket @param {boolean} mayChange @param {() => any} saved */
export function lifecycleRules(bucket, mayChange, saved) {
  const save = async (/** @type {any[]} */ lifecycle, /** @type {string} */ said) => {
    await editBucket(bucket.bucketName, { lifecycle });
    note(said);
    saved();
  };
  const others = (/** @type {any} */ rule) => bucket.lifecycle.filter((/** @type {any} */ it) => it.id !== rule?.id);
  const remove = (/** @type {any} */ rule) => askFirst("Delete expiry rule", `Files in ${where(rule)} no longer expire by this rule.`, "Delete rule", () => save(others(rule), "Rule deleted."));
  const row = (/** @type {any} */ rule) => [
    make("span", null, make("strong", null, where(rule)), make("small", null, rule.id)),
    when(rule),
    badge(rule.enabled ? "Enabled" : "Disabled", rule.enabled ? "good" : ""),
    mayChange && make("span", { class: "buttons" },
      rule.expireAt === undefined && button("Edit", () => edit(bucket, rule, others(rule), save), { name: `edit-${rule.id}`, "aria-label": `Edit rule ${rule.id}` }),
      button("Delete", () => remove(rule), { class: "danger", name: `delete-${rule.id}`, "aria-label": `Delete rule ${rule.id}` })),
  ];
  const add = mayChange && button("Add rule…", () => edit(bucket, null, bucket.lifecycle, save), { name: "add-rule" });
  if (bucket.lifecycle.length === 0) return nothing("trash", "No expiry rules", "Files are kept until somebody deletes them.", make("p", { class: "buttons" }, add));
  return make("div", null, table("Expiry rules", [["Files"], ["Deleted"], ["State"], ["Actions", "act"]], bucket.lifecycle.map(row)).element, make("p", { class: "buttons" }, add));
}

/**
 * Creates or edits a rule.
 * @param {any} bucket @param {any} rule @param {any[]} others @param {(rules: any[], said: string) => Promise<void>} save
 */
function edit(bucket, rule, others, save) {
  const seconds = rule?.expireAfterSeconds ?? 7 * DAY;
  const [unit] = unitOf(seconds);
  ask(rule ? "Edit expiry rule" : "Add expiry rule", [
    field("Prefix", { name: "prefix", value: rule?.prefix ?? "", maxlength: 1024, placeholder: "tmp/", spellcheck: "false", autocapitalize: "none" }, "Files whose paths begin with it. Empty: the whole bucket."),
    make("div", { class: "pair" },
      field("Delete after", { name: "age", type: "number", min: 1, step: 1, required: true, value: seconds / Number(unit) }, "Counted from the last modification."),
      choice("Unit", { name: "unit" }, unit === "1" ? [["1", "seconds"], ...UNITS] : UNITS, unit)),
    tick("Enabled", { name: "enabled", checked: rule?.enabled ?? true }, "Files that are older already are deleted within a minute."),
  ], rule ? "Save" : "Add rule", async (values) => {
    const prefix = values.prefix.trim();
    const taken = new Set(others.map((it) => it.id));
    const stem = prefix.replace(/\/$/, "").slice(0, 200) || bucket.bucketName;
    let id = rule?.id ?? stem;
    for (let turn = 2; taken.has(id); turn += 1) id = `${stem}-${turn}`;
    const changed = { id, prefix, expireAfterSeconds: Number(values.age) * Number(values.unit), enabled: values.enabled !== undefined };
    const [rules, said] = [[...others, changed], rule ? "Rule saved." : "Rule added."];
    const { files, bytes: size, isComplete } = await previewRules(bucket.bucketName, rules);
    if (files === 0 && isComplete) return save(rules, said);
    const about = `${isComplete ? "" : "At least "}${count(files, "file")} (${bytes(size)}) ${files === 1 ? "is" : "are"} older than ${when(changed).slice("After ".length)} and will be deleted within a minute.`;
    return () => askFirst(rule ? "Save expiry rule" : "Add expiry rule", about, "Delete files", () => save(rules, said));
  });
}
