// An object as text: with the owner of each field beside it, and an editor whose errors come from the server.
import {own, send, state, withQuery, words} from "./api.js";
import {age, debounce, fill, h, moment, toast} from "./dom.js";
import {diff, mergePatch, same, short} from "./diff.js";
import {managers, ownersOf} from "./fields.js";
import {dotted, fieldPath, lineOf, paths, toText, write} from "./yaml.js";

const asYAML = "application/yaml";

// A Document is the tab with the text of an object.
export class Document {
  constructor(view) {
    this.view = view;
    this.node = h("div", {class: "document"});
    this.check = debounce(() => this.validate(), 350);
    this.read();
  }

  // secret reports whether values are hidden.
  get secret() {
    return this.view.k.title === "secrets" && !this.revealed;
  }

  // visible returns the object as it is shown: without the owners of fields, which have their own place.
  visible(o = this.view.object) {
    const {managedFields, ...metadata} = o.metadata;
    return {apiVersion: o.apiVersion, kind: o.kind, ...o, metadata};
  }

  // read shows the text with the owners of its fields.
  read() {
    this.editing = null;
    const o = this.visible();
    const all = managers(this.view.object);
    const lines = write(o).map(l => ({...l, owners: l.leaf ? ownersOf(all, this.view.object, l.path, true) : []}));
    let last = "";
    fill(this.node,
      h("p", {class: "tools"}, h("span", {class: "quiet"}, `${all.length} field managers`), h("span", {class: "grow"}),
        this.view.k.title === "secrets" && h("button", {click: () => ((this.revealed = !this.revealed), this.read())}, this.revealed ? "Hide the values" : "Show the values"),
        h("button", {click: () => this.view.edit(), disabled: Boolean(state.at)}, "Edit")),
      h("div", {class: "scroll"}, h("table", {class: "lines"}, h("thead", {class: "unseen"}, h("tr", null, h("th", null, "Owner"), h("th", null, "Line"))), h("tbody", null, lines.map(l => {
        const names = l.owners.map(m => m.manager + (m.subresource ? "/" + m.subresource : "")).join(", ");
        const words = l.owners.map(m => `${m.manager} (${m.operation}${m.subresource ? " of " + m.subresource : ""}, ${m.time ? moment(m.time) : "unknown time"})`).join("\n");
        const first = names !== last;
        if (l.leaf) last = names;
        return h("tr", null, h("td", {class: "owner", title: words}, names && first ? [names, " ", h("small", null, l.owners[0].time && age(l.owners[0].time))] : ""),
          h("td", null, coloured(this.secret && confidential(l.path) ? hide(l) : l.text)));
      })))));
  }

  // arrived takes a change of the object from the server.
  arrived() {
    if (!this.editing) return this.read();
    this.newer.hidden = this.view.object.metadata.resourceVersion === this.editing.object.metadata.resourceVersion;
  }

  // edit shows the editor, with the object as it is, or with another state of it.
  edit(from = this.visible()) {
    this.revealed = true;
    const {status, ...text} = from;
    const base = this.visible();
    this.editing = {object: base};
    this.area = h("textarea", {spellcheck: "false", autocapitalize: "off", "aria-label": "YAML of the object", wrap: "off", value: toText(text), input: () => this.typed(), scroll: () => this.scrolled(), keydown: e => this.key(e)});
    this.shade = h("pre", {"aria-hidden": "true"});
    this.gutter = h("div", {class: "gutter", "aria-hidden": "true"});
    this.errors = h("ul", {class: "errors"});
    this.newer = h("p", {class: "note", hidden: true}, "The object has changed since. ", h("button", {click: () => this.conflict()}, "Compare"));
    this.save = h("button", {class: "main", click: () => this.store()}, "Save");
    fill(this.node,
      h("p", {class: "tools"}, this.save, h("button", {click: () => this.read()}, "Cancel"), h("span", {class: "quiet"}, "The server checks the text as you type (dry run).")),
      this.newer, h("div", {class: "editor"}, this.gutter, h("div", {class: "sheet"}, this.shade, this.area)), h("div", {role: "status"}, this.errors));
    this.problems = new Map();
    this.typed();
    this.area.setSelectionRange(0, 0);
    this.area.focus();
  }

  key(e) {
    if (e.key === "Escape") this.read();
    if (e.key === "Tab" && !e.shiftKey) {
      e.preventDefault();
      this.area.setRangeText("  ", this.area.selectionStart, this.area.selectionEnd, "end");
      this.typed();
    }
    if (e.key === "s" && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      this.store();
    }
  }

  typed() {
    this.paint();
    this.check();
  }

  paint() {
    const lines = this.area.value.split("\n");
    fill(this.shade, lines.map((l, i) => [h("span", {class: this.problems.has(i) && "wrong"}, coloured(l)), "\n"]));
    fill(this.gutter, lines.map((_, i) => h("div", {class: this.problems.has(i) && "wrong", title: this.problems.get(i)?.join("\n")}, String(i + 1))));
    this.scrolled();
  }

  scrolled() {
    this.shade.style.transform = `translate(${-this.area.scrollLeft}px, ${-this.area.scrollTop}px)`;
    this.gutter.firstChild && (this.gutter.style.transform = `translateY(${-this.area.scrollTop}px)`);
  }

  path(parameters) {
    return withQuery(this.view.path, {fieldValidation: "Strict", fieldManager: "anykind-console", ...parameters});
  }

