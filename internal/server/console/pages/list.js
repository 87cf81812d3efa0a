// The view of a kind: its objects as the server's own Table, live.
import {find, pages, pathOf, pause, state, table, watch} from "./api.js";
import {compile} from "./cel.js";
import {remove} from "./delete.js";
import {age, copy, debounce, every, fill, h, text} from "./dom.js";
import {keysUntil} from "./keys.js";
import {change, go, link, namespace, objectOf, pageOf, partsOf} from "./route.js";
import {Grid} from "./rows.js";
import {sortable, Store} from "./store.js";

const merge = 200; // milliseconds between changes of the rows on the page
const retry = 3000; // milliseconds after a lost connection

// list shows the objects of a kind.
export async function list(at, signal) {
  const k = await find(at, signal);
  document.title = `${k.kind} · anykind console`;
  return new List(k, at.query, signal).node;
}

class List {
  store = new Store();
  definitions = []; // columns of the Table
  told = "loading";

  constructor(k, query, signal) {
    Object.assign(this, {k, signal});
    this.namespace = k.namespaced ? namespace() : "";
    this.query = {text: query.get("text") ?? "", label: query.get("label") ?? "", field: query.get("field") ?? "", cel: query.get("cel") ?? "", wide: query.get("wide") ?? "", sort: query.get("sort") ?? ""};
    this.state = h("span", {class: "live"});
    this.count = h("span", {class: "count"});
    this.actions = h("div", {class: "actions", hidden: true});
    this.empty = h("div", {class: "empty", hidden: true});
    this.grid = new Grid({
      store: this.store, columns: this.columns(), label: k.kind, href: r => objectOf(k, r.namespace, r.name), sort: (c, down) => this.sortBy(c.title, down),
      open: r => (location.hash = objectOf(k, r.namespace, r.name)), selects: () => this.selection(),
    });
    this.node = h("section", {class: "list"}, this.header(), this.actions, this.empty, this.grid.box);
    this.sortBy(this.query.sort.replace(/^-/, "") || (this.namespace || !k.namespaced ? "Name" : "Namespace"), this.query.sort.startsWith("-"), true);
    this.filter();
    signal.addEventListener("abort", () => this.grid.close());
    every(merge, signal, () => this.settle());
    every(1000, signal, () => this.grid.later()); // ages
    this.bind();
    this.run();
  }

  header() {
    const field = (name, title, placeholder, act, extra) => h("input", {
      type: "search", placeholder, "aria-label": title, title, value: this.query[name], ...extra,
      input: debounce(e => {
        this.query[name] = e.target.value.trim();
        change({[name]: this.query[name]});
        act();
      }, name === "text" ? 60 : 400),
    });
    return h("header", {class: "top"},
      h("h1", null, this.k.kind, " ", h("small", null, this.k.group || "core", "/", this.k.version)), this.count, this.state,
      h("span", {class: "grow"}),
      field("text", "Filter by text", "Filter  /", () => this.filter(), {"data-filter": ""}),
      field("label", "Label selector", "Labels: app=web", () => this.reload()),
      field("field", "Field selector", "Fields: spec.nodeName=a", () => this.reload()),
      field("cel", "Filter in CEL, such as object.spec.replicas > 1", "CEL: object.spec…", () => this.reload()),
      h("label", {class: "check"}, h("input", {type: "checkbox", checked: Boolean(this.query.wide), change: e => this.widen(e.target.checked)}), "wide"),
      this.k.verbs.includes("create") && !state.at && h("a", {class: "button", href: this.k.title === "customresourcedefinitions.apiextensions.k8s.io" && state.reviews ? link(["definition"]) : link(partsOf("new", this.k))}, "New"),
      h("a", {class: "button", href: pageOf(this.k)}, "About"),
      h("button", {click: () => copy(this.command()), title: "Copy as a kubectl command"}, "kubectl"));
  }

  // command returns the kubectl command for this view.
  command() {
    const {label, field, wide} = this.query;
    const of = this.k.namespaced ? (this.namespace ? " -n " + this.namespace : " -A") : "";
    return `kubectl get ${this.k.title}${of}${label && ` -l '${label}'`}${field && ` --field-selector '${field}'`}${wide && " -o wide"}${state.context.name && ` --context ${state.context.name}`}`;
  }

