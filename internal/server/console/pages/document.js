// An object as text: with the owner of each field beside it, and an editor.
import {decode, encode, json, own, state, withQuery, words} from "./api.js";
import {age, counted, debounce, fill, h, moment, toast} from "./dom.js";
import {diff, keyed, merge, same, short} from "./diff.js";
import {coloured, dryUpdate, Editor, problemsOf, writable, writing} from "./editor.js";
import {managers, ownersOf} from "./fields.js";
import {dotted, toText, write} from "./yaml.js";

// clear shows the values of a Secret as text.
function clear(data) {
  const decoder = new TextDecoder("utf-8", {fatal: true});
  const text = v => {
    const bytes = Uint8Array.from(atob(v), c => c.charCodeAt(0));
    try {
      return h("code", null, decoder.decode(bytes));
    } catch {
      return h("span", {class: "quiet"}, `${counted(bytes.length, "byte")}, no text`);
    }
  };
  return h("dl", {class: "pairs clear"}, Object.entries(data).map(([name, v]) => [h("dt", null, name), h("dd", null, text(v))]));
}

// A Document is the tab with the text of an object.
export class Document {
  changes = new Map(); // path → the last change of the field, from the history

  constructor(view) {
    this.view = view;
    this.node = h("div", {class: "document"});
    this.read();
    this.again = debounce(() => this.remember(), 1000);
  }

