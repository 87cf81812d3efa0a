// Two versions of a kind side by side.
import {encode} from "./api.js";
import {h, table} from "./dom.js";
import {elements, resolve, typeName} from "./schema.js";

const deepest = 12;

// beside shows the fields of two versions: {version, schemas, root} each. Unless all, only those that differ.
export function beside(a, b, all) {
  const [left, right] = [flat(a), flat(b)];
  const paths = [...new Set([...left.keys(), ...right.keys()])];
  const differ = paths.filter(p => !same(left.get(p), right.get(p)));
  const shown = all ? paths : differ.filter(p => !below(p, differ, left, right));
  return [
    h("p", {class: "quiet"}, `${differ.length} of ${paths.length} fields differ.`),
    shown.length > 0 && table(["Field", a.version, b.version], shown.map(p => [h("code", {class: "key"}, p), cell(left.get(p), right.get(p)), cell(right.get(p), left.get(p))])),
  ];
}

// below reports whether a field is missing in one version together with a field above it.
function below(path, differ, left, right) {
  const above = path.slice(0, Math.max(path.lastIndexOf("."), 0)).replace(/\[\]$/, "");
  return differ.includes(above) && left.has(above) !== right.has(above);
}

const same = (a, b) => a && b && encode(a) === encode(b);

function cell(f, other) {
  if (!f) return h("span", {class: "badge bad"}, "not there");
  const marked = (words, differs) => words && h(differs ? "mark" : "span", null, words);
  return [marked(f.type, other && other.type !== f.type), f.required && [" ", marked("required", other && !other.required)], f.limits.map(l => h("p", {class: "quiet"}, marked(l, other && !other.limits.includes(l))))];
}

const limits = ["default", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "pattern", "multipleOf", "nullable"];

// flat returns all fields of a schema by path: {type, required, limits}.
function flat({schemas, root}) {
  const out = new Map();
  const walk = (s, path, within) => {
    const of = resolve(schemas, s);
    const list = of.items ? "[]" : typeof of.additionalProperties === "object" ? ".*" : "";
    const from = elements(schemas, of);
    for (const [name, p] of Object.entries(from.properties ?? {})) {
      if (!path && ["apiVersion", "kind", "metadata"].includes(name)) continue; // every kind has them
      const r = resolve(schemas, p), at = (path ? path + list + "." : "") + name;
      out.set(at, {
        type: typeName(schemas, r), required: Boolean(from.required?.includes(name)),
        limits: [...limits.filter(n => r[n] !== undefined).map(n => `${n} ${encode(r[n])}`), ...(r["x-kubernetes-validations"] ?? []).map(x => "rule " + x.rule)],
      });
      const inner = elements(schemas, r).name ?? r.name;
      if (within.length < deepest && !(inner && within.includes(inner))) walk(p, at, [...within, inner]);
    }
  };
  walk(root, "", []);
  return out;
}
