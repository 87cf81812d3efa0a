// The view of one object: its state, its text, its past.
import {actions} from "./actions.js";
import {admission} from "./admission.js";
import {find, json, own, past, pathOf, pause, state, watch} from "./api.js";
import {remove} from "./delete.js";
import {Document} from "./document.js";
import {age, copy, counted, debounce, fill, h, moment} from "./dom.js";
import {form} from "./form.js";
import {graph} from "./graph.js";
import {keysUntil} from "./keys.js";
import {past as changesOf} from "./past.js";
import {change, link, listOf} from "./route.js";
import {run} from "./run.js";
import {terminal} from "./terminal.js";
import {finalizersOf, why} from "./why.js";
import {logs} from "./logs.js";

const retry = 3000; // milliseconds after a failed read

// object shows an object.
export async function object(at, signal) {
  const [, , ns, name] = at.parts;
  const k = await find(at, signal);
  document.title = `${name} · ${k.kind} · anykind console`;
  const v = new View(k, ns === "-" ? "" : ns, name, at.query.get("tab") ?? "", signal);
  await v.load();
  return v.node;
}

class View {
  constructor(k, namespace, name, tab, signal) {
    Object.assign(this, {k, namespace, name, signal});
    this.path = pathOf(k, namespace, name);
    this.tabs = [
      ["state", "State", signal => why(this, signal)],
      ["graph", "Graph", signal => graph(this, signal)],
      ["yaml", "YAML", () => this.document.show()],
      ...(k.verbs.includes("update") && k.title !== "secrets" && !state.at ? [["form", "Form", () => form(this)]] : []),
      ...(own() ? [["changes", "Changes", () => changesOf(this)]] : []),
      ["admission", "Admission", signal => admission(this, signal)],
      ...(k.subresources.includes("log") ? [["logs", "Logs", signal => logs(this, signal)]] : []),
      ...(k.subresources.includes("exec") && !state.at ? [["run", "Run", signal => run(this, signal)], ["terminal", "Terminal", signal => terminal(this, signal)]] : []),
    ];
    this.tab = this.tabs.find(([id]) => id === tab)?.[0] ?? "state";
    this.top = h("header", {class: "top"});
    this.bar = h("div", {class: "tabs", role: "tablist", keydown: e => this.arrows(e)});
    this.body = h("div", {class: "body", role: "tabpanel", tabindex: 0, "aria-label": "Content"});
    this.note = h("div", {class: "note", hidden: true});
    this.node = h("section", {class: "object"}, this.top, this.note, this.bar, this.body);
    signal.addEventListener("abort", () => this.tabEnd?.abort());
    this.again = debounce(() => this.tab === "state" && !signal.aborted && this.open("state"), 400);
    const numbers = Object.fromEntries(this.tabs.map(([id], i) => [String(i + 1), () => this.open(id)]));
    keysUntil(signal, {...numbers, e: () => this.edit(), d: () => this.delete()});
  }

  async load() {
    this.object = await json(past(this.path), {signal: this.signal});
    if (this.signal.aborted) return; // the address is that of another view
    this.document = new Document(this);
    this.draw();
    this.open(this.tab);
    if (!state.at && this.k.verbs.includes("watch")) this.follow();
  }

  // follow shows changes as they happen, until the view closes or the object is gone.
  async follow() {
    const selector = "fieldSelector=" + encodeURIComponent("metadata.name=" + this.name);
    while (!this.signal.aborted && !this.gone) {
      await watch(`${pathOf(this.k, this.namespace)}?${selector}`, {
        version: this.object.metadata.resourceVersion, signal: this.signal, told: s => this.say(s), event: ({type, object}) => this.arrived(object, type === "DELETED"),
      });
      if (this.signal.aborted) return;
      // The server has forgotten the state of the view.
      try {
        this.arrived(await json(this.path, {signal: this.signal}), false);
      } catch (e) {
        if (this.signal.aborted) return;
        if (e.code === 404) return this.arrived(this.object, true);
        this.say(e);
        await pause(retry, this.signal);
      }
    }
  }

  arrived(object, gone) {
    this.object = object;
    this.gone = gone;
    this.draw();
    this.document.arrived();
    this.again();
  }

  // take takes the answer of a write, unless the watch has brought a newer state.
  take(object) {
    if (Number(object.metadata.resourceVersion) >= Number(this.object.metadata.resourceVersion)) this.object = object;
  }

