// The kinds at the side, by group.
import {listed, state} from "./api.js";
import {fill, h} from "./dom.js";
import {here, listOf} from "./route.js";

// groups are the kinds that most people look for, under the names of Kubernetes' documentation.
const groups = [
  ["Workloads", ["deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps", "jobs.batch", "cronjobs.batch", "pods"]],
  ["Configuration", ["configmaps", "secrets", "horizontalpodautoscalers.autoscaling", "resourcequotas", "limitranges"]],
  ["Network", ["services", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io", "endpointslices.discovery.k8s.io"]],
  ["Storage", ["persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"]],
  ["Cluster", ["nodes", "namespaces", "events.events.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"]],
  ["Access", ["serviceaccounts", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"]],
];
const shown = 300; // kinds, of those that a filter finds

let filter = "";

// side draws the kinds.
export function side(to) {
  const at = here();
  const current = (at.name === "list" || at.name === "object" || at.name === "kind") && (at.parts[1] + (at.parts[0] === "-" ? "" : "." + at.parts[0]));
  const all = state.kinds.filter(listed);
  const entry = k => h("li", null, h("a", {href: listOf(k), "aria-current": k.title === current ? "page" : null, title: k.title}, k.kind, k.custom && h("small", null, k.group)));
  const content = h("div", {class: "kinds"});
  const draw = () => {
    const placed = new Set();
    const sections = [];
    const section = (title, kinds, open) => kinds.length && sections.push(h("details", {open: open || filter || kinds.some(k => k.title === current)}, h("summary", {title}, h("span", null, title), h("small", null, String(kinds.length))), h("ul", null, kinds.map(entry))));
    const found = all.filter(k => !filter || [k.title, k.kind, ...k.short].some(w => w.toLowerCase().includes(filter)));
    for (const [title, names] of groups) {
      const kinds = names.map(n => found.find(k => k.title === n)).filter(Boolean);
      kinds.forEach(k => placed.add(k));
      section(title, kinds, title === "Workloads" || title === "Configuration");
    }
    const byGroup = Map.groupBy(found.filter(k => !placed.has(k)).slice(0, shown), k => k.group || "core");
    for (const group of [...byGroup.keys()].sort()) section(group, byGroup.get(group), false);
    const more = found.length - placed.size - shown;
    fill(content, sections, !found.length && h("p", {class: "quiet pad"}, "No kind has this name."), more > 0 && h("p", {class: "quiet pad"}, `${more} more: type a part of their names.`));
  };
  const input = h("input", {type: "search", placeholder: "Filter kinds", "aria-label": "Filter kinds", value: filter, input: e => ((filter = e.target.value.trim().toLowerCase()), draw())});
  draw();
  const top = to.querySelector(".kinds")?.scrollTop ?? 0;
  fill(to, input, content);
  content.scrollTop = top;
}
