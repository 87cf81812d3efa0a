// The state of an object, and the reasons for it: conditions, missing references, and events, along owners and
// dependents of any kind. It knows the conventions of the API, and no kind.
import {state} from "./api.js";
import {age, counted, h, moment, table} from "./dom.js";
import {objectOf} from "./route.js";
import {eventsOf, family, owners, read, references} from "./relations.js";
import {short} from "./diff.js";

const depth = 5; // of dependents
const most = 30; // dependents that are read, of one object

// Conditions whose status is bad if it is True, and those that say nothing about readiness.
const negative = /pressure|unavailable|fail|stalled|degraded|error|conflict|nonstructural|dangling|terminating|disruptiontarget|orphaned|exceeded|corrupt|limited/i;
const neutral = /^(progressing|reconciling|suspended|paused|disruptionallowed)$/i;

// polarity returns "good", "bad" or "" for a condition.
function polarity(c) {
  if (/^(pod)?(completed|succeeded)$/i.test(c.reason ?? "")) return "good";
  if (/^progressing$/i.test(c.type)) return c.status === "False" ? "bad" : ""; // False: the controller has given up
  if (neutral.test(c.type)) return "";
  if (negative.test(c.type)) return {True: "bad", False: "good"}[c.status] ?? "";
  return {True: "good", False: "bad", Unknown: "bad"}[c.status] ?? "";
}

// findings returns the reasons that an object itself gives for not being ready: {words, since}.
function findings(o) {
  const out = [];
  const m = o.metadata;
  if (m.deletionTimestamp) out.push({words: `is being deleted; ${counted(finalizersOf(o).length, "finalizer")} ${finalizersOf(o).length === 1 ? "holds" : "hold"} it`, since: m.deletionTimestamp});
  const over = /^(Succeeded|Completed?)$/.test(o.status?.phase) || conditions(o).some(c => c.type === "Complete" && c.status === "True");
  for (const c of conditions(o)) {
    if (polarity(c) === "bad" && !over) out.push({words: `${c.type} is ${c.status}${c.reason ? ": " + c.reason : ""}${c.message ? " – " + c.message : ""}`, since: c.lastTransitionTime});
  }
  const s = o.status ?? {};
  if (s.observedGeneration != null && m.generation != null && s.observedGeneration < m.generation) out.push({words: `its controller has not seen the last change of its spec (generation ${m.generation}, observed ${s.observedGeneration})`});
  if (typeof o.spec?.replicas === "number" && "replicas" in (s ?? {}) === false && o.spec.replicas > 0 && !s.observedGeneration) out.push({words: `no controller has written a status: ${o.spec.replicas} replicas are wanted`});
  if (typeof o.spec?.replicas === "number" && (s.readyReplicas ?? 0) < o.spec.replicas && s.observedGeneration) out.push({words: `${s.readyReplicas ?? 0} of ${o.spec.replicas} replicas are ready`});
  for (const c of [...(s.initContainerStatuses ?? []), ...(s.containerStatuses ?? [])]) {
    const w = c.state?.waiting ?? (c.state?.terminated?.exitCode ? c.state.terminated : null);
    if (w) out.push({words: `container ${c.name}: ${w.reason ?? "exit code " + w.exitCode}${w.message ? " – " + w.message : ""}`, since: c.state.terminated?.finishedAt});
  }
  if (s.phase && /fail|pending|lost|error/i.test(s.phase) && !out.length) out.push({words: `its phase is ${s.phase}${s.reason ? ": " + s.reason : ""}${s.message ? " – " + s.message : ""}`});
  return out;
}

// finalizersOf returns the finalizers of an object. Namespaces have more of them in their spec.
export const finalizersOf = o => [...(o.metadata.finalizers ?? []), ...(o.kind === "Namespace" ? o.spec?.finalizers ?? [] : [])];

const conditions = o => (Array.isArray(o.status?.conditions) ? o.status.conditions.filter(c => c && typeof c.type === "string") : []);

// around returns the owners, the dependents and the references of an object, each with its findings, and its own.
export async function around({object: o}, signal) {
  const [above, children, refs] = await Promise.all([upwards(o, signal), family(o.metadata.namespace ?? "", signal), missing(o, signal)]);
  return {above, refs, below: await downwards(o, children, signal, 0, new Set([o.metadata.uid])), own: findings(o), unread: children.missing};
}

