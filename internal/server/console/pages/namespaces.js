// The choice of a namespace.
import {json, metadata, state} from "./api.js";
import {fill, h} from "./dom.js";
import {go, here, namespace} from "./route.js";

// namespaces returns the input for the namespace; empty for all of them. It proposes the ones that exist.
export function namespaces() {
  const names = h("datalist", {id: "namespaces"});
  const open = value => {
    const at = here();
    if (at.name === "object") go([]), setTimeout(() => go(["list", at.parts[0], at.parts[1]], {namespace: value}));
    else go([at.name, ...at.parts], {...Object.fromEntries(at.query), namespace: value});
  };
  const input = h("input", {
    list: "namespaces", placeholder: "All namespaces", "aria-label": "Namespace of lists", title: "Namespace; empty for all", value: namespace(), class: "namespace", type: "search",
    change: e => open(e.target.value.trim()),
    focus: async () => {
      try {
        const list = await json("/api/v1/namespaces?limit=1000", {accept: metadata});
        fill(names, list.items.map(n => h("option", {value: n.metadata.name})));
      } catch {
        fill(names, h("option", {value: state.context.namespace || "default"})); // no right to list them
      }
    },
  });
  return h("span", null, input, names);
}
