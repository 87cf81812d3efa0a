// The search over all kinds and objects.
import {json, kindOf, listed, metadata, own, pathOf, state, withQuery} from "./api.js";
import {debounce, dialog, fill, h} from "./dom.js";
import {listOf, objectOf} from "./route.js";

const most = 50; // objects that are shown
const elsewhere = 40; // kinds whose objects are listed on servers without a search
const fresh = 60000; // milliseconds that these lists are kept

// search opens the box.
export function search() {
  if (document.querySelector("dialog.search, dialog[open]")) return;
  let asking = new AbortController();
  let chosen = 0;
  const out = h("ul", {class: "results", role: "listbox", id: "results", "aria-label": "Results"});
  const note = h("p", {class: "quiet", role: "status"});
  const input = h("input", {
    type: "search", class: "query", placeholder: "Names, labels, values, conditions, messages", "aria-label": "Search", role: "combobox", "aria-expanded": "true", "aria-controls": "results", autocomplete: "off",
    input: debounce(() => run(), 40), keydown: e => key(e),
  });
  const mark = to => {
    const all = out.querySelectorAll("[role=option]");
    chosen = Math.max(0, Math.min(to, all.length - 1));
    all.forEach((e, i) => e.setAttribute("aria-selected", String(i === chosen)));
    all[chosen]?.scrollIntoView({block: "nearest"});
    if (all[chosen]) input.setAttribute("aria-activedescendant", all[chosen].id);
  };
  const key = e => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      mark(chosen + (e.key === "ArrowDown" ? 1 : -1));
    }
    if (e.key === "Enter") out.querySelectorAll("[role=option]")[chosen]?.click();
  };
  const option = (href, content, i) => h("li", {role: "option", id: "result" + i, "aria-selected": "false", click: () => ((location.hash = href), close())}, content);
  const run = async () => {
    asking.abort();
    asking = new AbortController();
    const {signal} = asking;
    const q = input.value.trim();
    if (!q) return fill(out), fill(note, "Several words must all match.");
    const kinds = kindsOf(q).map(([rank, k]) => [rank, [listOf(k), [h("b", null, k.kind), " ", h("span", {class: "quiet"}, k.title), h("span", {class: "where"}, "kind")]]]);
    const named = kinds.filter(([rank]) => rank < 2).map(([, o]) => o), others = kinds.filter(([rank]) => rank === 2).map(([, o]) => o);
    const draw = objects => {
      fill(out, [...named, ...objects, ...others].map(([href, content], i) => option(href, content, i)));
      mark(0);
    };
    draw([]);
    try {
      const started = performance.now();
      const {objects, words} = await objectsOf(q, signal);
      if (signal.aborted) return;
      draw(objects);
      fill(note, `${objects.length} objects in ${Math.round(performance.now() - started)} ms${words ? ". " + words : ""}`);
    } catch (e) {
      if (!signal.aborted) fill(note, e.message);
    }
  };
  const close = dialog("Search", input, out, note);
  input.closest("dialog").classList.add("search");
  input.focus();
  run();
}

// kindsOf returns the kinds that a word names with a rank, the best first: 0 and 1 for their names, 2 for a part.
function kindsOf(q) {
  const word = q.toLowerCase();
  const rank = k => {
    const names = [k.kind.toLowerCase(), k.resource, k.singular, ...k.short];
    return names.includes(word) ? 0 : names.some(n => n.startsWith(word)) ? 1 : k.title.includes(word) ? 2 : 3;
  };
  return state.kinds.filter(listed).map(k => [rank(k), k]).filter(([r]) => r < 3).sort((a, b) => a[0] - b[0]).slice(0, 6);
}

// objectsOf searches with the index of the server, or in lists of a server without one.
async function objectsOf(q, signal) {
  if (!own()) return listsOf(q, signal);
  try {
    return await stored(q, signal);
  } catch (e) {
    if (e.code !== 404 && e.code !== 403) throw e; // an older anykind, or no right to search
    return listsOf(q, signal, e.message);
  }
}

// stored searches with the index of anykind.
async function stored(q, signal) {
  const found = await json(withQuery("/search", {q, limit: most}), {signal});
  const objects = (found.items ?? []).map(i => {
    const k = kindOf(i.group, i.resource) ?? {...i, title: i.resource, namespaced: Boolean(i.namespace)};
    return [objectOf(k, i.namespace, i.name), [h("span", {class: "quiet"}, i.kind, " "), h("b", null, i.name), i.namespace && h("span", {class: "quiet"}, " in ", i.namespace), where(i)]];
  });
  return {objects, words: found.indexing ? "Values are being indexed: names and labels only." : found.remaining ? "There are more: add a word." : ""};
}

// where shows the place of the match.
function where(i) {
  if (!i.path || !i.matched || i.path === "metadata.name") return null;
  const {start, end} = i.matched;
  return h("span", {class: "where"}, h("code", null, i.path), ": ", i.value.slice(0, start), h("mark", null, i.value.slice(start, end)), i.value.slice(end));
}

let known = {at: 0};

// listsOf searches the names and labels of lists, on other servers.
async function listsOf(q, signal, missing = "This server has no search") {
  if (known.base !== state.base || Date.now() - known.at > fresh) known = {base: state.base, at: Date.now(), all: read()};
  const {all, missing: unread} = await known.all;
  const words = q.toLowerCase().split(/\s+/);
  const objects = all.filter(o => words.every(w => o.text.includes(w))).slice(0, most).map(o => [objectOf(o.k, o.m.namespace, o.m.name),
    [h("span", {class: "quiet"}, o.k.kind, " "), h("b", null, o.m.name), o.m.namespace && h("span", {class: "quiet"}, " in ", o.m.namespace)]]);
  return {objects, words: `${missing}: names and labels of ${elsewhere} kinds${unread ? `, of which ${unread} cannot be listed` : ""}, at most 5,000 objects of each.`};
}

async function read() {
  const kinds = state.kinds.filter(k => listed(k) && k.resource !== "events").slice(0, elsewhere);
  const all = [];
  let missing = 0;
  const one = async () => {
    for (let k; (k = kinds.pop()); ) {
      try {
        const list = await json(withQuery(pathOf(k), {limit: 5000}), {accept: metadata});
        for (const {metadata: m} of list.items ?? []) all.push({k, m, text: [k.kind, m.namespace, m.name, ...Object.entries(m.labels ?? {}).flat()].join(" ").toLowerCase()});
      } catch {
        missing++;
      }
    }
  };
  await Promise.all([one(), one(), one()]);
  return {all, missing};
}
