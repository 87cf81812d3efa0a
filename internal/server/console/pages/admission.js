// Admission: the policies and webhooks that see an object or a kind, in their order, and their last answers.
import {has} from "./access.js";
import {encode, json, kindOf, own, pathOf, state, withQuery, words} from "./api.js";
import {age, fill, h, moment, table, toast} from "./dom.js";
import {objectOf} from "./route.js";

const group = "admissionregistration.k8s.io";
const steps = [
  ["mutating policy", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"], ["mutating webhook", "mutatingwebhookconfigurations"],
  ["validating policy", "validatingadmissionpolicies", "validatingadmissionpolicybindings"], ["validating webhook", "validatingwebhookconfigurations"],
];
const color = {Allowed: "good", Denied: "bad", Failed: "bad", Ignored: "wait", Reported: "wait"};

// admission returns the tab of an object with the steps that see it.
export async function admission(view, signal) {
  const {k, object: o} = view, m = o.metadata;
  const about = {name: m.name, labels: m.labels ?? {}, namespaceLabels: k.title === "namespaces" ? m.labels ?? {} : null};
  if (k.namespaced) about.namespaceLabels = await labelsOf(m.namespace, signal);
  const found = await stepsOf(k, about, signal);
  const body = h("div");
  const draw = async () => fill(body, content(k, found, await outcomesOf(k, {namespace: m.namespace, name: m.name}, signal)));
  await draw();
  const ask = h("button", {disabled: Boolean(state.at || view.gone) || !k.verbs.includes("update"), title: "Sends the object as it is, as a dry run", click: async () => {
    ask.disabled = true;
    const said = await rehearsed(view);
    await draw().catch(e => toast(e.message, true));
    body.append(said);
    ask.disabled = false;
  }}, "Ask them now");
  return h("div", null, h("h2", null, "Policies and webhooks, in order"), body, h("p", null, ask));
}

// labelsOf returns the labels of a namespace; null if they cannot be read.
async function labelsOf(namespace, signal) {
  try {
    return (await json(pathOf(kindOf("", "namespaces"), "", namespace), {signal})).metadata.labels ?? {};
  } catch (e) {
    if (!e.code) throw e;
    return null;
  }
}

// rehearsed replaces an object by itself in a dry run, and returns the answer as an element.
async function rehearsed(view) {
  try {
    const {warnings} = await words(view.path + "?dryRun=All", {method: "PUT", body: encode(view.object), type: "application/json"});
    return h("p", {class: "verdict good"}, "An update without a change is accepted.", warnings.map(w => h("p", {class: "quiet"}, w)));
  } catch (e) {
    return h("p", {class: "verdict bad"}, e.message);
  }
}

// admitting returns the part of the documentation of a kind about admission; empty without any step.
export async function admitting(k, signal) {
  const found = await stepsOf(k, null, signal);
  if (!found.length) return [];
  return [h("h2", null, "Admission, in order"), content(k, found, await outcomesOf(k, {limit: 20}, signal), true)];
}

// content shows steps, the last answer of each, and the last answers of all.
function content(k, found, outcomes, objects) {
  const none = h("p", {class: "quiet"}, "No stored policy or webhook sees this object.");
  if (!found.length && !outcomes?.length) return none;
  const titles = ["Step", "Configuration", "Rule", "If it fails", ...(outcomes?.length ? ["Last answer"] : [])];
  return [
    found.length ? table(titles, found.map(s => [s.step, s.error ? h("span", {class: "bad"}, s.error) : [titled(s), s.bindings && h("p", {class: "quiet"}, s.bindings)], s.rule, s.failure, ...(outcomes?.length ? [lastOf(s, outcomes)] : [])])) : none,
    !outcomes && h("p", {class: "quiet"}, own() ? "You may not read their last answers." : "This server does not remember their answers; anykind does."),
    outcomes?.length > 0 && [h("h2", null, "Last answers"), table(["When", ...(objects ? ["Object"] : []), "Operation", "User", "Step", "Answer"], outcomes.slice(0, 50).map(o => [
      when(o), ...(objects ? [o.object ? h("a", {href: objectOf(k, o.namespace, o.object)}, [o.namespace, o.object].filter(Boolean).join("/")) : ""] : []), [o.operation, o.subresource && " " + o.subresource, o.dryRun && " (dry run)"], o.user, `${o.step} ${titled(o)}`, answer(o)]))],
  ];
}

// titled names a webhook with its configuration, or a policy.
const titled = ({configuration, name}) => (name && name !== configuration ? `${configuration}: ${name}` : configuration);

const when = o => h("span", {title: moment(o.time)}, age(o.time));
const answer = o => [h("span", {class: "badge " + (color[o.result] ?? "")}, o.result), " ", o.message, (o.warnings ?? []).map(w => h("p", {class: "quiet"}, w))];

// lastOf shows the last answer of a step, for a policy that of each binding.
function lastOf(s, outcomes) {
  const seen = new Set();
  return outcomes.filter(o => o.step === s.step && o.configuration === s.configuration && (!s.name || o.name === s.name) && !seen.has(o.name) && seen.add(o.name)).map(o => h("p", null, answer(o), h("span", {class: "quiet"}, " ", when(o), " ago")));
}

// outcomesOf returns the last answers, the newest first; null if the server has none to give.
async function outcomesOf(k, parameters, signal) {
  if (!own()) return null;
  try {
    return (await json(withQuery("/admission/outcomes", {group: k.group, resource: k.resource, ...parameters}), {signal})).items;
  } catch (e) {
    if (!e.code) throw e;
    return null;
  }
}

// stepsOf returns the policies and webhooks whose rules match a kind, and, unless about is null, the labels and the name of an object.
async function stepsOf(k, about, signal) {
  const all = await Promise.all(steps.map(async ([step, resource, bindings]) => {
    const [of, binding] = [kindOf(group, resource), bindings && kindOf(group, bindings)];
    if (!of) return [];
    try {
      const [{items}, bound] = await Promise.all([json(pathOf(of), {signal}), binding ? json(pathOf(binding), {signal}) : {items: []}]);
      return items.flatMap(o => (bindings ? [policy(o, bound.items)] : webhooks(o))).map(s => ({...s, step, rule: ruleFor(s, k, about)})).filter(s => s.rule);
    } catch (e) {
      if (!e.code) throw e;
      return [{step, error: `cannot be read: ${e.message}`}];
    }
  }));
  return all.flat();
}

function policy({metadata: {name}, spec}, bindings) {
  const of = bindings.filter(b => b.spec.policyName === name).map(b => b.metadata.name + (b.spec.validationActions ? ` (${b.spec.validationActions.join(", ")})` : ""));
  const {resourceRules, excludeResourceRules, ...selectors} = spec.matchConstraints ?? {};
  return {configuration: name, failure: spec.failurePolicy ?? "Fail", rules: resourceRules, except: excludeResourceRules, conditions: spec.matchConditions, selectors, bindings: of.length ? "bound by " + of.join(", ") : "without a binding, and so without effect"};
}

const webhooks = o => (o.webhooks ?? []).map(w => ({configuration: o.metadata.name, name: w.name, failure: w.failurePolicy ?? "Fail", rules: w.rules, conditions: w.matchConditions, selectors: w}));

// ruleFor describes the rule of a step that matches; empty for none.
function ruleFor({rules, except, selectors, conditions}, k, about) {
  const matches = r => has(r.apiGroups, k.group) && r.resources?.some(name => ["*", "*/*", k.resource].includes(name)) && (!r.scope || r.scope === "*" || (r.scope === "Namespaced") === k.namespaced);
  const named = r => !r.resourceNames?.length || about && r.resourceNames.includes(about.name);
  const operations = list => [...new Set(list.flatMap(r => (r.operations.includes("*") ? ["CREATE", "UPDATE", "DELETE", "CONNECT"] : r.operations)))];
  const out = operations((except ?? []).filter(x => matches(x) && named(x)));
  const seen = operations((rules ?? []).filter(r => matches(r) && (!about || named(r)))).filter(o => !out.includes(o));
  if (!seen.length) return "";
  if (about && !(selects(selectors.objectSelector, about.labels) && (!about.namespaceLabels || selects(selectors.namespaceSelector, about.namespaceLabels)))) return "";
  const chosen = !about && ["namespaceSelector", "objectSelector"].some(n => Object.keys(selectors[n] ?? {}).length);
  return seen.join(", ") + (chosen ? ", of selected objects" : "") + (conditions?.length ? ", with conditions" : "");
}

// selects reports whether a label selector matches labels.
function selects(selector, labels) {
  const one = {
    In: e => e.values.includes(labels[e.key]), NotIn: e => !e.values.includes(labels[e.key]),
    Exists: e => Object.hasOwn(labels, e.key), DoesNotExist: e => !Object.hasOwn(labels, e.key),
  };
  return Object.entries(selector?.matchLabels ?? {}).every(([key, v]) => labels[key] === v) && (selector?.matchExpressions ?? []).every(e => one[e.operator]?.(e));
}
