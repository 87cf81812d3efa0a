// The documentation of a kind, from its schema.
import {has} from "./access.js";
import {encode, find, json, kindOf, listed, pathOf} from "./api.js";
import {debounce, fill, h, table} from "./dom.js";
import {short} from "./diff.js";
import {link, listOf} from "./route.js";
import {resolve, schemaOf, typeName} from "./schema.js";

// kind shows the documentation of a kind.
export async function kind(at, signal) {
  const k = await find(at, signal);
  document.title = `${k.kind}: documentation · anykind console`;
  const version = k.versions.includes(at.query.get("version")) ? at.query.get("version") : k.version;
  const [{schemas, root}, admission] = await Promise.all([schemaOf(k, version, signal), admitting(k, signal)]);
  const fields = h("ul", {class: "fields"});
  const draw = debounce(words => fill(fields, words ? found(schemas, root, words) : children(schemas, root, 0)), 80);
  fill(fields, root ? children(schemas, root, 0) : h("li", {class: "quiet"}, "The server publishes no schema of this kind."));
  return h("section", {class: "about"},
    h("header", {class: "top"}, h("h1", null, k.kind, " ", h("small", null, k.group || "core")), h("span", {class: "grow"}),
      k.versions.map(v => h("a", {class: "button", "aria-current": v === version ? "true" : null, href: link(["kind", ...at.parts], {version: v})}, v)), listed(k) && h("a", {class: "button", href: listOf(k)}, "Objects")),
    h("div", {class: "pad"},
      root?.description && h("p", {class: "prose"}, root.description),
      h("dl", {class: "facts"}, h("dt", null, "Names"), h("dd", null, [k.resource, k.singular, ...k.short].join(", ")), h("dt", null, "Scope"), h("dd", null, k.namespaced ? "in namespaces" : "cluster"),
        h("dt", null, "Verbs"), h("dd", null, k.verbs.join(", ")), k.subresources.length > 0 && [h("dt", null, "Subresources"), h("dd", null, k.subresources.join(", "))], h("dt", null, "Path"), h("dd", null, h("code", null, pathOf(k, k.namespaced ? "NAMESPACE" : "", "NAME", version)))),
      admission.length > 0 && [h("h2", null, "Admission, in order"), table(["Step", "Configuration", "Rule", "If it fails"], admission)],
      h("h2", null, "Fields"), h("p", null, h("input", {type: "search", placeholder: "Filter fields  /", "aria-label": "Filter fields", "data-filter": "", input: e => draw(e.target.value.trim().toLowerCase())})),
      fields));
}

// children returns the fields of a schema, each open on demand.
function children(schemas, s, depth) {
  const of = resolve(schemas, s);
  const inner = resolve(schemas, of.items ?? (typeof of.additionalProperties === "object" ? of.additionalProperties : of));
  const from = inner.properties ? inner : of;
  const known = depth === 0 ? ["apiVersion", "kind"] : []; // every kind has them
  return Object.entries(from.properties ?? {}).filter(([name]) => !known.includes(name)).map(([name, p]) => field(schemas, name, p, from.required?.includes(name), depth));
}

function field(schemas, name, p, required, depth) {
  const s = resolve(schemas, p);
  const below = h("ul", {class: "fields"});
  const inner = resolve(schemas, s.items ?? (typeof s.additionalProperties === "object" ? s.additionalProperties : s));
  const deeper = Boolean(inner.properties) && depth < 25;
  const title = [h("code", {class: "key"}, name), " ", h("span", {class: "type"}, typeName(schemas, s)), required && h("span", {class: "badge bad"}, "required"), " ", h("span", {class: "quiet"}, bounds(s))];
  const words = [s.description && h("p", {class: "prose"}, s.description), rules(s)];
  if (!deeper) return h("li", null, h("div", {class: "leaf"}, title), words);
  return h("li", null, h("details", {toggle: e => e.target.open && !below.childNodes.length && fill(below, children(schemas, s, depth + 1))}, h("summary", null, title), words, below));
}

