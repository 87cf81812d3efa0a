// Rights: those of the user in a namespace, the users who have one, and those of another user.
import {json, kindOf, pathOf, send, state} from "./api.js";
import {fill, h, table} from "./dom.js";
import {change, namespace} from "./route.js";

// access shows the rights of the user, and answers which users have a right, and which rights a user has.
export async function access(at, signal) {
  document.title = "Rights · anykind console";
  const ns = namespace() || state.context.namespace || "default";
  const mine = h("div", null, "…");
  const others = h("div"), theirs = h("div");
  const value = name => at.query.get(name) ?? "";
  const field = (name, placeholder, otherwise = "") => h("input", {name, placeholder, "aria-label": placeholder, required: true, value: value(name) || otherwise});
  const asking = (words, to, ask, ...fields) => h("form", {class: "tools", submit: e => {
    e.preventDefault();
    const given = Object.fromEntries(new FormData(e.target));
    change(given);
    show(to, () => ask(given), signal);
  }}, words, fields, namespace() ? `in ${namespace()}` : "in some namespace", h("button", {class: "main"}, "Show"));
  const byRight = ({verb, resource}) => who(verb, resource, namespace(), signal);
  const byUser = ({subject, name}) => rightsOf(subject, name, namespace(), signal);
  const kinds = ["User", "Group", "ServiceAccount"].map(k => h("option", {selected: k === value("subject")}, k));
  rules(mine, ns, signal);
  if (value("verb")) show(others, () => byRight({verb: value("verb"), resource: value("resource")}), signal);
  if (value("name")) show(theirs, () => byUser({subject: value("subject"), name: value("name")}), signal);
  return h("section", null, h("header", {class: "top"}, h("h1", null, "Rights")), h("div", {class: "pad"},
    asking("Which users may", others, byRight, field("verb", "verb", "get"), field("resource", "resource.group", "secrets")), others,
    asking("Which rights has the", theirs, byUser, h("select", {name: "subject", "aria-label": "Kind of the subject"}, kinds), field("name", "name or namespace:name")), theirs,
    h("h2", null, "Your rights in ", ns), mine));
}

// show fills an element with an answer.
async function show(to, ask, signal) {
  const waiting = h("p", {class: "quiet"}, "…");
  fill(to, waiting);
  try {
    const answer = await ask();
    if (waiting.parentNode === to) fill(to, answer, h("p", {class: "quiet"}, "From RBAC. Members of system:masters have every right; other groups and authorizers may give more.")); // else there is a newer question
  } catch (e) {
    if (!signal.aborted && waiting.parentNode === to) fill(to, h("p", {class: "bad"}, e.message));
  }
}

// rules shows the rights of the user.
async function rules(to, ns, signal) {
  try {
    const {status} = await send("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: {namespace: ns}});
    const rows = [
      ...(status.resourceRules ?? []).map(r => [r.verbs.join(", "), (r.resources ?? []).join(", "), (r.apiGroups ?? []).map(g => g || "core").join(", "), (r.resourceNames ?? []).join(", ")]),
      ...(status.nonResourceRules ?? []).map(r => [r.verbs.join(", "), (r.nonResourceURLs ?? []).join(", "), "", ""]),
    ];
    fill(to, table(["Verbs", "Resources or URLs", "Groups", "Names"], rows), status.incomplete && h("p", {class: "quiet"}, "The list may be incomplete: ", status.evaluationError ?? "an authorizer cannot list its rules."));
  } catch (e) {
    if (!signal.aborted) fill(to, h("p", {class: "bad"}, e.message));
  }
}

// bindings returns all bindings with the rules of their roles.
async function bindings(ns, signal) {
  const names = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
  const [clusterRoles, clusterBindings, roles, local] = await Promise.all(names.map(async (n, i) => (await json(pathOf(kindOf("rbac.authorization.k8s.io", n), i > 1 ? ns : ""), {signal})).items));
  const byName = new Map([...clusterRoles.map(r => ["/" + r.metadata.name, r]), ...roles.map(r => [r.metadata.namespace + "/" + r.metadata.name, r])]);
  return [...clusterBindings, ...local].map(b => ({
    subjects: b.subjects ?? [], rules: byName.get((b.roleRef.kind === "Role" ? b.metadata.namespace : "") + "/" + b.roleRef.name)?.rules ?? [],
    where: b.metadata.namespace ?? "everywhere", by: [`${b.roleRef.kind} ${b.roleRef.name}`, b.metadata.name],
  }));
}

// who returns the subjects whose roles have a right.
async function who(verb, title, ns, signal) {
  const [resource, ...group] = title.split(".");
  const rows = [];
  for (const {subjects, rules, where, by} of await bindings(ns, signal)) {
    const found = rules.filter(x => has(x.verbs, verb) && has(x.apiGroups, group.join(".")) && has(x.resources, resource));
    if (!found.length) continue;
    const only = found.every(r => r.resourceNames?.length) ? found.flatMap(r => r.resourceNames).join(", ") : "";
    for (const s of subjects) rows.push([h("b", null, s.name), s.kind + (s.namespace ? " in " + s.namespace : ""), where, only || "all", ...by]);
  }
  return rows.length ? table(["Subject", "Kind", "Where", "Names", "By role", "By binding"], rows) : h("p", null, "No role gives this right.");
}

// rightsOf returns the rules that bindings give to a subject, also by the groups that all such subjects are in.
async function rightsOf(kind, name, ns, signal) {
  const [, space, account] = /^(?:system:serviceaccount:)?([^:]+):([^:]+)$/.exec(kind === "ServiceAccount" || name.startsWith("system:serviceaccount:") ? name : "") ?? [];
  if (kind === "ServiceAccount" && !account) return h("p", {class: "bad"}, "The name of a ServiceAccount is namespace:name.");
  const user = account ? `system:serviceaccount:${space}:${account}` : name;
  const groups = kind === "Group" ? [name] : [name === "system:anonymous" ? "system:unauthenticated" : "system:authenticated", ...(account ? ["system:serviceaccounts", "system:serviceaccounts:" + space] : [])];
  const is = s => s.kind === "Group" ? groups.includes(s.name) : s.kind === "ServiceAccount" ? s.name === account && s.namespace === space : kind !== "Group" && s.name === user;
  const rows = [];
  for (const {subjects, rules, where, by} of await bindings(ns, signal)) {
    if (subjects.some(is)) for (const r of rules) rows.push([r.verbs.join(", "), (r.resources ?? r.nonResourceURLs ?? []).join(", "), (r.apiGroups ?? []).map(g => g || "core").join(", "), (r.resourceNames ?? []).join(", "), where, ...by]);
  }
  return rows.length ? table(["Verbs", "Resources or URLs", "Groups", "Names", "Where", "By role", "By binding"], rows) : h("p", null, "No binding has this subject.");
}

// has reports whether a list of a rule has a value, or all of them.
export const has = (list, v) => list?.includes("*") || list?.includes(v);