  // validate sends the text as a dry run.
  async validate() {
    const editing = this.editing;
    if (!editing) return;
    const sent = this.area.value;
    try {
      const {text, warnings} = await words(this.path({dryRun: "All"}), {method: "PUT", body: withoutVersion(sent), type: asYAML, signal: this.view.signal});
      if (this.editing !== editing) return;
      editing.result = JSON.parse(text);
      this.show(warnings.map(w => ({message: w, warning: true})));
    } catch (e) {
      if (this.editing === editing && !this.view.signal.aborted) this.show(problems(e));
    }
  }

  // show places errors at their lines.
  show(all) {
    const at = paths(this.area.value);
    this.problems = new Map();
    for (const p of all) {
      p.line ??= p.field ? lineOf(at, fieldPath(p.field)) : null;
      if (p.line != null) this.problems.set(p.line, [...(this.problems.get(p.line) ?? []), p.message]);
    }
    this.save.disabled = all.some(p => !p.warning);
    fill(this.errors, all.map(p => h("li", {class: p.warning ? "wait" : "bad"}, p.line != null && h("button", {class: "link", click: () => this.to(p.line)}, "line " + (p.line + 1)), " ", p.message)));
    this.paint();
  }

  // to moves the cursor to a line.
  to(line) {
    const start = this.area.value.split("\n").slice(0, line).join("\n").length + (line ? 1 : 0);
    this.area.focus();
    this.area.setSelectionRange(start, start);
    this.area.scrollTop = Math.max(0, line * 18 - 100);
  }

  async store() {
    try {
      const {warnings} = await words(this.path(), {method: "PUT", body: this.area.value, type: asYAML});
      warnings.forEach(w => toast(w));
      toast("Saved");
      this.read();
    } catch (e) {
      if (e.code === 409) return this.conflict();
      this.show(problems(e));
      toast(e.message, true);
    }
  }

  // conflict shows the fields that others changed meanwhile beside those of the editor, and offers to keep both.
  async conflict() {
    const base = this.editing.object;
    const theirs = JSON.parse((await words(this.view.path)).text);
    await this.validate();
    const mine = this.editing.result;
    if (!mine) return toast("The text has errors. Correct them first.", true);
    const writable = ({status, ...o}) => o;
    const strip = o => ({...writable(o), metadata: {...o.metadata, resourceVersion: undefined, managedFields: undefined, generation: undefined}});
    const key = d => dotted(d.path);
    const left = new Map(diff(strip(base), strip(theirs)).map(d => [key(d), d]));
    const right = new Map(diff(strip(base), strip(mine)).map(d => [key(d), d]));
    const rows = [...new Set([...left.keys(), ...right.keys()])].map(k => {
      const l = left.get(k), r = right.get(k);
      return h("tr", {class: l && r && !same(l.after, r.after) && "clash"}, h("td", null, h("code", null, k)), h("td", null, short((l ?? r).before)), h("td", null, l ? short(l.after) : ""), h("td", null, r ? short(r.after) : ""));
    });
    const apply = async () => {
      try {
        await send("PATCH", this.path(), mergePatch(strip(base), strip(mine)), "application/merge-patch+json");
        toast("Saved over the newest state");
        this.read();
      } catch (e) {
        toast(e.message, true);
      }
    };
    fill(this.newer, h("b", null, "The object has changed since you began."), h("div", {class: "scroll"}, h("table", null, h("thead", null, h("tr", null, ["Field", "Before", "Theirs", "Yours"].map(t => h("th", null, t)))), h("tbody", null, rows))),
      h("p", {class: "buttons"}, h("button", {click: () => this.edit(this.visible(theirs))}, "Begin again with theirs"), h("button", {class: "main", click: apply}, "Take theirs, and yours where both changed")));
    this.newer.hidden = false;
  }
}

// withoutVersion empties the resourceVersion of a text: a dry run asks about the content, not about conflicts.
const withoutVersion = text => text.replace(/^( {2}resourceVersion:) .*$/m, '$1 ""');

// problems returns the errors of an answer with their fields or lines.
function problems(e) {
  const line = /yaml: line (\d+):/.exec(e.message);
  if (line) return [{message: e.message.replace(/\s*\([0-9a-f]{20,} \.\.\.\)/, ""), line: line[1] - 1}];
  const strict = [...(e.message ?? "").matchAll(/(unknown|duplicate) field "((?:[^"\\]|\\.)*)"/g)];
  if (strict.length) return strict.map(m => ({message: m[0], field: m[2]}));
  if (e.causes?.length) return e.causes.map(c => ({message: `${c.field}: ${c.message}`, field: c.field}));
  return [{message: e.message}];
}

// confidential reports whether a field of a Secret has its values.
export const confidential = path => (path.length > 1 && ["data", "stringData"].includes(path[0])) || path.includes("kubectl.kubernetes.io/last-applied-configuration");

const hide = l => (/: \S/.test(l.text) ? l.text.replace(/: .*/, ": ••••••••") : l.text.replace(/\S.*/, "••••••••"));

const token = /^(\s*(?:- )*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s:#"'-][^:#]*?|-?[^\s:#"'-][^:#]*?)(:)(?=\s|$)(.*)$/;

// coloured returns a line of YAML with its key, its value and its comment in spans.
function coloured(line) {
  const m = token.exec(line);
  if (!m) return /^\s*#/.test(line) ? h("span", {class: "comment"}, line) : line;
  const value = m[4];
  const kind = /^\s*(-?\d[\d.]*|true|false|null)\s*$/.test(value) ? "number" : /^\s*[|>{[]/.test(value) ? "" : "string";
  return [m[1], h("span", {class: "key"}, m[2]), m[3], h("span", {class: kind}, value)];
}
