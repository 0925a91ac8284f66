// All buckets of the account, and a way to make one.

import { filesAddress } from "./address.mjs";
import { call, createBucket, explain } from "./api.mjs";
import { ask, bucketNameField, choice } from "./dialog.mjs";
import { fill, make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { bring } from "./later.mjs";
import { go } from "./router.mjs";
import { bytes, count, day } from "./text.mjs";

export class Home {
  /** @param {any} frame */
  constructor(frame) {
    this.frame = frame;
    this.cards = make("div", { class: "cards" });
    this.about = make("p", { class: "faint" });
    this.overview = make("div");
    this.element = make("div", { class: "home" },
      make("header", null, make("div", null, make("h1", null, "Buckets"), this.about),
        make("button", { type: "button", class: "primary", click: () => this.create() }, icon("plus"), "New bucket")),
      this.overview, this.cards);
    document.title = "Buckets – trug";
    frame.searchIn("");
    this.load();
  }

  async load() {
    try {
      const buckets = await this.frame.loaded;
      const files = buckets.reduce((/** @type {number} */ sum, /** @type {any} */ it) => sum + it.objectCount, 0);
      const stored = buckets.reduce((/** @type {number} */ sum, /** @type {any} */ it) => sum + it.totalBytes, 0);
      this.about.textContent = buckets.length > 0 ? `${count(files, "file")}, ${bytes(stored)}` : "";
      if (buckets.length === 0) {
        fill(this.cards, make("div", { class: "empty" }, icon("trug", "icon large"), make("h2", null, "No bucket yet"),
          make("p", null, "A bucket holds files under one address. Make one, then drop files into it."),
          make("p", { class: "buttons" }, make("button", { type: "button", class: "primary", click: () => this.create() }, icon("plus"), "New bucket"))));
        return;
      }
      // What it shows is beside the point: without it there is none.
      bring(() => import("./overview.mjs")).then((module) => module.overview(this.frame.account)).then((it) => fill(this.overview, it), () => {});
      fill(this.cards, buckets.map((/** @type {any} */ bucket) => make("a", { class: "card", href: filesAddress(bucket.bucketName) },
        make("span", { class: "emblem" }, icon("bucket")),
        make("strong", null, bucket.bucketName),
        make("span", { class: "amount" }, make("b", null, count(bucket.objectCount, "file")), ` ${bytes(bucket.totalBytes)}`),
        quota(bucket),
        make("span", { class: "faint" }, icon(bucket.access === "private" ? "lock" : "globe"), bucket.access === "private" ? "Private" : "Public",
          bucket.type === "phone" ? " · phone" : "", ` · since ${day(bucket.createdAt)}`))));
    } catch (error) {
      fill(this.cards, make("div", { class: "empty" }, icon("warning", "icon large"), make("p", { role: "alert" }, explain(error)),
        make("button", { type: "button", click: () => { this.frame.load(); this.load(); } }, icon("again"), "Try again")));
    }
  }

  async create() {
    const shared = await this.shared();
    ask("New bucket", [
      bucketNameField("Name"),
      choice("Visibility", { name: "access" }, [["public", "Public – anyone with the URL"], ["private", "Private – signed-in users, API keys and links"]]),
      choice("Type", { name: "type" }, [["standard", "Standard"], ["phone", "Phone – for phones of game servers"]]),
      shared.length > 0 && choice("Owner", { name: "organisation" }, [["", "Your account"], ...shared]),
    ].filter(Boolean), "Create", async ({ organisation, ...values }) => {
      await createBucket(organisation ? { ...values, organisation } : values);
      this.frame.load();
      go(filesAddress(values.bucketName));
    });
  }

  /** Organisations in which one may make buckets. @returns {Promise<[string, string][]>} */
  async shared() {
    const me = this.frame.account?.id;
    const { organisations } = await call("GET", "/api/organisations?limit=1000").catch(() => ({ organisations: [] }));
    const mine = organisations.filter((/** @type {any} */ it) => it.members.some((/** @type {any} */ member) => member.account === me && ["admin", "owner"].includes(member.role)));
    return mine.map((/** @type {any} */ it) => [it.id, it.name]);
  }

  close() {}
}

/** How much of its quota a bucket has used. @param {any} bucket */
function quota(bucket) {
  if (!bucket.quotaBytes) return null;
  return make("progress", { max: bucket.quotaBytes, value: Math.min(bucket.totalBytes, bucket.quotaBytes), "aria-label": `Quota: ${bytes(bucket.quotaBytes)}`, title: `of ${bytes(bucket.quotaBytes)}` });
}
