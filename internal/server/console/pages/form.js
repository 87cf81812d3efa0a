// An object as a form, from the schema of its kind. It shows the fields that are set; others are added one by one.
import {decode, encode, words} from "./api.js";
import {debounce, fill, h, toast} from "./dom.js";
import {dryUpdate, problemsOf, writable, writing} from "./editor.js";
import {example, resolve, schemaOf, typeName} from "./schema.js";
import {dotted, fieldPath} from "./yaml.js";

const fixed = ["apiVersion", "kind", "status"]; // not fields of a form
const ofMetadata = ["labels", "annotations", "finalizers", "ownerReferences"]; // of metadata, those that users write

// form returns the tab with the form of an object.
export async function form(view) {
  const {schemas, root} = await schemaOf(view.k, view.k.version, view.signal);
  if (!root) return h("p", {class: "quiet pad"}, "The server publishes no schema of this kind. Edit the YAML.");
  return new Form(view, schemas, root).node;
}

// numberOf returns the number of an input; null for an empty one.
function numberOf(text) {
  if (text === "") return null;
  return Number.isInteger(+text) && !Number.isSafeInteger(+text) && /^-?\d+$/.test(text) ? BigInt(text) : +text;
}

class Form {
  errors = new Map(); // dotted path → messages

  constructor(view, schemas, root) {
    Object.assign(this, {view, schemas, root});
    this.base = view.object;
    this.draft = structuredClone(writable(view.k, view.object));
    this.save = h("button", {class: "main", disabled: true, click: () => this.store()}, "Save");
    this.other = h("ul", {class: "errors"});
    this.fields = h("div", {class: "form"});
    this.node = h("div", null, h("p", {class: "tools"}, this.save, h("button", {click: () => view.open("form")}, "Start again"),
      h("span", {class: "quiet"}, "The server checks the form as you type (dry run).")), h("div", {role: "status"}, this.other), this.fields);
    this.validate = debounce(() => this.check(), 350);
    this.draw();
  }

  draw() {
    fill(this.fields, Object.entries(resolve(this.schemas, this.root).properties ?? {}).filter(([name]) => !fixed.includes(name) && name in this.draft).map(([name, s]) => this.field(this.draft, name, s, [name])),
      this.adder(this.draft, this.root, [], name => !fixed.includes(name) && name !== "metadata"));
  }

  // field shows a field of a map or list.
  field(on, name, schema, path, removable = true) {
    const s = resolve(this.schemas, schema);
    const value = on[name];
    const label = typeof name === "number" ? `${name + 1}` : name;
    const remove = removable && path.length > 1 && h("button", {class: "remove", "aria-label": `Remove ${dotted(path)}`, title: "Remove", click: () => (Array.isArray(on) ? on.splice(name, 1) : delete on[name], this.changed(true))}, "×");
    const error = h("p", {class: "bad", "data-path": dotted(path)}, this.errors.get(dotted(path))?.join("; "));
    if (value !== null && typeof value === "object") {
      return h("div", {class: "group"}, h("details", {open: path.length < 4}, h("summary", {title: s.description}, h("b", null, label), " ", h("span", {class: "quiet"}, typeName(this.schemas, s))), error, h("div", {class: "nested"}, this.below(value, s, path))), remove);
    }
    const id = "field-" + dotted(path);
    return h("div", {class: "line"}, h("label", {for: id, title: s.description}, label), this.input(on, name, s, id), remove, error);
  }

  // below shows the fields of a map, or the elements of a list.
  below(value, s, path) {
    if (Array.isArray(value)) {
      return [value.map((_, i) => this.field(value, i, s.items, [...path, i])), h("button", {click: () => (value.push(example(this.schemas, s.items)), this.changed(true))}, "Add an element")];
    }
    const known = s.properties ?? {};
    const listed = path.join() === "metadata" ? name => ofMetadata.includes(name) : () => true;
    const free = typeof s.additionalProperties === "object" ? s.additionalProperties : {};
    return [Object.keys(value).filter(listed).map(name => this.field(value, name, known[name] ?? free, [...path, name])), this.adder(value, s, path, listed)];
  }

