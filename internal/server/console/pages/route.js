// Addresses of views: #/NAME/PART/PART?parameter=value. Every view can be opened by its address.
import {state} from "./api.js";

// here returns the address of the page: the name of the view, its parts, and its parameters.
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name = "", ...parts] = path.split("/").map(decodeURIComponent);
  return {name, parts, query: new URLSearchParams(query)};
}

// link returns the address of a view. The context and the time to look at stay as they are, unless parameters say otherwise.
export function link(parts, parameters = {}) {
  const current = state.contexts.find(c => c.current);
  const all = {
    context: state.context && state.context !== current ? state.context.name : "", namespace: namespace(), at: state.at, ...parameters,
  };
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(all)) if (value) q.set(name, value);
  return "#/" + parts.map(encodeURIComponent).join("/") + (String(q) ? "?" + q : "");
}

// namespace returns the chosen namespace; empty for all of them.
export const namespace = () => here().query.get("namespace") ?? "";

// go opens a view.
export const go = (parts, parameters) => (location.hash = link(parts, parameters));

let opened = ""; // the address of the view that is shown

// opening returns the address of the view that is opened now.
export function opening() {
  opened = location.hash;
  return here();
}

// change sets parameters of the shown view without opening it again. If the user has just left for another address, that
// one stays.
export function change(parameters) {
  if (location.hash !== opened) return;
  const at = here();
  history.replaceState(null, "", link([at.name, ...at.parts], {...Object.fromEntries(at.query), ...parameters}));
  opened = location.hash;
}

// Addresses of views of kinds and objects. The core group has no name, so its address has a dash.
export const partsOf = (name, k, ...more) => [name, k.group || "-", k.resource, ...more];
export const listOf = (k, parameters) => link(partsOf("list", k), parameters);
export const pageOf = k => link(partsOf("kind", k));
export const objectOf = (k, ns, name, parameters) => link(partsOf("object", k, ns || "-", name), parameters);