  bind() {
    const g = this.grid;
    keysUntil(this.signal, {
      j: () => g.move(g.focus + 1), ArrowDown: () => g.move(g.focus + 1), k: () => g.move(g.focus - 1), ArrowUp: () => g.move(g.focus - 1),
      PageDown: () => g.move(g.focus + 25), PageUp: () => g.move(g.focus - 25), Home: () => g.move(0), End: () => g.move(Infinity),
      Enter: () => g.current && g.open(g.current), x: () => g.current && g.select(g.current.id, !g.selected.has(g.current.id)), d: () => this.remove(),
    });
  }

  path() {
    const q = new URLSearchParams();
    if (this.query.label) q.set("labelSelector", this.query.label);
    if (this.query.field) q.set("fieldSelector", this.query.field);
    if (this.query.cel) q.set("includeObject", "Object"); // the expression is evaluated here
    return pathOf(this.k, this.namespace) + (String(q) && "?" + q);
  }

  // reload lists again, for other selectors.
  reload() {
    this.loading?.abort();
    this.run();
  }

  // run lists and watches until the view closes.
  async run() {
    if (this.signal.aborted) return;
    this.loading = new AbortController();
    const stop = this.loading;
    this.signal.addEventListener("abort", () => stop.abort());
    const signal = stop.signal;
    try {
      this.passes = this.query.cel ? compile(this.query.cel) : () => true;
      while (!signal.aborted) {
        this.say("loading");
        const seen = new Set();
        const version = await pages(this.path(), {accept: table, signal, each: (page, first) => this.page(page, first, seen)});
        for (const id of [...this.store.rows.keys()]) if (!seen.has(id)) this.store.remove(id);
        this.store.arrange();
        this.grid.later();
        this.tally();
        if (state.at) return this.say("past");
        if (!this.k.verbs.includes("watch")) return this.say("not watched");
        await watch(this.path(), {accept: table, version, signal, event: e => this.event(e), told: s => this.say(s)});
      }
    } catch (e) {
      if (signal.aborted) return;
      const wrong = (e.code >= 400 && e.code < 429) || e instanceof SyntaxError;
      if (wrong) this.store.clear(); // the rows are those of another selector
      this.say(e);
      this.grid.later();
      if (wrong) return;
      await pause(retry, signal);
      if (!signal.aborted) this.reload();
    }
  }

  // page takes a part of the list.
  page(p, first, seen) {
    if (first) seen.clear(); // also when the list begins again
    if (first && p.columnDefinitions) this.define(p.columnDefinitions);
    for (const row of p.rows ?? []) {
      if (!this.passes(row.object)) continue;
      const r = this.row(row);
      seen.add(r.id);
      this.store.put(r);
    }
    if (first) this.measure();
    this.settle();
    this.say("loading");
  }

  row({cells, object}) {
    const m = object?.metadata ?? {};
    return {id: m.uid ?? m.namespace + "/" + m.name, name: m.name, namespace: m.namespace ?? "", cells, created: m.creationTimestamp, deleted: m.deletionTimestamp, labels: m.labels};
  }

  event({type, object}) {
    for (const row of object.rows ?? []) {
      const r = this.row(row);
      if (type === "DELETED" || !this.passes(row.object)) this.store.remove(r.id);
      else {
        r.changed = Date.now();
        this.store.put(r);
      }
    }
  }

  // settle shows the rows that have arrived.
  settle() {
    if (!this.store.settle()) return;
    this.tally();
    this.grid.later();
  }

  define(definitions) {
    this.definitions = definitions;
    this.grid.arrange(this.columns());
    this.store.arrange({keyOf: this.keyOf(), matches: this.matcher()});
  }

  // columns returns those of the Table, after the namespace.
  columns() {
    const spaced = this.k.namespaced && !this.namespace;
    const own = this.definitions.map((d, i) => ({...d, i})).filter(d => d.priority === 0 || this.query.wide);
    if (!own.length) own.push({name: "Name", i: -1});
    return [
      ...(spaced ? [{title: "Namespace", cell: r => r.namespace, width: 14, kind: ""}] : []),
      ...own.map(d => {
        const column = {title: d.name, words: d.description, i: d.i, width: Math.max(d.name.length + 4, 10), kind: "", cell: r => String(r.cells[d.i] ?? "")};
        if (d.name === "Name") return {...column, kind: "name", cell: r => r.name};
        if (d.name === "Age" && /^CreationTimestamp|: \.metadata\.creationTimestamp$/.test(d.description)) return {...column, kind: "age", cell: (r, now) => (r.created ? age(r.created, now) : "")};
        return {...column, tone: tone};
      }),
    ];
  }

  // measure sets the width of the columns by the first rows.
  measure() {
    for (const c of this.grid.columns) {
      let most = c.width;
      let n = 0;
      for (const r of this.store.rows.values()) {
        most = Math.max(most, c.cell(r, Date.now()).length + 2);
        if (++n > 500) break;
      }
      c.width = Math.min(most, 64);
    }
    this.grid.widths();
  }

