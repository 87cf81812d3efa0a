// The feed of changes over all kinds.
import {json, kindOf, listed, metadata, own, pathOf, pause, state, watch, withQuery} from "./api.js";
import {age, every, fill, h, moment} from "./dom.js";
import {differences, verb} from "./past.js";
import {change, link, namespace, objectOf} from "./route.js";

const page = 100; // changes of an answer
const largePage = 1000; // the same for a search
const pagesAtOnce = 10; // of a search
const again = 2000; // milliseconds between questions for new changes
const atOnce = 4; // watches on servers without a history

// changes shows the feed.
export async function changes(at, signal) {
  document.title = "Changes · anykind console";
  const feed = new Feed(at, signal);
  if (own()) {
    try {
      await feed.begin();
      return feed.node;
    } catch (e) {
      if (![400, 403, 404].includes(e.code)) throw e;
      feed.missing = e.message;
    }
  }
  feed.watches(at.query.get("kinds")?.split(",") ?? ["pods", "events", "deployments.apps", "configmaps"]);
  return feed.node;
}

class Feed {
  since = ""; // the revision up to which all changes are known
  kept = 500; // entries on the page, unless the user asks for earlier ones
  reading = Promise.resolve();
  earlier = ""; // that of the next older change; empty if there is none

  constructor(at, signal) {
    this.signal = signal;
    this.words = (at.query.get("text") ?? "").toLowerCase();
    this.all = at.query.get("all") ?? "";
    this.out = h("div", {class: "entries", role: "feed", "aria-label": "Changes"});
    this.note = h("p", {class: "quiet pad", role: "status"});
    this.choice = h("div", {class: "tools pad", hidden: true});
    this.live = h("span", {class: "live"});
    this.back = h("button", {hidden: true, click: () => this.earliest()}, "Earlier changes");
    const filter = h("input", {type: "search", placeholder: "Filter  /", "aria-label": "Filter changes", "data-filter": "", value: this.words, input: e => this.filter(e.target.value)});
    this.noise = own() && h("label", {class: "quiet"}, h("input", {type: "checkbox", checked: Boolean(this.all), change: e => this.include(e.target.checked)}), " Leases and Events");
    this.node = h("section", {class: "feed"}, h("header", {class: "top"}, h("h1", null, "Changes"), this.live, h("span", {class: "grow"}), this.noise, filter), this.choice, this.note, this.out, h("p", {class: "pad"}, this.back));
    every(10000, signal, () => this.out.querySelectorAll("time").forEach(t => (t.textContent = age(t.dateTime))));
  }

  filter(words) {
    this.words = words.trim().toLowerCase();
    change({text: this.words});
    for (const e of this.out.children) e.hidden = !this.matches(e);
    this.say();
  }

  matches = e => !this.words || e.textContent.toLowerCase().includes(this.words);

  // include shows changes of Leases and Events, too, or hides them.
  include(all) {
    this.all = all ? "true" : "";
    change({all: this.all});
    this.restart = true;
    this.newest();
  }

  // begin reads the last changes, and goes on with new ones.
  async begin() {
    await this.newest();
    if (state.at) return fill(this.live, "until ", moment(state.at));
    this.run();
  }

  async run() {
    fill(this.live, "● live");
    while (!this.signal.aborted) {
      await pause(again, this.signal);
      if (document.hidden || this.signal.aborted) continue;
      try {
        await this.newest();
        fill(this.live, "● live");
      } catch (e) {
        if (e.code === 410) this.restart = true; // the server does not remember the revision
        if (!this.signal.aborted) fill(this.live, "○ ", e.message);
      }
    }
  }

  read = parameters => json(withQuery("/history/changes", {limit: page, namespace: namespace(), all: this.all, ...parameters}), {signal: this.signal});

  // newest reads new changes, after those that are being read.
  newest() {
    return (this.reading = this.reading.catch(() => {}).then(() => this.next()));
  }

  // next adds the changes since the last ones. If they are too many, the feed begins with the newest of them.
  async next() {
    const restart = this.restart || !this.since;
    this.restart = false;
    const list = await this.read({since: restart ? "" : this.since, until: state.at});
    if (restart || list.metadata.earlier) {
      this.out.replaceChildren();
      this.earlier = list.metadata.earlier ?? "";
    }
    this.since = list.metadata.resourceVersion;
    for (const c of list.items) this.put(this.changed(c));
    this.say();
  }

