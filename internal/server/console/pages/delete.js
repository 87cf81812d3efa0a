// Deletion, with the objects that the garbage collector takes along.
import {pathOf, send} from "./api.js";
import {dialog, fill, h, toast} from "./dom.js";
import {family} from "./relations.js";

const shown = 200; // lines of the preview

// remove asks before it deletes objects of a kind: {id (uid), name, namespace}. done is called after it.
export async function remove(k, objects, done) {
  const preview = h("div", {class: "preview"}, "Looking for dependents…");
  let policy = "Background";
  const choice = h("select", {"aria-label": "Dependents", change: e => (policy = e.target.value)},
    h("option", {value: "Background"}, "delete dependents afterwards (Background)"), h("option", {value: "Foreground"}, "delete dependents first (Foreground)"), h("option", {value: "Orphan"}, "keep dependents (Orphan)"));
  const button = h("button", {class: "danger", click: async () => {
    button.disabled = true;
    const failed = [];
    for (const o of objects) {
      try {
        await send("DELETE", pathOf(k, o.namespace, o.name), {apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: policy, preconditions: {uid: o.id}});
      } catch (e) {
        failed.push(`${o.name}: ${e.message}`);
      }
    }
    close();
    toast(failed.length ? failed.join("\n") : `${objects.length} ${k.kind} deleted`, failed.length > 0);
    done();
  }}, `Delete ${objects.length} ${k.kind}`);
  const close = dialog(objects.length === 1 ? `Delete ${k.kind} ${objects[0].name}?` : `Delete ${objects.length} objects?`, preview,
    h("p", null, choice), h("p", {class: "buttons"}, h("button", {click: () => close()}, "Cancel"), button));
  try {
    const spaces = new Set(objects.map(o => o.namespace));
    const children = await family(spaces.size === 1 ? [...spaces][0] : "");
    const lines = [];
    const seen = new Set();
    const walk = (uid, depth) => {
      for (const c of children.get(uid) ?? []) {
        if (seen.has(c.metadata.uid)) continue;
        seen.add(c.metadata.uid);
        lines.push(h("li", {class: "depth" + Math.min(depth, 4)}, h("span", {class: "quiet"}, c.k.kind, " "), c.metadata.name));
        walk(c.metadata.uid, depth + 1);
      }
    };
    for (const o of objects) walk(o.id, 0);
    fill(preview, lines.length ? [h("p", null, `${lines.length} dependents would be deleted with ${objects.length === 1 ? "it" : "them"}:`), h("ul", null, lines.slice(0, shown)), lines.length > shown && h("p", null, `… and ${lines.length - shown} more`)]
      : h("p", null, "No other object depends on ", objects.length === 1 ? "it." : "them."),
    children.missing > 0 && h("p", {class: "quiet"}, `${children.missing} kinds could not be read, so there may be more.`));
  } catch (e) {
    fill(preview, h("p", {class: "bad"}, "Dependents are unknown: " + e.message));
  }
}
