// An editor for YAML whose errors come from the server, at their lines, as one types.
import {decode, json, withQuery, words} from "./api.js";
import {debounce, fill, h, toast} from "./dom.js";
import {fieldPath, lineOf, paths} from "./yaml.js";

const asYAML = "application/yaml";
const lineHeight = 18; // pixels, as in style.css

// An Editor has a text. ask returns {warnings, problems, result} for the text: of dryRun, or of another check. save
// stores the text, and returns the answer with its warnings; cancel leaves the editor.
export class Editor {
  problems = new Map(); // line → messages
  result = null; // the object of the last dry run without an error

  constructor({text, ask, save, cancel, signal, hint = "The server checks the text as you type (dry run)."}) {
    Object.assign(this, {ask, store: save, signal});
    this.cancel = () => (this.area.value === text || confirm("Discard your changes?")) && cancel();
    this.area = h("textarea", {spellcheck: "false", autocapitalize: "off", "aria-label": "YAML of the object", wrap: "off", value: text, input: () => this.typed(), scroll: () => this.scrolled(), keydown: e => this.key(e)});
    this.shade = h("pre", {"aria-hidden": "true"});
    this.gutter = h("div", {class: "gutter", "aria-hidden": "true"});
    this.errors = h("ul", {class: "errors"});
    this.note = h("div", {class: "note", hidden: true});
    this.save = h("button", {class: "main", click: () => this.finish()}, "Save");
    this.node = h("div", null,
      h("p", {class: "tools"}, this.save, h("button", {click: () => this.cancel()}, "Cancel"), h("span", {class: "quiet"}, hint)),
      this.note, h("div", {class: "editor"}, this.gutter, h("div", {class: "sheet"}, this.shade, this.area)), h("div", {role: "status"}, this.errors));
    this.validate = debounce(() => this.check(), 350);
    this.typed();
  }

  // focus puts the cursor at the beginning.
  focus() {
    this.area.setSelectionRange(0, 0);
    this.area.focus();
  }

  key(e) {
    if (e.key === "Escape") this.cancel();
    if (e.key === "Tab" && !e.shiftKey) {
      e.preventDefault();
      this.area.setRangeText("  ", this.area.selectionStart, this.area.selectionEnd, "end");
      this.typed();
    }
    if (e.key === "s" && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      this.finish();
    }
  }

  typed() {
    this.paint();
    this.validate();
  }

  paint() {
    const lines = this.area.value.split("\n");
    fill(this.shade, lines.map((l, i) => [h("span", {class: this.problems.has(i) && "wrong"}, coloured(l)), "\n"]));
    fill(this.gutter, lines.map((_, i) => h("div", {class: this.problems.has(i) && "wrong", title: this.problems.get(i)?.join("\n")}, String(i + 1))));
    this.scrolled();
  }

  scrolled() {
    this.shade.style.transform = `translate(${-this.area.scrollLeft}px, ${-this.area.scrollTop}px)`;
    this.gutter.style.transform = `translateY(${-this.area.scrollTop}px)`;
  }

  // check asks about the text, and shows the answer.
  async check() {
    const text = this.area.value;
    let all;
    try {
      const {warnings = [], problems = [], result = null} = await this.ask(text);
      if (this.area.value !== text) return;
      this.result = result;
      all = [...problems, ...warnings.map(w => ({message: w, warning: true}))];
    } catch (e) {
      if (this.signal.aborted || this.area.value !== text) return;
      this.result = null;
      all = problemsOf(e);
    }
    this.show(all);
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
    this.area.scrollTop = Math.max(0, (line - 5) * lineHeight);
  }

  // finish stores the text, or shows the errors of the server.
  async finish() {
    if (this.saving || this.save.disabled || this.save.hidden) return;
    this.saving = true;
    try {
      const {warnings} = await this.store(this.area.value, asYAML);
      warnings.forEach(w => toast(w));
    } catch (e) {
      this.show(problemsOf(e));
      toast(e.message, true);
    }
    this.saving = false;
  }
}

// writable returns an object without the fields that this path does not write: status has a path of its own for most kinds.
export function writable(k, {status, ...o}) {
  const {managedFields, ...metadata} = o.metadata;
  return {...o, metadata, ...(k.subresources.includes("status") || status === undefined ? {} : {status})};
}

// writing returns a path with the parameters of all writes of the pages.
export const writing = (path, parameters) => withQuery(path, {fieldValidation: "Strict", fieldManager: "anykind-console", ...parameters});

// dryRun asks the server about a text.
export async function dryRun(method, path, body, signal, type = asYAML) {
  const {text, warnings} = await words(path, {method, body, type, signal});
  return {warnings, result: decode(text)};
}

// dryUpdate asks about an update of the newest state of an object: a dry run checks the content, and not whether the
// object has changed. bodyFor returns the body for a resourceVersion.
export async function dryUpdate(view, path, bodyFor, type = asYAML) {
  for (let again = 3, version = view.object.metadata.resourceVersion; ; again--) {
    try {
      return await dryRun("PUT", path, bodyFor(version), view.signal, type);
    } catch (e) {
      if (e.code !== 409 || !again) throw e;
      version = (await json(view.path, {signal: view.signal})).metadata.resourceVersion;
    }
  }
}

// problemsOf returns the errors of an answer with their fields or lines.
export function problemsOf(e) {
  const line = /yaml: line (\d+):/.exec(e.message);
  if (line) return [{message: e.message.replace(/\s*\([0-9a-f]{20,} \.\.\.\)/, ""), line: line[1] - 1}];
  const strict = [...(e.message ?? "").matchAll(/(unknown|duplicate) field "((?:[^"\\]|\\.)*)"/g)];
  if (strict.length) return strict.map(m => ({message: m[0], field: m[2]}));
  if (e.causes?.length) return e.causes.map(c => ({message: `${c.field}: ${c.message}`, field: c.field}));
  return [{message: e.message}];
}

const token = /^(\s*(?:- )*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s:#"'-][^:#]*?|-?[^\s:#"'-][^:#]*?)(:)(?=\s|$)(.*)$/;

// coloured returns a line of YAML with its key, its value and its comment in spans.
export function coloured(line) {
  const m = token.exec(line);
  if (!m) return /^\s*#/.test(line) ? h("span", {class: "comment"}, line) : line;
  const value = m[4];
  const kind = /^\s*(-?\d[\d.]*|true|false|null)\s*$/.test(value) ? "number" : /^\s*[|>{[]/.test(value) ? "" : "string";
  return [m[1], h("span", {class: "key"}, m[2]), m[3], h("span", {class: kind}, value)];
}
