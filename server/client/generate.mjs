// Generates `src/types.gen.ts` from the OpenAPI document of the server.
//
// Guarantees: the output depends on the document alone; every operation with a JSON response that an API key may
// request is in `Paths`. Non-goals: the dashboard's own endpoints below `/-/`, transfers of files, which `upload` and
// `download` cover, and schemas that no such operation uses.
//
//   node generate.mjs [FOLDER]    writes FOLDER/types.gen.ts, by default in `src`

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const document = JSON.parse(readFileSync(join(here, "../openapi.json"), "utf8"));
const METHODS = ["get", "post", "put", "patch", "delete"];

/** Schemas that the output refers to; those found while one is rendered are appended. */
const used = new Set(["ApiError", "UploadedFile"]);

const comment = (text, indent) =>
  text ? `${indent}/** ${text.replaceAll("*/", "*\\/").replaceAll("\n", " ")} */\n` : "";
const name = (text) => (/^[A-Za-z_]\w*$/.test(text) ? text : JSON.stringify(text));
const union = (parts) => [...new Set(parts)].join(" | ");

/** Returns the TypeScript type of a schema. */
function type(schema, indent) {
  if (schema.$ref) {
    const found = schema.$ref.split("/").at(-1);
    used.add(found);
    return `Schemas[${JSON.stringify(found)}]`;
  }
  if (schema.enum) return union(schema.enum.map((value) => JSON.stringify(value)));
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return union(choices.map((choice) => type(choice, indent)));
  if (Array.isArray(schema.type)) return union(schema.type.map((one) => type({ ...schema, type: one }, indent)));
  switch (schema.type) {
    case "object":
      return object(schema, indent);
    case "array":
      return `Array<${type(schema.items, indent)}>`;
    case "integer":
      return "number";
    case "string":
      return schema.contentMediaType ? "Blob" : "string";
    case undefined:
      return "unknown";
    default:
      return schema.type;
  }
}

function object(schema, indent) {
  if (!schema.properties) return "Record<string, unknown>";
  const fields = Object.entries(schema.properties).map(([key, field]) => ({
    key,
    text: type(field, `${indent}  `),
    description: field.description,
    isRequired: schema.required?.includes(key),
  }));
  return block(fields, indent);
}

/** Returns an object type with one line for each field. */
function block(fields, indent) {
  const inner = `${indent}  `;
  const lines = fields.map(
    ({ key, text, description, isRequired }) =>
      `${comment(description, inner)}${inner}${name(key)}${isRequired ? "" : "?"}: ${text};\n`,
  );
  return `{\n${lines.join("")}${indent}}`;
}

/** Returns the type of an operation, or `null` if it has no JSON response. */
function operation(described, indent) {
  const reply = Object.entries(described.responses).find(([status]) => status.startsWith("2"))?.[1];
  const output = reply?.content?.["application/json"]?.schema;
  if (!output) return null;
  const inner = `${indent}  `;
  const fields = ["path", "query"].flatMap((place) => {
    const all = (described.parameters ?? []).filter((it) => it.in === place);
    if (all.length === 0) return [];
    const members = all.map((it) => ({
      ...it,
      key: it.name,
      text: type(it.schema, `${inner}  `),
      isRequired: it.required,
    }));
    return [{ key: place, text: block(members, inner), isRequired: all.some((it) => it.required) }];
  });
  const content = described.requestBody?.content;
  if (content) {
    const json = content["application/json"]?.schema;
    const other = content["multipart/form-data"] ? "FormData" : "Blob | ArrayBuffer | Uint8Array | string";
    fields.push({ key: "body", text: json ? type(json, inner) : other, isRequired: true });
  }
  fields.push({ key: "output", text: type(output, inner), isRequired: true });
  return { text: block(fields, indent), description: described.summary };
}

const isOfApi = ([path]) => path !== "/" && !path.startsWith("/-/");
const paths = Object.entries(document.paths)
  .filter(isOfApi)
  .flatMap(([path, item]) => {
    const fields = METHODS.filter((method) => item[method]).flatMap((method) => {
      const found = operation(item[method], "    ");
      return found ? [{ key: method.toUpperCase(), ...found, isRequired: true }] : [];
    });
    return fields.length > 0 ? [{ key: path, text: block(fields, "  "), isRequired: true }] : [];
  });
const text = block(paths, "");
const schemas = new Map();
for (const found of used) {
  const schema = document.components.schemas[found];
  schemas.set(found, { key: found, text: type(schema, "  "), description: schema.description, isRequired: true });
}
const sorted = [...schemas.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
const head = `// Types of the HTTP API, generated from the OpenAPI document by \`npm run build\`: do not edit.
//
// Guarantees: a test compares this file with the document. Non-goals: what the client adds to these types.
`;
const output = `${head}
/** Schemas of the HTTP API, by their names in the OpenAPI document. */
export interface Schemas ${block(sorted, "")}

/** Operations of the HTTP API, by path and method. */
export interface Paths ${text}
`;
writeFileSync(join(process.argv[2] ?? join(here, "src"), "types.gen.ts"), output);
