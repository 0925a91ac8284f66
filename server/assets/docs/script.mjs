// Shows /-/openapi.json. Text is put in as text, never as markup.

const METHODS = ["get", "head", "post", "put", "patch", "delete", "options"];

/** An element with attributes and children; strings become text. */
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes ?? {})) element.setAttribute(attribute, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Text in which what stands in backticks is code. */
function prose(text) {
  return (text ?? "").split("`").map((part, at) => (at % 2 === 1 ? make("code", null, part) : part));
}

function show(api) {
  const resolve = (it) => {
    if (!it?.$ref) return it ?? {};
    return it.$ref.slice(2).split("/").reduce((found, name) => found?.[name], api) ?? {};
  };
  const nameOf = (it) => it?.$ref?.split("/").at(-1);

  /** Properties of an object, of all parts that it is made of. */
  function fields(schema) {
    const all = new Map();
    // Its own before those that it has in common with others.
    const parts = [...(schema.allOf ?? [])].sort((one, other) => Boolean(one.$ref) - Boolean(other.$ref));
    for (const part of parts) for (const [name, field] of fields(resolve(part))) all.set(name, field);
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      all.set(name, { schema: property, required: schema.required?.includes(name) ?? false });
    }
    return all;
  }

  /** What a value is, in a few words. */
  function kind(it) {
    const schema = resolve(it);
    const parts = schema.oneOf ?? schema.anyOf;
    if (parts) return parts.map(kind).join(" or ");
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
    const types = [schema.type].flat().filter(Boolean);
    const words = types.map((type) => (type === "array" ? `array of ${kind(schema.items)}` : type));
    if (schema.allOf || schema.properties) return nameOf(it) ?? "object";
    return [words.join(" or ") || "anything", schema.format && `(${schema.format})`].filter(Boolean).join(" ");
  }

  /** The schema whose fields are worth showing below this one. */
  function inside(it) {
    const schema = resolve(it);
    if (schema.properties || schema.allOf) return schema;
    const parts = [schema.items, ...(schema.oneOf ?? schema.anyOf ?? [])].filter(Boolean);
    return parts.map(inside).find(Boolean);
  }

  function bounds(schema) {
    const said = [
      ["default", schema.default], ["at least", schema.minimum], ["at most", schema.maximum],
      ["characters at most", schema.maxLength], ["entries at most", schema.maxItems],
      // A longer one says less than the description.
      ["pattern", schema.pattern?.length <= 40 ? schema.pattern : undefined],
    ];
    return said.filter(([, value]) => value !== undefined && value !== null && value !== 0)
      .map(([what, value]) => `${what} ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
  }

  /** The fields of a schema. What lies deeper is made when it is opened, so that nothing goes round in circles. */
  function tree(it, isAnswer = false) {
    const schema = inside(it);
    if (!schema) return null;
    const list = make("dl");
    for (const [name, field] of fields(schema)) {
      list.append(...entry(name, field.required && !isAnswer, field.schema, undefined, isAnswer));
    }
    const details = make("details", { class: "schema" }, make("summary", null, nameOf(it) ?? kind(it)));
    details.addEventListener("toggle", () => details.append(list), { once: true });
    return details;
  }

  /** A name with what it may be. In answers nearly everything is always there: only requests say what must be. */
  function entry(name, required, schema, description, isAnswer = false) {
    const resolved = resolve(schema);
    const type = make("span", { class: "type faint" }, kind(schema));
    const mark = required ? make("span", { class: "required" }, " required") : null;
    const text = prose(description ?? resolved.description);
    const limits = bounds(resolved);
    const below = tree(schema, isAnswer);
    return [
      make("dt", null, make("code", null, name), " ", type, mark),
      make("dd", null, text, limits ? make("div", null, limits) : null, below),
    ];
  }

  function parameters(item, operation) {
    const all = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolve);
    if (all.length === 0) return null;
    const entries = all.flatMap((it) =>
      entry(it.name, it.required, it.schema, [`In the ${it.in}.`, it.description].filter(Boolean).join(" ")));
    return [make("h3", null, "Parameters"), make("dl", null, entries)];
  }

  function content(of, isAnswer) {
    return Object.entries(of.content ?? {}).map(([type, it]) =>
      make("div", null, make("code", null, type), " ", tree(it.schema, isAnswer) ?? (it.schema ? kind(it.schema) : null)));
  }

  function body(operation) {
    if (!operation.requestBody) return null;
    const it = resolve(operation.requestBody);
    const mark = it.required ? make("span", { class: "required" }, " required") : null;
    return [make("h3", null, "Body", mark), make("div", null, prose(it.description), content(it))];
  }

  function responses(operation) {
    const list = make("dl");
    for (const [status, it] of Object.entries(operation.responses ?? {})) {
      const response = resolve(it);
      // Every refusal has the same body; it is said once, at the first.
      const isRefusal = Number(status) >= 400;
      const headers = Object.entries(response.headers ?? {}).flatMap(([name, header]) =>
        entry(name, false, resolve(header).schema, resolve(header).description));
      list.append(
        make("dt", null, make("code", null, status), " ", prose(response.description)),
        make("dd", null, headers.length > 0 ? make("dl", null, headers) : null, isRefusal ? null : content(response, true)),
      );
    }
    const refusal = tree({ $ref: "#/components/schemas/ApiError" }, true);
    return [make("h3", null, "Answers"), list, make("p", { class: "faint" }, "From 400 on: "), refusal];
  }

  /** Whether an operation needs a key, takes one, or looks at none. */
  function key(operation) {
    const schemes = (operation.security ?? api.security ?? []).map((it) => Object.keys(it).length > 0);
    if (!schemes.includes(true)) return "Looks at no API key.";
    return schemes.includes(false) ? "Needs an API key where the bucket is private." : "Needs an API key.";
  }

  /** A value that a JSON body could have. */
  function sample(it, depth = 0) {
    const schema = resolve(it);
    if (schema.enum) return schema.enum[0];
    if (schema.oneOf) return sample(schema.oneOf.find((part) => resolve(part).type !== "null"), depth);
    const type = [schema.type].flat()[0];
    if (type === "array") return [sample(schema.items, depth + 1)];
    if (type === "integer") return schema.minimum ?? 0;
    if (type === "boolean") return true;
    if (type === "string") return "";
    const required = [...fields(schema)].filter(([, field]) => field.required);
    return Object.fromEntries(required.map(([name, field]) => [name, sample(field.schema, depth + 1)]));
  }

  /** A line for a shell. Words in capitals are to be replaced. */
  function curl(path, method, item, operation) {
    const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
    const all = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolve);
    const words = ["curl"];
    if (method === "head") words.push("-I");
    else if (method !== "get") words.push("-X", method.toUpperCase());
    if (key(operation) === "Needs an API key.") words.push("-H", '"Authorization: Bearer $KEY"');
    for (const it of all.filter((it) => it.in === "header" && it.required)) {
      words.push("-H", quote(`${it.name}: ${resolve(it.schema).enum?.[0] ?? "VALUE"}`));
    }
    const [type, media] = Object.entries(resolve(operation.requestBody ?? {}).content ?? {})[0] ?? [];
    if (type === "multipart/form-data") words.push("-F", "file=@FILE");
    else if (type === "application/json") {
      words.push("-H", quote(`Content-Type: ${type}`), "-d", quote(JSON.stringify(sample(media.schema))));
    } else if (type) {
      if (!type.includes("*")) words.push("-H", quote(`Content-Type: ${type}`));
      words.push("--data-binary", "@FILE");
    }
    const query = all.filter((it) => it.in === "query" && it.required).map((it) => `${it.name}=${it.name.toUpperCase()}`);
    const place = path.replaceAll(/\{(\w+)\}/g, (_, name) => name.toUpperCase());
    words.push(quote(`${location.origin}${place}${query.length > 0 ? `?${query.join("&")}` : ""}`));
    return words.join(" ");
  }

  function operation(path, method, item, it) {
    const details = make("details", { class: "operation", id: it.operationId },
      make("summary", null,
        make("span", { class: `method ${method}` }, method.toUpperCase()),
        make("span", { class: "path" }, path),
        make("span", { class: "summary" }, prose(it.summary))));
    details.addEventListener("toggle", () => details.append(make("div", null,
      make("p", null, prose(it.description)),
      make("p", { class: "faint" }, key(it)),
      make("pre", { tabindex: "0", "aria-label": "Example" }, curl(path, method, item, it)),
      parameters(item, it), body(it), responses(it))), { once: true });
    const statuses = Object.entries(it.responses ?? {}).map(([status, one]) => `${status} ${resolve(one).description}`);
    const words = [method, path, it.operationId, it.summary, it.tags?.join(" "), ...statuses].join(" ").toLowerCase();
    return { details, words };
  }

  document.getElementById("title").textContent = `${api.info.title} ${api.info.version}: HTTP API`;
  document.getElementById("about").append(...prose(api.info.description));
  const found = new Map((api.tags ?? []).map((tag) => [tag.name, { tag, operations: [] }]));
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((method) => item[method])) {
      const name = item[method].tags?.[0] ?? "Others";
      if (!found.has(name)) found.set(name, { tag: { name }, operations: [] });
      found.get(name).operations.push(operation(path, method, item, item[method]));
    }
  }
  const groups = [...found.values()].filter((group) => group.operations.length > 0);
  for (const group of groups) {
    group.section = make("section", null, make("h2", null, group.tag.name),
      group.tag.description ? make("p", null, prose(group.tag.description)) : null,
      group.operations.map((it) => it.details));
  }
  document.getElementById("operations").replaceChildren(...groups.map((group) => group.section));
  return groups;
}

function filtered(groups, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const group of groups) {
    let shown = 0;
    for (const it of group.operations) {
      it.details.hidden = !words.every((word) => it.words.includes(word));
      if (!it.details.hidden) shown += 1;
    }
    group.section.hidden = shown === 0;
    count += shown;
  }
  document.getElementById("count").textContent = `${count} shown`;
}

/** Opens what the address names. */
function openNamed() {
  const details = document.getElementById(location.hash.slice(1));
  if (details?.tagName !== "DETAILS") return;
  details.open = true;
  details.scrollIntoView();
}

try {
  const answer = await fetch("/-/openapi.json");
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const groups = show(await answer.json());
  const filter = document.getElementById("filter");
  filter.addEventListener("input", () => filtered(groups, filter.value));
  filtered(groups, filter.value);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== filter) {
      event.preventDefault();
      filter.focus();
    }
  });
  addEventListener("hashchange", openNamed);
  openNamed();
} catch (error) {
  document.getElementById("operations").replaceChildren(make("p", { role: "alert" }, `The document cannot be shown: ${error.message}`));
}