// why returns the tab with the state of an object.
export async function why(view, signal) {
  const {object: o} = view;
  const [{above, refs, below, own, unread}, events] = await Promise.all([around(view, signal), eventsOf(o, signal)]);
  const causes = [...own, ...refs.filter(r => r.found === undefined && !r.optional), ...below.filter(n => n.bad)].length;
  return h("div", {class: "state"},
    h("p", {class: ["verdict", causes ? "bad" : "good"]}, causes ? "Not ready, or not as wanted" : conditions(o).length ? "Ready: no condition, reference or dependent says otherwise" : "No problem is known"),
    h("div", {class: "columns"},
      h("div", null,
        h("h2", null, "Chain"),
        h("ul", {class: "chain"}, above.map(a => node(a, "owner")), node({o, k: view.k, findings: own, self: true}, ""), below.map(n => tree(n))),
        unread > 0 && h("p", {class: "quiet"}, `${unread} kinds could not be read; dependents of these are not shown.`),
        refs.length > 0 && [h("h2", null, "Refers to"), h("ul", {class: "refs"}, refs.map(r => h("li", null,
          h("span", {class: ["dot", r.found === undefined ? (r.optional ? "wait" : "bad") : r.found === null ? "" : "good"]}), h("span", {class: "quiet"}, r.k.kind, " "),
          r.found ? h("a", {href: objectOf(r.k, r.namespace, r.name)}, r.name) : h("b", null, r.name),
          r.found === undefined && (r.optional ? " does not exist (optional)" : " does not exist"), r.found === null && " – you may not read it",
          h("code", {class: "quiet at"}, r.path.filter(p => typeof p === "string").slice(-3).join(".")))))]),
      h("div", null,
        conditions(o).length > 0 && [h("h2", null, "Conditions"), table(["Condition", "Status", "Since", "Reason and message"], conditions(o).map(c => [
          c.type, h("span", {class: "badge " + polarity(c)}, c.status ?? ""), since(c.lastTransitionTime), [h("b", null, c.reason ?? ""), " ", c.message ?? ""]]))],
        h("h2", null, "Events"), events.length ? table(["Last", "Type", "Reason", "Message"], events.slice(0, 50).map(e => [
          since(e.when), h("span", {class: "badge " + (e.type === "Warning" ? "bad" : "")}, e.type), e.reason + (e.count > 1 ? ` ×${e.count}` : ""), e.message ?? e.note])) : h("p", {class: "quiet"}, "No event is about this object."),
        labels(o))));
}

const since = t => (t ? h("span", {title: moment(t)}, age(t)) : "");

// labels shows labels and annotations.
function labels(o) {
  const one = (title, map) => Object.keys(map ?? {}).length > 0 && [h("h2", null, title), h("dl", {class: "pairs"}, Object.entries(map).map(([n, v]) => [h("dt", null, n), h("dd", null, n === "kubectl.kubernetes.io/last-applied-configuration" ? "(in the YAML)" : short(v, 300))]))];
  return [one("Labels", o.metadata.labels), one("Annotations", o.metadata.annotations)];
}

async function upwards(o, signal, found = []) {
  const [owner] = owners(o).sort((a, b) => Number(Boolean(b.controller)) - Number(Boolean(a.controller)));
  if (!owner || found.length > depth) return found;
  if (!owner.k) return [{k: {kind: owner.kind}, name: owner.name, findings: [{words: "its kind is not served here"}]}, ...found];
  const parent = await read(owner.k, owner.namespace, owner.name, signal);
  if (!parent || parent.metadata.uid !== owner.uid) {
    return [{k: owner.k, name: owner.name, namespace: owner.namespace, findings: parent === null ? [] : [{words: "does not exist any more: the garbage collector will delete its dependents"}]}, ...found];
  }
  return upwards(parent, signal, [{o: parent, k: owner.k, findings: findings(parent)}, ...found]);
}

async function missing(o, signal) {
  return Promise.all(references(o).slice(0, most).map(async r => ({...r, found: await read(r.k, r.namespace, r.name, signal)})));
}

// downwards reads the dependents, those with problems first.
async function downwards(o, children, signal, level, seen) {
  const all = (children.get(o.metadata.uid) ?? []).filter(c => !seen.has(c.metadata.uid));
  all.forEach(c => seen.add(c.metadata.uid));
  if (level >= depth) return [];
  const nodes = await Promise.all(all.slice(0, most).map(async ({k, metadata: m}) => {
    const child = await read(k, m.namespace, m.name, signal);
    if (!child) return {k, name: m.name, namespace: m.namespace, findings: [], below: []};
    const [below, refs, events] = await Promise.all([downwards(child, children, signal, level + 1, seen), missing(child, signal), findings(child).length ? eventsOf(child, signal) : []]);
    const own = [...findings(child), ...refs.filter(r => r.found === undefined && !r.optional).map(r => ({words: `${r.k.kind} ${r.name} does not exist (${r.path.filter(p => typeof p === "string").slice(-2).join(".")})`}))];
    const warning = events.find(e => e.type === "Warning");
    if (warning && own.length) own.push({words: `${warning.reason}: ${warning.message}`, since: warning.when});
    return {o: child, k, findings: own, below, bad: own.length > 0 || below.some(b => b.bad)};
  }));
  nodes.sort((a, b) => Number(Boolean(b.bad)) - Number(Boolean(a.bad)));
  if (all.length > most) nodes.push({more: all.length - most, findings: [], below: []});
  return nodes;
}

// node shows an object of the chain.
function node(n, what) {
  if (n.more) return h("li", {class: "quiet"}, `${n.more} more dependents`);
  const name = n.o?.metadata.name ?? n.name;
  return h("li", {class: n.self && "self"},
    h("span", {class: ["dot", n.findings.length ? "bad" : n.o ? "good" : ""]}), h("span", {class: "quiet"}, n.k.kind, " "),
    n.self || !n.k.resource ? h("b", null, name) : h("a", {href: objectOf(n.k, n.o?.metadata.namespace ?? n.namespace, name)}, name), what && h("small", {class: "quiet"}, " ", what),
    n.findings.map(f => h("p", {class: "finding"}, f.words, f.since && h("span", {class: "quiet", title: moment(f.since)}, ` (${age(f.since)} ago)`))));
}

const tree = n => (n.more ? node(n) : [node(n, ""), n.below.length > 0 && h("li", {class: "nest"}, h("ul", {class: "chain"}, n.below.map(tree)))]);
