// The feed of changes over all kinds.
import {json, kindOf, listed, metadata, own, pathOf, pause, state, watch, withQuery} from "./api.js";
import {age, every, fill, h, moment} from "./dom.js";
import {differences, verb} from "./past.js";
import {change, namespace, objectOf} from "./route.js";

const kept = 500; // entries on the page
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
      if (![400, 404, 410].includes(e.code)) throw e;
      feed.missing = e.message;
    }
  }
  feed.watches(at.query.get("kinds")?.split(",") ?? ["pods", "events", "deployments.apps", "configmaps"]);
  return feed.node;
}

class Feed {
  since = "";

  constructor(at, signal) {
    this.signal = signal;
    this.words = (at.query.get("text") ?? "").toLowerCase();
    this.out = h("div", {class: "feed"});
    this.note = h("p", {class: "quiet pad"});
    this.choice = h("div", {class: "tools pad", hidden: true});
    const filter = h("input", {type: "search", placeholder: "Filter  /", "aria-label": "Filter changes", "data-filter": "", value: this.words, input: e => this.filter(e.target.value)});
    this.node = h("section", null, h("header", {class: "top"}, h("h1", null, "Changes"), h("span", {class: "grow"}), filter), this.choice, this.note, this.out);
    every(10000, signal, () => this.out.querySelectorAll("time").forEach(t => (t.textContent = age(t.dateTime))));
  }

  filter(words) {
    this.words = words.trim().toLowerCase();
    change({text: this.words});
    for (const e of this.out.children) e.hidden = !this.matches(e);
  }

  matches = e => !this.words || e.textContent.toLowerCase().includes(this.words);

  // begin reads the last changes, and goes on with new ones.
  async begin() {
    await this.more();
    if (!this.out.childNodes.length) fill(this.note, "No change is known yet.");
    if (!state.at) this.run();
  }

  async run() {
    while (!this.signal.aborted) {
      await pause(again, this.signal);
      if (document.hidden || this.signal.aborted) continue;
      try {
        await this.more();
        fill(this.note);
      } catch (e) {
        if (!this.signal.aborted) fill(this.note, "○ ", e.message);
      }
    }
  }

  async more() {
    const list = await json(withQuery("/history/changes", {limit: 100, since: this.since, until: state.at, namespace: namespace()}), {signal: this.signal});
    this.since = list.metadata.resourceVersion;
    for (const c of list.items) {
      const o = c.object ?? c.before;
      const k = kindOf(o.apiVersion.includes("/") ? o.apiVersion.split("/")[0] : "", c.resource);
      this.put(this.entry(k, o.kind, o.metadata, c.time, [verb(c), " by ", h("b", null, c.user || "unknown"), c.manager && h("span", {class: "quiet"}, ` (${c.manager})`)], differences(c.before, c.object, 6)));
    }
  }

  // entry shows one change.
  entry(k, kind, m, time, words, details) {
    return h("article", {class: "entry"}, h("header", null, h("span", {class: "quiet"}, kind, " "), k ? h("a", {href: objectOf(k, m.namespace, m.name)}, m.name) : h("b", null, m.name), m.namespace && h("span", {class: "quiet"}, " in ", m.namespace), " ", words,
      h("span", {class: "grow"}), h("time", {class: "quiet", datetime: time, title: moment(time)}, age(time))), details);
  }

  put(e) {
    e.hidden = !this.matches(e);
    this.out.prepend(e);
    while (this.out.childNodes.length > kept) this.out.lastChild.remove();
  }

  // watches follows some kinds, on servers without a history.
  watches(titles) {
    const all = state.kinds.filter(k => listed(k) && k.verbs.includes("watch"));
    const chosen = titles.map(t => all.find(k => k.title === t)).filter(Boolean).slice(0, atOnce);
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
          accept: metadata.replaceAll("MetadataList", "Metadata"), version: list.metadata.resourceVersion, signal: this.signal, told: () => {},
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