  // resume opens the editor with a draft that began from base, and compares it with the newest state.
  resume(draft, base) {
    this.open("yaml");
    this.document.edit(draft, base);
    return this.document.conflict();
  }

  // say shows that the view does not follow the object, and why.
  say(told) {
    this.lost = told instanceof Error ? told.message : told === "live" ? "" : told;
    this.draw();
  }

  draw() {
    const m = this.object.metadata;
    fill(this.top,
      h("h1", null, h("a", {class: "quiet", href: listOf(this.k)}, this.k.kind), " ", h("span", {class: "name"}, this.name)),
      m.namespace && h("span", {class: "quiet"}, "in ", m.namespace),
      h("span", {class: "quiet", title: moment(m.creationTimestamp)}, age(m.creationTimestamp), " old"),
      state.at && h("span", {class: "badge wait"}, "as it was at " + moment(state.at)),
      this.lost && h("span", {class: "badge wait"}, "not live: ", this.lost),
      h("span", {class: "grow"}),
      this.k.title === "customresourcedefinitions.apiextensions.k8s.io" && state.reviews && h("a", {class: "button", href: link(["definition", this.name])}, "Review a change"),
      !state.at && !this.gone && actions(this),
      h("button", {click: () => this.edit(), disabled: Boolean(state.at || this.gone) || !this.k.verbs.includes("update")}, "Edit"),
      h("button", {click: () => copy(`kubectl get ${this.k.title} ${this.name}${m.namespace ? " -n " + m.namespace : ""} -o yaml${state.context.name && " --context " + state.context.name}`), title: "Copy as a kubectl command"}, "kubectl"),
      h("button", {class: "danger", click: () => this.delete(), disabled: Boolean(state.at || this.gone) || !this.k.verbs.includes("delete")}, "Delete…"));
    const held = m.deletionTimestamp && finalizersOf(this.object);
    this.note.hidden = !this.gone && !held;
    fill(this.note, this.gone ? h("b", null, "This object has been deleted. Its last state is shown.")
      : held && [h("b", null, `Deleted ${age(m.deletionTimestamp)} ago, and held by ${counted(held.length, "finalizer")}: `), held.map(f => h("p", null, h("code", null, f), " ", finalizer(f)))]);
  }

  open(id) {
    this.tabEnd?.abort();
    this.tabEnd = new AbortController();
    const {signal} = this.tabEnd;
    this.tab = id;
    change({tab: id === "state" ? "" : id});
    fill(this.bar, this.tabs.map(([tab, title]) => h("button", {role: "tab", "aria-selected": String(tab === id), tabindex: tab === id ? 0 : -1, click: () => this.open(tab)}, title)));
    const content = this.tabs.find(([tab]) => tab === id)[2](signal);
    if (content instanceof Promise) {
      content.then(c => signal.aborted || fill(this.body, c), e => signal.aborted || this.signal.aborted || fill(this.body, h("p", {class: "bad pad"}, e.message)));
    } else {
      fill(this.body, content);
    }
  }

  arrows(e) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[e.key];
    if (!step) return;
    const i = this.tabs.findIndex(([id]) => id === this.tab);
    this.open(this.tabs[(i + step + this.tabs.length) % this.tabs.length][0]);
    this.bar.querySelector("[aria-selected=true]").focus();
  }

  edit() {
    if (state.at || this.gone) return;
    this.open("yaml");
    if (this.document.editor) this.document.editor.area.focus();
    else this.document.edit();
  }

  delete() {
    const m = this.object.metadata;
    if (!state.at && !this.gone) remove(this.k, [{id: m.uid, name: m.name, namespace: m.namespace}], () => {});
  }
}

// finalizer explains a finalizer: its controller must remove it.
function finalizer(name) {
  const known = {
    foregroundDeletion: "The garbage collector deletes the dependents first.",
    orphan: "The garbage collector removes this owner from its dependents first.",
    "kubernetes.io/pvc-protection": "A pod still uses this claim.",
    "kubernetes.io/pv-protection": "A claim is still bound to this volume.",
    "customresourcecleanup.apiextensions.k8s.io": "Objects of this definition still exist; each may have finalizers of its own.",
    kubernetes: "The namespace still has objects.",
  };
  return known[name] ?? `The controller of ${name.split("/")[0]} removes it after its cleanup. If that controller no longer runs, the object stays.`;
}