  // earliest adds older changes, and of those at least one that passes the filter.
  async earliest() {
    this.back.disabled = true;
    try {
      for (let n = 0, found = false; n < pagesAtOnce && !found && this.earlier; n++) {
        const list = await this.read({until: this.earlier, limit: this.words ? largePage : page});
        this.earlier = list.metadata.earlier ?? "";
        const entries = list.items.toReversed().map(c => this.changed(c));
        for (const e of entries) e.hidden = !this.matches(e);
        this.out.append(...entries);
        this.kept = Math.max(this.kept, this.out.childElementCount);
        found = entries.some(e => !e.hidden);
        this.say();
      }
    } catch (e) {
      if (!this.signal.aborted) fill(this.note, e.message);
    } finally {
      this.back.disabled = false;
    }
  }

  // say shows how many entries pass the filter.
  say() {
    if (this.watching) return;
    const all = this.out.childElementCount, shown = [...this.out.children].filter(e => !e.hidden).length;
    fill(this.note, !all ? "No change is known yet." : this.words && `${shown} of ${all} changes contain “${this.words}”.`);
    this.note.hidden = !this.note.textContent;
    this.back.hidden = !this.earlier;
  }

  // changed returns the entry of a change. A deleted object is shown as it was before.
  changed(c) {
    const k = kindOf(c.group, c.resource);
    const before = c.type === "DELETED" ? {at: new Date(Date.parse(c.time) - 1).toISOString()} : {};
    const e = this.entry(k, c.kind, c, c.time, [verb(c), " by ", h("b", null, c.user || "unknown"), c.manager && h("span", {class: "quiet"}, ` (${c.manager})`)],
      c.error ? h("p", {class: "bad"}, c.error) : differences(c.before, c.object, 6), before);
    e.dataset.revision = c.revision;
    return e;
  }

  // entry shows one change.
  entry(k, kind, m, time, words, details, parameters) {
    return h("article", {class: "entry", "aria-label": `${kind} ${m.name}`}, h("header", null, h("span", {class: "quiet"}, kind, " "), k ? h("a", {href: objectOf(k, m.namespace, m.name, parameters)}, m.name) : h("b", null, m.name), m.namespace && h("span", {class: "quiet"}, " in ", m.namespace), " ", words,
      h("span", {class: "grow"}), h("a", {class: "quiet", href: link(["changes"], {at: time}), title: "Look at everything as it was then: " + moment(time)}, h("time", {datetime: time}, age(time)))), details);
  }

  put(e) {
    e.hidden = !this.matches(e);
    this.out.prepend(e);
    while (this.out.childElementCount > this.kept) {
      this.earlier = this.out.lastChild.dataset.revision ?? "";
      this.out.lastChild.remove();
    }
  }

  // watches follows some kinds, on servers without a history.
  watches(titles) {
    const all = state.kinds.filter(k => listed(k) && k.verbs.includes("watch"));
    const chosen = titles.map(t => all.find(k => k.title === t)).filter(Boolean).slice(0, atOnce);
    this.watching = true;
    if (this.noise) this.noise.hidden = true;
    this.note.hidden = false;
    fill(this.note, this.missing ? `The history is not available: ${this.missing}. ` : "This server keeps no history. ", `Changes of these kinds since now, without users and fields. At most ${atOnce} kinds: a browser has six connections to a server.`);
    this.choice.hidden = false;
    const names = h("datalist", {id: "kinds"}, all.map(k => h("option", {value: k.title})));
    fill(this.choice, names, chosen.map((k, i) => h("input", {list: "kinds", value: k.title, "aria-label": "Kind " + (i + 1), change: e => {
      titles[i] = e.target.value;
      change({kinds: titles.join(",")});
      location.reload();
    }})));
    for (const k of chosen) this.follow(k);
  }

  async follow(k) {
    while (!this.signal.aborted) {
      try {
        const list = await json(withQuery(pathOf(k, namespace()), {limit: 1}), {accept: metadata, signal: this.signal});
        await watch(pathOf(k, namespace()), {
          accept: metadata.replaceAll("MetadataList", "Metadata"), version: list.metadata.resourceVersion, signal: this.signal, told: s => s instanceof Error && s.code < 429 && this.put(h("article", {class: "entry bad"}, `${k.title}: ${s.message}`)),
          event: ({type, object: o}) => this.put(this.entry(k, k.kind, o.metadata, new Date().toISOString(), {ADDED: "created", DELETED: "deleted"}[type] ?? ["updated by ", h("b", null, last(o.metadata))])),
        });
      } catch (e) {
        if (this.signal.aborted) return;
        this.put(h("article", {class: "entry bad"}, `${k.title}: ${e.message}`));
        return;
      }
    }
  }
}

// last returns the field manager with the last change.
const last = m => (m.managedFields ?? []).reduce((a, b) => ((a?.time ?? "") > (b.time ?? "") ? a : b), null)?.manager ?? "unknown";