  // adder offers the fields that are not set.
  adder(value, schema, path, listed) {
    const s = resolve(this.schemas, schema);
    const unset = Object.keys(s.properties ?? {}).filter(name => !(name in value) && listed(name));
    const put = (name, of) => ((value[name] = example(this.schemas, of)), this.changed(true));
    return [
      unset.length > 0 && h("select", {"aria-label": `Add a field of ${dotted(path) || "the object"}`, change: e => e.target.value && put(e.target.value, s.properties[e.target.value])}, h("option", {value: ""}, "Add a field…"), unset.sort().map(name => h("option", {value: name}, name))),
      typeof s.additionalProperties === "object" && h("input", {placeholder: "Add a key, Enter", "aria-label": `Add a key of ${dotted(path)}`, keydown: e => e.key === "Enter" && e.target.value.trim() && (e.preventDefault(), put(e.target.value.trim(), s.additionalProperties))}),
    ];
  }

  // input returns the input for a value.
  input(on, name, s, id) {
    const set = value => ((on[name] = value), this.changed(false));
    const value = on[name];
    if (s.type === "boolean" || typeof value === "boolean") return h("input", {id, type: "checkbox", checked: value === true, change: e => set(e.target.checked)});
    if (s.enum) return h("select", {id, change: e => set(s.enum.find(v => String(v) === e.target.value))}, s.enum.map(v => h("option", {value: v, selected: v === value}, String(v))));
    if (typeof value === "bigint") return h("input", {id, value: String(value), pattern: "-?[0-9]+", input: e => set(/^-?\d+$/.test(e.target.value) ? BigInt(e.target.value) : e.target.value || null)});
    const number = s.type === "integer" || s.type === "number" || (typeof value === "number" && s.type !== "string");
    if (number) return h("input", {id, type: "number", step: s.type === "number" ? "any" : 1, min: s.minimum, max: s.maximum, value: value ?? "", input: e => set(numberOf(e.target.value))});
    if (typeof value === "string" && value.includes("\n")) return h("textarea", {id, rows: 4, value, input: e => set(e.target.value)});
    return h("input", {id, value: value ?? "", maxlength: s.maxLength, input: e => set(e.target.value)});
  }

  // changed asks the server, and draws the form again if it has other fields.
  changed(structure) {
    if (structure) this.draw();
    this.save.disabled = true;
    this.validate();
  }

  path(parameters) {
    return writing(this.view.path, parameters);
  }

  async check() {
    const asked = (this.asked = {});
    let all = [];
    try {
      await dryUpdate(this.view, this.path({dryRun: "All"}), resourceVersion => encode({...this.draft, metadata: {...this.draft.metadata, resourceVersion}}), "application/json");
    } catch (e) {
      if (this.view.signal.aborted) return;
      all = problemsOf(e);
    }
    if (this.asked !== asked) return; // there is a newer question
    this.errors = new Map();
    for (const p of all.filter(p => p.field)) this.errors.set(dotted(fieldPath(p.field)), [...(this.errors.get(dotted(fieldPath(p.field))) ?? []), p.message]);
    const placed = new Set();
    for (const e of this.fields.querySelectorAll("[data-path]")) {
      e.textContent = this.errors.get(e.dataset.path)?.join("; ") ?? "";
      if (e.textContent) placed.add(e.dataset.path);
    }
    fill(this.other, all.filter(p => !p.field || !placed.has(dotted(fieldPath(p.field)))).map(p => h("li", {class: "bad"}, p.message)));
    this.save.disabled = all.length > 0;
  }

  async store() {
    this.save.disabled = true; // one question at a time
    try {
      const {text} = await words(this.path(), {method: "PUT", body: encode(this.draft), type: "application/json"});
      this.view.take(decode(text));
      toast("Saved");
      this.view.open("form");
    } catch (e) {
      if (e.code === 409) return this.view.resume(this.draft, this.base);
      this.save.disabled = false;
      toast(e.message, true);
    }
  }
}
