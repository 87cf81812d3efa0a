// Changes of an object that take one click, for objects whose fields or subresources allow them.
import {json, encode} from "./api.js";
import {writing} from "./editor.js";
import {dialog, h, toast} from "./dom.js";

// actions returns the buttons for an object.
export function actions(view) {
  const {k, object: o} = view;
  if (!k.verbs.includes("patch")) return [];
  const out = [];
  if (k.subresources.includes("scale") && typeof o.spec?.replicas === "number") out.push(h("button", {click: () => scale(view)}, "Scale…"));
  if (["deployments.apps", "statefulsets.apps", "daemonsets.apps"].includes(k.title)) {
    const later = o.spec.paused ? "It is paused: pods are replaced once it goes on." : o.spec.updateStrategy?.type === "OnDelete" ? "Its strategy is OnDelete: a pod is replaced once it is deleted." : `All pods of ${k.kind} ${o.metadata.name} are replaced.`;
    out.push(h("button", {click: () => confirm(view, "Restart", later, {spec: {template: {metadata: {annotations: {"kubectl.kubernetes.io/restartedAt": new Date().toISOString()}}}}})}, "Restart…"));
  }
  if (k.title === "nodes") {
    const off = Boolean(o.spec?.unschedulable);
    out.push(h("button", {click: () => confirm(view, off ? "Uncordon" : "Cordon", off ? "Pods may be scheduled on it again." : "No further pods are scheduled on it.", {spec: {unschedulable: off ? null : true}})}, off ? "Uncordon…" : "Cordon…"));
  }
  return out;
}

// scale asks for the number of replicas.
function scale(view) {
  const input = h("input", {type: "number", min: 0, required: true, value: view.object.spec.replicas, "aria-label": "Replicas"});
  const close = dialog(`Scale ${view.name}`, h("form", {class: "tools", submit: async e => {
    e.preventDefault();
    if (await patch(view, "/scale", {spec: {replicas: input.valueAsNumber}}, "Scaled")) close();
  }}, input, " replicas", h("button", {class: "main"}, "Scale")));
  input.select();
}

function confirm(view, title, effect, change) {
  const button = h("button", {class: "main", click: async () => (await patch(view, "", change, "Saved")) && close()}, title);
  const close = dialog(`${title} ${view.name}`, h("p", null, effect), h("p", {class: "tools"}, button));
  button.focus();
}

// patch merges a change into an object or a subresource, and reports whether the server has accepted it.
async function patch(view, subresource, change, done) {
  try {
    await json(writing(view.path + subresource), {method: "PATCH", body: encode(change), type: "application/merge-patch+json"});
    toast(done);
    return true;
  } catch (e) {
    toast(e.message, true);
    return false;
  }
}