// bounds returns the default, the values and the limits of a schema.
function bounds(s) {
  const out = [];
  const put = (words, v) => v !== undefined && out.push(words + " " + short(v, 80));
  put("default", s.default);
  if (s.enum) out.push("one of " + s.enum.map(v => encode(v)).join(", "));
  put(s.exclusiveMinimum ? ">" : "≥", s.minimum);
  put(s.exclusiveMaximum ? "<" : "≤", s.maximum);
  put("length ≥", s.minLength);
  put("length ≤", s.maxLength);
  put("items ≥", s.minItems);
  put("items ≤", s.maxItems);
  put("pattern", s.pattern);
  put("multiple of", s.multipleOf);
  if (s.nullable) out.push("nullable");
  if (s["x-kubernetes-list-map-keys"]) out.push("keys " + s["x-kubernetes-list-map-keys"].join(", "));
  if (s["x-kubernetes-list-type"] === "set") out.push("set");
  return out.join(" · ");
}

// rules returns the validation rules of a schema with their messages.
const rules = s => (s["x-kubernetes-validations"] ?? []).map(r => h("p", {class: "rule"}, h("code", null, r.rule), r.message && h("span", null, " ", r.message), r.messageExpression && h("span", {class: "quiet"}, " ", r.messageExpression)));

// found returns the fields with the words in their name or description, by path.
function found(schemas, root, words) {
  const out = [];
  const seen = new Set();
  const walk = (s, path, depth) => {
    const of = resolve(schemas, s);
    const from = resolve(schemas, of.items ?? (typeof of.additionalProperties === "object" ? of.additionalProperties : of));
    for (const [name, p] of Object.entries(from.properties ?? {})) {
      if (out.length >= 100) return;
      const r = resolve(schemas, p), at = [...path, name];
      if (name.toLowerCase().includes(words) || r.description?.toLowerCase().includes(words)) {
        out.push(h("li", null, h("code", {class: "key"}, at.join(".")), " ", h("span", {class: "type"}, typeName(schemas, r)), " ", h("span", {class: "quiet"}, bounds(r)), r.description && h("p", {class: "prose"}, short(r.description, 300)), rules(r)));
      }
      const inner = r.name ?? at.join(".");
      if (depth < 12 && !seen.has(inner)) {
        seen.add(inner);
        walk(p, at, depth + 1);
      }
    }
  };
  walk(root, [], 0);
  return out.length ? out : h("li", {class: "quiet"}, "No field has these words.");
}

const steps = [
  ["mutating policy", "mutatingadmissionpolicies", "matchConstraints"], ["mutating webhook", "mutatingwebhookconfigurations", null],
  ["validating policy", "validatingadmissionpolicies", "matchConstraints"], ["validating webhook", "validatingwebhookconfigurations", null],
];

// admitting returns the policies and webhooks whose rules match the kind.
async function admitting(k, signal) {
  const rows = [];
  for (const [step, resource, constraints] of steps) {
    const of = kindOf("admissionregistration.k8s.io", resource);
    if (!of) continue;
    try {
      const {items} = await json(pathOf(of), {signal});
      for (const o of items) {
        const all = constraints ? [{name: o.metadata.name, failurePolicy: o.spec.failurePolicy, rules: o.spec[constraints]?.resourceRules ?? [], selects: o.spec[constraints]}] : (o.webhooks ?? []).map(w => ({...w, selects: w}));
        for (const w of all) {
          const r = (w.rules ?? []).find(r => has(r.apiGroups, k.group) && r.resources?.some(name => name === "*" || name === "*/*" || name === k.resource));
          if (r) rows.push([step, o.metadata.name === w.name ? w.name : `${o.metadata.name}: ${w.name}`, `${r.operations.join(", ")}${selects(w.selects)}`, w.failurePolicy ?? "Fail"]);
        }
      }
    } catch (e) {
      if (!e.code) throw e;
      rows.push([step, `cannot be read: ${e.message}`, "", ""]);
    }
  }
  return rows;
}

const selects = s => (["namespaceSelector", "objectSelector"].some(n => Object.keys(s?.[n] ?? {}).length) ? ", of selected objects" : "");
