// Rights: those of the user in a namespace, and the users who have one.
import {json, kindOf, pathOf, send, state} from "./api.js";
import {fill, h, table} from "./dom.js";
import {change, namespace} from "./route.js";

// access shows the rights of the user, and answers which users have a right.
export async function access(at, signal) {
  document.title = "Rights · anykind console";
  const ns = namespace() || state.context.namespace || "default";
  const mine = h("div", null, "…");
  const others = h("div");
  const field = (name, placeholder) => h("input", {name, placeholder, "aria-label": placeholder, required: name !== "namespace", value: at.query.get(name) ?? (name === "verb" ? "get" : name === "resource" ? "secrets" : "")});
  const form = h("form", {class: "tools", submit: e => {
    e.preventDefault();
    const {verb, resource} = Object.fromEntries(new FormData(form));
    change({verb, resource});
    who(others, verb, resource, namespace(), signal);
  }}, "Which users may", field("verb", "verb"), field("resource", "resource.group"), namespace() ? `in ${namespace()}` : "in some namespace", h("button", {class: "main"}, "Show"));
  rules(mine, ns, signal);
  if (at.query.get("verb")) who(others, at.query.get("verb"), at.query.get("resource"), namespace(), signal);
  return h("section", null, h("header", {class: "top"}, h("h1", null, "Rights")), h("div", {class: "pad"},
    form, others, h("h2", null, "Your rights in ", ns), mine));
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

// who shows the subjects whose roles have a right.
async function who(to, verb, title, ns, signal) {
  fill(to, h("p", {class: "quiet"}, "…"));
  const [resource, ...group] = title.split(".");
  const rbac = "rbac.authorization.k8s.io";
  try {
    const names = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
    const [clusterRoles, clusterBindings, roles, bindings] = await Promise.all(names.map(async (n, i) => (await json(pathOf(kindOf(rbac, n), i > 1 ? ns : ""), {signal})).items));
    const allows = r => (r?.rules ?? []).filter(x => has(x.verbs, verb) && has(x.apiGroups, group.join(".")) && has(x.resources, resource));
    const byName = new Map([...clusterRoles.map(r => ["/" + r.metadata.name, r]), ...roles.map(r => [r.metadata.namespace + "/" + r.metadata.name, r])]);
    const rows = [];
    for (const b of [...clusterBindings, ...bindings]) {
      const role = byName.get((b.roleRef.kind === "Role" ? b.metadata.namespace : "") + "/" + b.roleRef.name);
      const found = allows(role);
      if (!found.length) continue;
      const only = found.every(r => r.resourceNames?.length) ? found.flatMap(r => r.resourceNames).join(", ") : "";
      for (const s of b.subjects ?? []) rows.push([h("b", null, s.name), s.kind + (s.namespace ? " in " + s.namespace : ""), b.metadata.namespace ?? "everywhere", only || "all", `${b.roleRef.kind} ${b.roleRef.name}`, b.metadata.name]);
    }
    fill(to, rows.length ? table(["Subject", "Kind", "Where", "Names", "By role", "By binding"], rows) : h("p", null, "No role gives this right."), h("p", {class: "quiet"}, "From RBAC. Members of system:masters have every right; other authorizers may give more."));
  } catch (e) {
    if (!signal.aborted) fill(to, h("p", {class: "bad"}, e.message));
  }
}

// has reports whether a list of a rule has a value, or all of them.
export const has = (list, v) => list?.includes("*") || list?.includes(v);
