// The home page: health, recent uploads, space, the last 24 hours, and the buckets.

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
    this.overview = make("div", { class: "overview" });
    this.heading = make("h2", { hidden: true }, "Buckets");
    this.element = make("div", { class: "home" },
      make("header", null, make("h1", null, "Home"),
        make("button", { type: "button", class: "primary", click: () => this.create() }, icon("plus"), "New bucket")),
      this.overview, this.heading, this.cards);
    document.title = "Home – trug";
    frame.searchAll("");
    this.load();
  }

  async load() {
    try {
      const buckets = await this.frame.loaded;
      if (buckets.length === 0) {
        fill(this.cards, make("div", { class: "empty" }, icon("trug", "icon large"), make("h2", null, "Create your first bucket"),
          make("p", null, "A bucket holds files under one URL. Create one, then drop files into it."),
          make("p", { class: "buttons" }, make("button", { type: "button", class: "primary", click: () => this.create() }, icon("plus"), "New bucket"))));
        return;
      }
      // The buckets are usable without the rest of the page.
      bring(() => import("./overview.mjs")).then((module) => module.overview(this.frame.account, buckets)).then((it) => fill(this.overview, it), () => {});
      this.heading.hidden = false;
      fill(this.cards, buckets.map((/** @type {any} */ bucket) => make("a", { class: "card", href: filesAddress(bucket.bucketName) },
        make("strong", null, bucket.bucketName),
        make("span", { class: "faint" }, icon(bucket.access === "private" ? "lock" : "globe"), bucket.access === "private" ? "Private" : "Public",
          bucket.type === "phone" ? " · phone" : "", ` · created ${day(bucket.createdAt)}`),
        make("span", { class: "amount" }, make("b", null, `${count(bucket.objectCount, "file")} · ${bytes(bucket.totalBytes)}`)),
        quota(bucket))));
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

  /** Organisations in which the account can create buckets. @returns {Promise<[string, string][]>} */
  async shared() {
    const me = this.frame.account?.id;
    const { organisations } = await call("GET", "/api/organisations?limit=1000").catch(() => ({ organisations: [] }));
    const mine = organisations.filter((/** @type {any} */ it) => it.members.some((/** @type {any} */ member) => member.account === me && ["admin", "owner"].includes(member.role)));
    return mine.map((/** @type {any} */ it) => [it.id, it.name]);
  }

  close() {}
}

/** The usage of a storage quota. @param {any} bucket */
function quota(bucket) {
  if (!bucket.quotaBytes) return null;
  const text = `${bytes(bucket.totalBytes)} of ${bytes(bucket.quotaBytes)}`;
  return [
    make("progress", { max: bucket.quotaBytes, value: Math.min(bucket.totalBytes, bucket.quotaBytes), "aria-label": `Storage quota: ${bytes(bucket.quotaBytes)}` }),
    make("small", { class: "faint" }, text),
  ];
}
