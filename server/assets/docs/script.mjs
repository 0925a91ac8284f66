// Documentation pages: theme, values of the reader in the examples, tabs, copying, and search. Without it everything
// can be read. Text is put in as text, never as markup.

const LANGUAGES = ["sh", "js", "python"];
const RESULTS_MAX = 12;
const TAKEN_FOR = { guide: "Guide", reference: "Reference", section: "Guide", operation: "Operation", parameter: "Parameter" };
const ICONS = {
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8Z M12 3v2 M12 19v2 M3 12h2 M19 12h2 M5.6 5.6 7 7 M17 17l1.4 1.4 M18.4 5.6 17 7 M7 17l-1.4 1.4",
  moon: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5Z",
};

const byId = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

/** An element with attributes and children; functions become listeners, strings among the children text. */
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(attribute, value);
    else element.setAttribute(attribute, value);
  }
  element.append(...children);
  return element;
}

/** Preferences of this browser; without storage every one has its default. */
const stored = (name) => { try { return localStorage.getItem(`trug-${name}`); } catch { return null; } };
const store = (name, value) => { try { localStorage.setItem(`trug-${name}`, value); } catch { /* not kept */ } };

function showTheme() {
  const button = byId("theme");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const draw = () => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    svg.setAttribute("class", "icon");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", isDark() ? ICONS.sun : ICONS.moon);
    svg.append(path);
    button.replaceChildren(svg);
    button.setAttribute("aria-label", isDark() ? "Light theme" : "Dark theme");
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    store("theme", root.dataset.theme);
    draw();
  });
  button.hidden = false;
  draw();
}

/** Puts the server's URL and the reader's bucket into the examples. */
function fillExamples() {
  for (const span of all('[data-fill="server"]')) span.textContent = location.origin;
  const spans = all('[data-fill="bucket"]');
  if (spans.length === 0) return;
  const input = byId("bucket");
  const fill = () => {
    const isName = /^[a-z0-9][a-z0-9._-]{2,62}$/.test(input.value);
    if (isName) input.removeAttribute("aria-invalid");
    else input.setAttribute("aria-invalid", "true");
    if (isName) for (const span of spans) span.textContent = input.value;
    return isName;
  };
  input.value = stored("docs-bucket") ?? "pics";
  input.addEventListener("input", () => { if (fill()) store("docs-bucket", input.value); });
  byId("fill").addEventListener("submit", (event) => event.preventDefault());
  byId("fill").hidden = false;
  fill();
}

/** Shows one language of every example that has it. */
function choose(language) {
  for (const example of all(".example:has([role=tab])")) {
    const tabs = all("[role=tab]", example);
    const chosen = tabs.find((tab) => tab.dataset.language === language) ?? tabs[0];
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
    }
    for (const code of all(".code", example)) code.hidden = code.dataset.language !== chosen.dataset.language;
  }
}