  // show returns the element of the tab.
  show() {
    if (own()) this.remember();
    return this.node;
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

  // remember reads the last change of each field from the history of anykind.
  async remember() {
    try {
      const {items} = await json(withQuery(this.view.path, {history: "true", limit: 200}), {signal: this.view.signal});
      this.changes.clear();
      for (const c of items) {
        if (state.at && c.time > state.at) break;
        if (c.type === "ADDED" || c.type === "DELETED") this.changes.clear(); // another object of this name
        if (c.before && c.object) for (const d of diff(c.before, c.object)) this.changes.set(dotted(d.path), c);
      }
      if (!this.editor) this.read();
    } catch (e) {
      if (!e.code && !this.view.signal.aborted) throw e; // else there is no history
    }
  }

  // changed returns the last change of a field, or of a field that it is in.
  changed(path) {
    const keys = keyed(this.view.object, path);
    for (let n = keys.length; n > 0; n--) {
      const c = this.changes.get(dotted(keys.slice(0, n)));
      if (c) return c;
    }
    return null;
  }

  // read shows the text with the owners of its fields.
  read() {
    this.editor = null;
    const o = this.visible();
    const all = managers(this.view.object);
    const lines = write(this.secret ? masked(o) : o).map(l => ({...l, owners: l.leaf ? ownersOf(all, this.view.object, l.path, true) : []}));
    let last = "";
    fill(this.node,
      h("p", {class: "tools"}, h("span", {class: "quiet"}, `${all.length} field managers. `, own() ? "Beside a line: its manager, and its last change." : "Beside a line: its manager, and the last write of the manager."), h("span", {class: "grow"}),
        this.view.k.title === "secrets" && h("button", {click: () => ((this.revealed = !this.revealed), this.read())}, this.revealed ? "Hide the values" : "Show the values")),
      this.view.k.title === "secrets" && this.revealed && clear(this.view.object.data ?? {}),
      h("div", {class: "scroll"}, h("table", {class: "lines"}, h("thead", {class: "unseen"}, h("tr", null, h("th", null, "Owner"), h("th", null, "Line"))), h("tbody", null, lines.map(l => {
        const change = l.leaf && l.owners.length > 0 && this.changed(l.path);
        const when = change?.time ?? l.owners[0]?.time;
        const names = l.owners.map(m => m.manager + (m.subresource ? "/" + m.subresource : "")).join(", ");
        const words = [...l.owners.map(m => `${m.manager} (${m.operation}${m.subresource ? " of " + m.subresource : ""}, ${m.time ? moment(m.time) : "unknown time"})`), change && `changed by ${change.user} at ${moment(change.time)}`].filter(Boolean).join("\n");
        const group = names + (change?.revision ?? "");
        const first = group !== last;
        if (l.leaf) last = group;
        return h("tr", null, h("td", {class: "owner", title: words}, names && first ? [names, " ", h("small", null, when && age(when))] : ""),
          h("td", null, coloured(l.text)));
      })))));
  }

  // arrived takes a change of the object from the server.
  arrived() {
    if (!this.editor) {
      this.read();
      if (own() && this.view.tab === "yaml") this.again();
      return;
    }
    if (this.comparing) return;
    const newer = this.view.object.metadata.resourceVersion !== this.base.metadata.resourceVersion;
    this.editor.note.hidden = !newer;
    fill(this.editor.note, "The object has changed since. ", h("button", {click: () => this.conflict()}, "Compare"));
  }

  // edit shows the editor, with the object as it is, or with another state of it. Changes count from base.
  edit(from = this.visible(), base = this.visible()) {
    const {revealed} = this;
    this.base = base;
    this.comparing = false;
    this.editor = new Editor({
      text: toText(writable(this.view.k, from)), signal: this.view.signal, cancel: () => ((this.revealed = revealed), this.read()),
      ask: text => dryUpdate(this.view, this.path({dryRun: "All"}), version => withVersion(text, version)),
      save: (body, type) => this.store(body, type),
    });
    fill(this.node, this.editor.node);
    this.editor.focus();
  }

  // store updates the object. A conflict is shown, and answers like a text without warnings.
  async store(body, type) {
    try {
      const answer = await words(this.path(), {method: "PUT", body, type});
      toast("Saved");
      this.view.take(decode(answer.text));
      this.read();
      return answer;
    } catch (e) {
      if (e.code !== 409) throw e;
      await this.conflict();
      return {warnings: []};
    }
  }

  path(parameters) {
    return writing(this.view.path, parameters);
  }

  // conflict shows the fields that others changed meanwhile beside those of the editor, and offers to keep both.
  async conflict() {
    const {base, editor} = this;
    const theirs = await json(this.view.path);
    let mine;
    try {
      mine = (await editor.ask(editor.area.value)).result;
    } catch (e) {
      return editor.show(problemsOf(e));
    }
    const strip = o => ({...writable(this.view.k, o), metadata: {...o.metadata, resourceVersion: undefined, managedFields: undefined, generation: undefined}});
    const key = d => dotted(d.path);
    const left = new Map(diff(strip(base), strip(theirs)).map(d => [key(d), d]));
    const right = new Map(diff(strip(base), strip(mine)).map(d => [key(d), d]));
    const rows = [...new Set([...left.keys(), ...right.keys()])].map(k => {
      const l = left.get(k), r = right.get(k);
      return h("tr", {class: l && r && !same(l.after, r.after) && "clash"}, h("td", null, h("code", null, k)), h("td", null, short((l ?? r).before)), h("td", null, l ? short(l.after) : ""), h("td", null, r ? short(r.after) : ""));
    });
    const both = {...merge(strip(base), strip(mine), strip(theirs))};
    both.metadata = {...both.metadata, resourceVersion: theirs.metadata.resourceVersion};
    editor.area.readOnly = this.comparing = true;
    const back = () => {
      editor.area.readOnly = this.comparing = false;
      editor.note.hidden = true;
    };
    const apply = () => this.store(encode(both), "application/json").catch(e => toast(e.message, true));
    if (!left.size) return apply(); // only fields of others, such as the status
    fill(editor.note, h("b", null, "The object has changed since you began."), h("div", {class: "scroll"}, h("table", null, h("thead", null, h("tr", null, ["Field", "Before", "Theirs", "Yours"].map(t => h("th", null, t)))), h("tbody", null, rows))),
      h("p", {class: "buttons"}, h("button", {click: back}, "Back to the text"), h("button", {click: () => this.edit(this.visible(theirs), theirs)}, "Begin again with theirs"), h("button", {class: "main", click: apply}, "Take theirs, and yours where both changed")));
    editor.note.hidden = false;
  }
}

// withVersion sets the resourceVersion of a text.
const withVersion = (text, version) => text.replace(/^( {2}resourceVersion:) .*$/m, `$1 "${version}"`);

const applied = "kubectl.kubernetes.io/last-applied-configuration";

// masked returns a Secret without its values.
function masked(o) {
  const hide = map => map && Object.fromEntries(Object.keys(map).map(k => [k, "••••••••"]));
  const {annotations} = o.metadata;
  const shown = annotations?.[applied] ? {...annotations, [applied]: "••••••••"} : annotations;
  return {...o, metadata: {...o.metadata, annotations: shown}, data: hide(o.data), stringData: hide(o.stringData)};
}

// confidential reports whether a difference of a Secret has its values.
export const confidential = path => ["data", "stringData"].includes(path[0]) || (path[0] === "metadata" && path[1] === "annotations" && (path.length === 2 || path[2] === applied));
