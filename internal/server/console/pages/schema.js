// The schemas that a server publishes (OpenAPI v3).
import {encode, json, pause} from "./api.js";

const tries = 4, wait = 700; // milliseconds: kube-apiserver publishes the schema of a new kind some time after its definition

// schemaOf returns the schema of a kind, undefined if there is none, with the schemas that it refers to by name.
export async function schemaOf(k, version, signal) {
  for (let n = 1; ; n++) {
    const schemas = await schemasOf(k, version, signal);
    const root = rootOf(schemas, k, version);
    if (root || n === tries || signal.aborted) return {schemas, root};
    await pause(wait, signal);
  }
}

// schemasOf returns the schemas of the group and version of a kind, by name.
async function schemasOf(k, version, signal) {
  const index = await json("/openapi/v3", {signal});
  const path = k.group ? `apis/${k.group}/${version}` : `api/${version}`;
  const at = index.paths[path]?.serverRelativeURL;
  if (!at) return {};
  return (await json(at, {signal})).components?.schemas ?? {};
}

// resolve follows a reference. A schema with a description and one reference below allOf is that reference.
export function resolve(schemas, s) {
  if (!s) return {};
  const ref = s.$ref ?? (s.allOf?.length === 1 ? s.allOf[0].$ref : null);
  if (!ref) return s;
  const {allOf, $ref, ...own} = s;
  return {...schemas[ref.split("/").pop()], ...own, name: ref.split("/").pop()};
}

// rootOf returns the schema of a kind; undefined for none.
const rootOf = (schemas, k, version) => Object.values(schemas).find(s => s["x-kubernetes-group-version-kind"]?.some(x => x.group === k.group && x.version === version && x.kind === k.kind));

// elements returns the schema of the elements of a list or a map, or the schema itself.
export const elements = (schemas, s) => resolve(schemas, s.items ?? (typeof s.additionalProperties === "object" ? s.additionalProperties : s));

// typeName names the type of a schema.
export function typeName(schemas, s) {
  if (s["x-kubernetes-int-or-string"] || s.format === "int-or-string") return "integer or string";
  if (s.type === "array") return `list of ${typeName(schemas, resolve(schemas, s.items))}`;
  if (typeof s.additionalProperties === "object") return `map of ${typeName(schemas, resolve(schemas, s.additionalProperties))}`;
  if (s.properties) return s.name?.split(".").pop() ?? "object";
  return (s.type ?? (s["x-kubernetes-preserve-unknown-fields"] ? "anything" : "object")) + (s.format ? ` (${s.format})` : "");
}

// example returns a value for a schema: its default, the first of its values, or its required fields.
export function example(schemas, s, depth = 0) {
  const of = resolve(schemas, s);
  if (of.default !== undefined && encode(of.default) !== "{}") return structuredClone(of.default);
  if (of.enum) return of.enum[0];
  if (of.properties && depth < 8) {
    return Object.fromEntries((of.required ?? []).map(name => [name, example(schemas, of.properties[name], depth + 1)]));
  }
  switch (of.type) {
    case "array": return (of.minItems ?? 0) > 0 || depth < 8 && resolve(schemas, of.items).required ? [example(schemas, of.items, depth + 1)] : [];
    case "integer": case "number": return Math.max(Number(of.minimum ?? 0), 0);
    case "boolean": return false;
    case "string": return "";
  }
  return {};
}
