// The view in which a new object is written, beginning with the required fields of its kind.
import {find, pathOf, state, words} from "./api.js";
import {h, toast} from "./dom.js";
import {dryRun, Editor, writing} from "./editor.js";
import {go, listOf, namespace, partsOf} from "./route.js";
import {example, schemaOf} from "./schema.js";
import {toText} from "./yaml.js";

// create shows the editor for a new object.
export async function create(at, signal) {
  const k = await find(at, signal);
  document.title = `New ${k.kind} · anykind console`;
  const {schemas, root} = await schemaOf(k, k.version, signal);
  const {apiVersion, kind, metadata, status, ...rest} = root ? example(schemas, {...root, required: [...new Set([...(root.required ?? []), ...Object.keys(root.properties ?? {}).filter(p => p === "spec")])]}) : {};
  const ns = namespace() || state.context.namespace || "default";
  const path = parameters => text => writing(pathOf(k, k.namespaced ? namespaceOf(text) ?? ns : ""), parameters);
  const editor = new Editor({
    text: toText({apiVersion: k.group ? `${k.group}/${k.version}` : k.version, kind: k.kind, metadata: {name: "example", ...(k.namespaced ? {namespace: ns} : {})}, ...rest}),
    ask: text => dryRun("POST", path({dryRun: "All"})(text), text, signal), signal, cancel: () => go(partsOf("list", k)),
    save: async (text, type) => {
      const answer = await words(path()(text), {method: "POST", body: text, type});
      const o = JSON.parse(answer.text);
      toast(`${k.kind} ${o.metadata.name} created`);
      go(partsOf("object", k, o.metadata.namespace ?? "-", o.metadata.name));
      return answer;
    },
  });
  setTimeout(() => editor.focus());
  return h("section", null, h("header", {class: "top"}, h("h1", null, "New ", h("a", {class: "quiet", href: listOf(k)}, k.kind))), h("div", {class: "body"}, editor.node));
}

// namespaceOf returns the namespace that a text names.
const namespaceOf = text => /^metadata:\n(?: .*\n)*? {2}namespace: *"?([a-z0-9-]+)"? *$/m.exec(text)?.[1];
