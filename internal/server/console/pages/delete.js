// Deletion, with the objects that the garbage collector takes along.
import {pathOf, send} from "./api.js";
import {counted, dialog, fill, h, toast} from "./dom.js";
import {family} from "./relations.js";

const shown = 200; // lines of the preview
const listed = 20; // names of the objects

// whole are the kinds whose deletion deletes objects that do not name them as owners.
const whole = {
  namespaces: "Everything in the namespace is deleted with it.",
  "customresourcedefinitions.apiextensions.k8s.io": "All objects of the kind are deleted with it, in all namespaces.",
};

// remove asks before it deletes objects of a kind: {id (uid), name, namespace}. done is called after it.
export async function remove(k, objects, done) {
  const preview = h("div", {class: "preview"}, "Looking for dependents…");
  let children = null;
  const draw = () => children && fill(preview, dependents(objects, children, choice.value === "Orphan"));
  const choice = h("select", {"aria-label": "Dependents", change: draw},
    h("option", {value: "Background"}, "delete dependents afterwards (Background)"), h("option", {value: "Foreground"}, "delete dependents first (Foreground)"), h("option", {value: "Orphan"}, "keep dependents (Orphan)"));
  const button = h("button", {class: "danger", click: async () => {
    button.disabled = true;
    const failed = [];
    for (const o of objects) {
      try {
        await send("DELETE", pathOf(k, o.namespace, o.name), {apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: choice.value, preconditions: {uid: o.id}});
      } catch (e) {
        failed.push(`${o.name}: ${e.message}`);
      }
    }
    close();
    toast(failed.length ? failed.join("\n") : `${objects.length} ${k.kind} deleted`, failed.length > 0);
    done();
  }}, `Delete ${objects.length} ${k.kind}`);
  const names = objects.slice(0, listed).map(o => o.name).join(", ") + (objects.length > listed ? `, and ${objects.length - listed} more` : "");
  const close = dialog(objects.length === 1 ? `Delete ${k.kind} ${objects[0].name}?` : `Delete ${objects.length} objects?`, objects.length > 1 && h("p", null, names),
    whole[k.title] && h("p", {class: "bad"}, whole[k.title]), preview, h("p", null, choice), h("p", {class: "buttons"}, h("button", {click: () => close()}, "Cancel"), button));
  try {
    const spaces = new Set(objects.map(o => o.namespace));
    children = await family(spaces.size === 1 ? [...spaces][0] : "");
    draw();
  } catch (e) {
    fill(preview, h("p", {class: "bad"}, "Dependents are unknown: " + e.message));
  }
}

// dependents shows the objects that go with others: those whose owners all go. Some may stay for another owner.
function dependents(objects, children, kept) {
  const going = new Set(objects.map(o => o.id));
  const lines = [];
  const staying = new Map();
  const walk = (uid, depth) => {
    for (const {k, metadata: m} of children.get(uid) ?? []) {
      if (going.has(m.uid)) continue;
      if (!m.ownerReferences.every(o => going.has(o.uid))) {
        staying.set(m.uid, m.name);
        continue;
      }
      going.add(m.uid);
      staying.delete(m.uid);
      lines.push(h("li", {class: "depth" + Math.min(depth, 4)}, h("span", {class: "quiet"}, k.kind, " "), m.name));
      if (!kept) walk(m.uid, depth + 1);
    }
  };
  for (const o of objects) walk(o.id, 0);
  const it = objects.length === 1 ? "it" : "them";
  return [
    lines.length ? [h("p", null, kept ? `${counted(lines.length, "dependent")} with ${it} as an owner ${lines.length === 1 ? "stays" : "stay"}:` : `${counted(lines.length, "dependent")} would be deleted with ${it}:`), h("ul", null, lines.slice(0, shown)), lines.length > shown && h("p", null, `… and ${lines.length - shown} more`)]
      : h("p", null, `No other object names only ${it} as its owner.`),
    staying.size > 0 && h("p", {class: "quiet"}, `${counted(staying.size, "dependent")} with other owners ${staying.size === 1 ? "stays" : "stay"}: ${[...staying.values()].slice(0, listed).join(", ")}`),
    children.missing > 0 && h("p", {class: "quiet"}, `${children.missing} kinds could not be read, so there may be more.`),
  ];
}