  keyOf() {
    const column = this.columns().find(c => c.title === this.sorting.column);
    if (!column || column.kind === "name") return r => r.name;
    if (column.title === "Namespace" && column.i == null) return r => r.namespace + "\u0000" + r.name;
    if (column.kind === "age") return r => -Date.parse(r.created);
    return r => sortable(r.cells[column.i]);
  }

  sortBy(column, down, quiet) {
    this.sorting = {column, down};
    if (!quiet) change({sort: (down ? "-" : "") + column});
    this.store.arrange({keyOf: this.keyOf(), down});
    this.grid.titles(this.sorting);
    this.grid.later();
  }

  matcher() {
    const all = this.query.text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!all.length) return () => true;
    return r => {
      r.text ??= [r.namespace, r.name, ...r.cells, ...Object.entries(r.labels ?? {}).map(([n, v]) => n + "=" + v)].join("\n").toLowerCase();
      return all.every(w => r.text.includes(w));
    };
  }

  filter() {
    this.store.arrange({matches: this.matcher()});
    this.grid.box.scrollTop = 0;
    this.tally();
    this.grid.later();
  }

  widen(on) {
    this.query.wide = on ? "1" : "";
    change({wide: this.query.wide});
    this.grid.arrange(this.columns());
    this.measure();
  }

  // say shows the state of the list.
  say(told) {
    this.told = told;
    const error = told instanceof Error;
    text(this.state, error ? "○ " + (told.code < 429 || told instanceof SyntaxError ? told.message : "connection lost, trying again: " + told.message) : {live: "● live", loading: "… loading", paused: "○ paused", past: "as it was", "not watched": "not watched"}[told]);
    this.state.className = "live " + (error ? "bad" : told);
    this.tally();
  }

  tally() {
    const {size, shown} = this.store;
    const n = v => v.toLocaleString("en");
    text(this.count, shown.length === size ? n(size) : `${n(shown.length)} of ${n(size)}`);
    const error = this.told instanceof Error && this.told;
    const nothing = !shown.length && this.told !== "loading";
    this.empty.hidden = !nothing;
    if (nothing) {
      fill(this.empty, error instanceof SyntaxError ? [h("b", null, "A filter cannot have this expression."), h("p", null, error.message)] : error?.code ? [h("b", null, error.code === 403 ? "You may not list these objects." : "The server rejects the list."), h("p", null, error.message)]
        : size ? [h("b", null, "No object passes the filter."), h("p", null, `${n(size)} are hidden. `, h("button", {click: () => go(partsOf("list", this.k), {text: ""})}, "Clear the filter"))]
        : this.query.label || this.query.field || this.query.cel ? [h("b", null, `No ${this.k.kind} passes the selectors`), h("p", null, [this.query.label, this.query.field, this.query.cel].filter(Boolean).join(" · "))]
        : [h("b", null, `There is no ${this.k.kind}${this.namespace ? " in " + this.namespace : ""}.`), h("p", null, "New ones appear here by themselves.")]);
    }
  }

  // chosen returns the selected rows that pass the filter.
  chosen() {
    return [...this.grid.selected].map(id => this.store.rows.get(id)).filter(r => r && this.store.matches(r));
  }

  selection() {
    const all = this.chosen();
    this.actions.hidden = !all.length;
    fill(this.actions, h("b", null, `${all.length} selected`), h("button", {class: "danger", disabled: Boolean(state.at), click: () => this.remove()}, "Delete…"),
      h("button", {click: () => copy(all.map(r => `kubectl delete ${this.k.title} ${r.name}${r.namespace && " -n " + r.namespace}`).join("\n"))}, "Copy as kubectl"),
      h("button", {click: () => this.grid.selectAll(false)}, "Clear"));
  }

  remove() {
    const all = this.chosen();
    if (all.length && !state.at) remove(this.k, all, () => this.grid.selectAll(false));
  }
}

const good = /^(true|running|active|ready|bound|available|established|succeeded|completed|complete|healthy|synced)$/i;
const bad = /^(false|failed|error|.*backoff|.*err.*|evicted|oomkilled|lost|unknown|notready|crash.*|degraded)$/i;
const waiting = /^(pending|terminating|containercreating|waiting|progressing|released)$/i;

// tone colours the words that Kubernetes uses for states.
const tone = value => (good.test(value) ? "good" : bad.test(value) ? "bad" : waiting.test(value) ? "wait" : "");