function addTabs(example, number) {
  const panels = all(".code", example);
  if (panels.length < 2) return;
  const tabs = panels.map((panel, at) => {
    const { language } = panel.dataset;
    panel.id = `example-${number}-${language}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", `tab-${number}-${language}`);
    return make("button", {
      type: "button", role: "tab", id: `tab-${number}-${language}`, "aria-controls": panel.id, "data-language": language,
      click: (event) => {
        // Examples above may change their height.
        const before = event.target.getBoundingClientRect().top;
        choose(language);
        store("docs-language", language);
        scrollBy(0, event.target.getBoundingClientRect().top - before);
      },
      keydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = tabs[(at + step + tabs.length) % tabs.length];
        next.click();
        next.focus();
      },
    }, panel.querySelector("p").textContent);
  });
  example.prepend(make("div", { role: "tablist", "aria-label": "Language" }, ...tabs));
}

function addCopy(block) {
  const button = make("button", {
    type: "button", class: "copy",
    click: async () => {
      const isCopied = await navigator.clipboard?.writeText(block.querySelector("code").textContent).then(() => true, () => false);
      button.textContent = isCopied ? "Copied" : "Select and copy";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    },
  }, "Copy");
  block.append(button);
}

/** Words of a text; names such as `expiresIn` are also several. */
const wordsOf = (text) => text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);

/** Typing errors between a word and the beginning of another; swapped letters are one. */
function errorsIn(sought, word) {
  let [before, last] = [[], Array.from({ length: word.length + 1 }, (_, at) => at)];
  for (let row = 1; row <= sought.length; row += 1) {
    const next = [row];
    for (let at = 1; at <= word.length; at += 1) {
      const isSame = sought[row - 1] === word[at - 1];
      next[at] = Math.min(last[at] + 1, next[at - 1] + 1, last[at - 1] + (isSame ? 0 : 1));
      if (row > 1 && at > 1 && sought[row - 1] === word[at - 2] && sought[row - 2] === word[at - 1]) {
        next[at] = Math.min(next[at], before[at - 2] + 1);
      }
    }
    [before, last] = [last, next];
  }
  return Math.min(...last);
}

/** How well words match one that is sought: 1 for the same, less for the beginning and for typing errors, or 0. */
function likeness(sought, words) {
  let best = 0;
  const errorsMax = sought.length < 4 ? 0 : sought.length < 8 ? 1 : 2;
  for (const word of words) {
    if (word === sought) return 1;
    if (word.startsWith(sought)) best = Math.max(best, 0.8);
    else if (best < 0.4 && errorsMax > 0 && Math.abs(word.length - sought.length) <= 12 && errorsIn(sought, word) <= errorsMax) best = 0.4;
  }
  return best;
}

const index = {
  /** Loaded when the search is first used. @type {Promise<any[]> | null} */
  loading: null,
  entries() {
    this.loading ??= fetch("/-/docs/search.json").then(async (response) => {
      if (!response.ok) throw new Error(`the server responded with ${response.status}`);
      const bonus = { guide: 40, reference: 15, section: 20, operation: 10, parameter: 0 };
      return (await response.json()).map(([kind, title, page, url, keywords, text]) => ({
        kind, title, page, url, bonus: bonus[kind],
        fields: [[100, wordsOf(title)], [90, wordsOf(keywords)], [25, wordsOf(page)], [20, text.split(" ")]],
      }));
    });
    this.loading.catch(() => { this.loading = null; });
    return this.loading;
  },
};

/** Entries by how well they match: those with all words, otherwise those with one of them. */
function find(entries, query) {
  const sought = wordsOf(query);
  const rated = entries.map((entry) => {
    const each = sought.map((word) => Math.max(...entry.fields.map(([weight, words]) => weight * likeness(word, words))));
    const found = each.filter((score) => score > 0).length;
    return { entry, found, score: each.reduce((sum, score) => sum + score, 0) / sought.length + entry.bonus };
  });
  const most = Math.max(...rated.map(({ found }) => found));
  const matching = rated.filter(({ found }) => found > 0 && found === most);
  return matching.sort((one, other) => other.score - one.score).slice(0, RESULTS_MAX).map(({ entry }) => entry);
}

function addSearch() {
  const [input, found, results, nothing, count] = ["query", "found", "results", "no-match", "count"].map(byId);
  let options = [];
  let active = -1;
  let latest = 0;

  const close = () => {
    found.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const activate = (at) => {
    active = at;
    for (const [index, option] of options.entries()) option.setAttribute("aria-selected", String(index === at));
    options[at]?.scrollIntoView({ block: "nearest" });
    if (options[at]) input.setAttribute("aria-activedescendant", options[at].id);
    else input.removeAttribute("aria-activedescendant");
  };
  const show = (entries, query, problem = "") => {
    options = entries.map((entry, at) => make("a", { role: "option", id: `result-${at}`, href: entry.url, tabindex: "-1", "aria-selected": "false", click: close },
      make("span", null, entry.title), make("small", null, [TAKEN_FOR[entry.kind], entry.page].filter(Boolean).join(" · "))));
    results.replaceChildren(...options);
    results.hidden = options.length === 0;
    nothing.hidden = options.length > 0;
    const message = problem || `No match for “${query}”. `;
    nothing.replaceChildren(message, make("a", { href: "/-/docs#guides" }, "Browse the guides"), ".");
    count.textContent = options.length === 0 ? message : `${options.length} ${options.length === 1 ? "result" : "results"}`;
    found.hidden = false;
    input.setAttribute("aria-expanded", String(options.length > 0));
    activate(options.length > 0 ? 0 : -1);
  };
  const search = async () => {
    const query = input.value.trim();
    const turn = latest += 1;
    if (query === "") return close();
    try {
      const entries = await index.entries();
      if (turn === latest) show(wordsOf(query).length > 0 ? find(entries, query) : [], query);
    } catch {
      if (turn === latest) show([], query, "The search could not be loaded. ");
    }
  };
  const keys = {
    ArrowDown: () => activate(Math.min(active + 1, options.length - 1)),
    ArrowUp: () => activate(Math.max(active - 1, 0)),
    Enter: () => options[active]?.click(),
    Escape: () => { if (found.hidden) input.value = ""; close(); },
  };
  input.addEventListener("input", search);
  input.addEventListener("focus", () => index.entries().catch(() => {}));
  input.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.isComposing) return;
    event.preventDefault();
    keys[event.key]();
  });
  addEventListener("pointerdown", (event) => { if (!byId("search").contains(event.target)) close(); });
  addEventListener("keydown", (event) => {
    const isTyping = event.target.matches?.("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey;
    if (event.key !== "/" || isTyping) return;
    event.preventDefault();
    input.focus();
  });
  byId("search").hidden = false;
}

showTheme();
fillExamples();
for (const [number, example] of all(".example").entries()) addTabs(example, number);
for (const block of all(".code")) addCopy(block);
choose(LANGUAGES.find((language) => language === stored("docs-language")) ?? LANGUAGES[0]);
addSearch();
for (const link of all("#contents a")) link.addEventListener("click", () => byId("contents").hidePopover?.());
byId("contents").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
