// The documentation of a kind, from its schema.
import {admitting} from "./admission.js";
import {encode, find, listed, pathOf} from "./api.js";
import {debounce, fill, h} from "./dom.js";
import {short} from "./diff.js";
import {costsOf} from "./review.js";
import {change, link, listOf} from "./route.js";
import {elements, resolve, schemaOf, typeName} from "./schema.js";
import {beside} from "./versions.js";

// kind shows the documentation of a kind.
export async function kind(at, signal) {
  const k = await find(at, signal);
  document.title = `${k.kind}: documentation · anykind console`;
  const version = k.versions.includes(at.query.get("version")) ? at.query.get("version") : k.version;
  const [{schemas, root}, admission] = await Promise.all([schemaOf(k, version, signal), admitting(k, signal)]);
  const fields = h("ul", {class: "fields"}), costs = h("div");
  if (encode(root ?? null).includes("x-kubernetes-validations")) costsOf(k, signal).then(found => fill(costs, found), e => signal.aborted || fill(costs, h("p", {class: "quiet"}, "Costs of rules: ", e.message)));
  const draw = debounce(words => fill(fields, words ? found(schemas, root, words) : children(schemas, root, 0)), 80);
  fill(fields, root ? children(schemas, root, 0) : h("li", {class: "quiet"}, "The server publishes no schema of this kind."));
  return h("section", {class: "about"},
    h("header", {class: "top"}, h("h1", null, k.kind, " ", h("small", null, k.group || "core")), h("span", {class: "grow"}),
      k.versions.map(v => h("a", {class: "button", "aria-current": v === version ? "true" : null, href: link(["kind", ...at.parts], {version: v})}, v)), listed(k) && h("a", {class: "button", href: listOf(k)}, "Objects")),
    h("div", {class: "pad"},
      root?.description && h("p", {class: "prose"}, root.description),
      h("dl", {class: "facts"}, h("dt", null, "Names"), h("dd", null, [k.resource, k.singular, ...k.short].join(", ")), h("dt", null, "Scope"), h("dd", null, k.namespaced ? "in namespaces" : "cluster"),
        h("dt", null, "Verbs"), h("dd", null, k.verbs.join(", ")), k.subresources.length > 0 && [h("dt", null, "Subresources"), h("dd", null, k.subresources.join(", "))], h("dt", null, "Path"), h("dd", null, h("code", null, pathOf(k, k.namespaced ? "NAMESPACE" : "", "NAME", version)))),
      admission, k.versions.length > 1 && versions(k, version, {schemas, root}, at, signal), costs,
      h("h2", null, "Fields"), h("p", null, h("input", {type: "search", placeholder: "Filter fields  /", "aria-label": "Filter fields", "data-filter": "", input: e => draw(e.target.value.trim().toLowerCase())})),
      fields));
}

// versions compares a version with the one of the address.
function versions(k, version, shown, at, signal) {
  const out = h("div"), others = k.versions.filter(v => v !== version);
  const all = h("input", {type: "checkbox", change: () => draw()});
  const choice = h("select", {"aria-label": "Another version", change: () => (change({with: choice.value}), draw())}, h("option", {value: ""}, "no other version"), others.map(v => h("option", {value: v, selected: v === at.query.get("with")}, v)));
  const draw = async () => {
    const other = choice.value;
    if (!other) return fill(out);
    try {
      const s = await schemaOf(k, other, signal);
      if (choice.value === other) fill(out, beside({version, ...shown}, {version: other, ...s}, all.checked));
    } catch (e) {
      if (!signal.aborted) fill(out, h("p", {class: "bad"}, e.message));
    }
  };
  draw();
  return [h("h2", null, "Versions"), h("p", {class: "tools"}, version, " beside ", choice, h("label", null, all, " all fields")), out];
}

// children returns the fields of a schema, each open on demand.
function children(schemas, s, depth) {
  const of = resolve(schemas, s);
  const inner = elements(schemas, of);
  const from = inner.properties ? inner : of;
  const known = depth === 0 ? ["apiVersion", "kind"] : []; // every kind has them
  return Object.entries(from.properties ?? {}).filter(([name]) => !known.includes(name)).map(([name, p]) => field(schemas, name, p, from.required?.includes(name), depth));
}

function field(schemas, name, p, required, depth) {
  const s = resolve(schemas, p);
  const below = h("ul", {class: "fields"});
  const inner = elements(schemas, s);
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
    const from = elements(schemas, of);
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
