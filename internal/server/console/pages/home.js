// The first page: the search, the server, and the ways from here.
import {listed, own, state} from "./api.js";
import {h} from "./dom.js";
import {link, listOf} from "./route.js";
import {search} from "./search.js";

// home returns the first page.
export async function home() {
  const kinds = state.kinds.filter(listed);
  const v = state.version;
  return h("div", {class: "home"},
    h("h1", null, "What are you looking for?"),
    h("button", {class: "bigfind", click: search}, h("span", null, "Names, labels, values, conditions, messages of every kind"), h("kbd", null, "Ctrl K")),
    h("ul", {class: "cards"},
      card(link(["changes"]), "Changes", own() ? "Every change of every kind: user, time, and fields." : "Changes of the kinds that you choose, as they happen."),
      card(link(["access"]), "Rights", "Your rights here, and the users who have one."),
      ["deployments.apps", "pods", "configmaps", "customresourcedefinitions.apiextensions.k8s.io"].map(t => kinds.find(k => k.title === t)).filter(Boolean)
        .map(k => card(listOf(k), k.kind + "s", k.title))),
    h("dl", {class: "facts"},
      h("dt", null, "Server"), h("dd", null, state.context.server ?? location.origin, " · ", own() ? "anykind " + v.anykindVersion + ", Kubernetes " : "Kubernetes ", v.gitVersion),
      h("dt", null, "User"), h("dd", null, state.user ? `${state.user.username} (${(state.user.groups ?? []).join(", ")})` : "unknown"),
      h("dt", null, "Kinds"), h("dd", null, `${kinds.length} that can be listed`),
      !own() && [h("dt", null, "Missing here"), h("dd", null, "This server is not anykind: it has no history, no view of the past, and no search over stored values. Search finds names of kinds, and of objects by lists.")]));
}

const card = (href, title, words) => h("li", null, h("a", {href}, h("b", null, title), h("span", null, words)));
