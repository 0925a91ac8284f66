// The current settings and version of the server, read-only, for operators.

import { fill, make } from "./dom.mjs";
import { serverSettings } from "./manage.mjs";
import { badge, facts, nothing, page, part, table } from "./parts.mjs";
import { field } from "./dialog.mjs";

/** Text whose backquoted parts become code. @param {string} text */
const marked = (text) => text.split("\u0060").map((part, at) => (at % 2 === 1 ? make("code", null, part) : part));

/** The value of a setting. @param {any} it */
function value(it) {
  if (it.value === null || it.value === "[]") return make("span", { class: "faint" }, it.withoutValue ?? "None");
  return it.value === "\"***\"" ? badge("Hidden") : make("code", null, it.value);
}

export function view() {
  const it = page("Server settings", { about: "Read-only. Change settings in the configuration file, the environment or the command line of the server." });
  const box = field("Filter", { type: "search", spellcheck: "false", autocapitalize: "none", "data-finder": true });
  const input = box.querySelector("input");
  const list = part(serverSettings, (report) => {
    const rows = make("div");
    const draw = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = report.settings.filter((/** @type {any} */ setting) => words.every((/** @type {string} */ word) => `${setting.name} ${setting.about}`.toLowerCase().includes(word)));
      const cells = found.map((/** @type {any} */ setting) => [
        [make("code", null, setting.name), make("small", null, marked(setting.about))], value(setting),
        setting.source === "default" ? make("span", { class: "faint" }, "Default") : setting.source, setting.change === "reload" ? "Reload" : "Restart",
      ]);
      fill(rows, found.length > 0 ? table("Settings", [["Setting", "wide"], ["Value", "wide"], ["Source"], ["To apply"]], cells).element : nothing("search", "No results", `No setting contains “${input.value}”.`));
    };
    input.addEventListener("input", draw);
    draw();
    return [facts([["Version", `trug ${report.version}`], ["Data folder", make("code", null, report.dataFolder ?? "–")]]), rows];
  });
  it.element.append(box, list.element);
  return it;
}
