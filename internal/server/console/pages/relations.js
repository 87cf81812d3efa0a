// Owners, dependents, and references of objects, by metadata and by the conventions of the API.
import {json, kindNamed, kindOf, listed, metadata, pages, past, pathOf, state} from "./api.js";

const atOnce = 5; // requests, of the six connections that a browser opens to a server
const fresh = 5000; // milliseconds that the metadata of a namespace is kept

// named finds the kinds of fields that hold only a name.
const named = {
  secretName: "secrets", configMapName: "configmaps", claimName: "persistentvolumeclaims", serviceAccountName: "serviceaccounts", nodeName: "nodes",
  priorityClassName: "priorityclasses.scheduling.k8s.io", storageClassName: "storageclasses.storage.k8s.io", volumeName: "persistentvolumes",
  ingressClassName: "ingressclasses.networking.k8s.io", runtimeClassName: "runtimeclasses.node.k8s.io", serviceName: "services",
  secretKeyRef: "secrets", secretRef: "secrets", configMapKeyRef: "configmaps", configMapRef: "configmaps", configMap: "configmaps", imagePullSecrets: "secrets",
  service: "services", persistentVolumeClaim: "persistentvolumeclaims",
};

const titled = title => state.kinds.find(k => k.title === title);

// references returns the objects that the fields of an object name: {path, k, namespace, name, optional}.
export function references(object) {
  const out = [];
  const seen = new Set();
  const add = (path, k, namespace, name, optional) => {
    if (!k || typeof name !== "string" || !name) return;
    if (k.namespaced && !namespace && !object.metadata.namespace) return; // its controller knows the namespace
    const r = {path, k, namespace: k.namespaced ? namespace || object.metadata.namespace : "", name, optional: optional === true};
    const id = [k.title, r.namespace, name].join("/");
    if (!seen.has(id)) out.push(r);
    seen.add(id);
  };
  const walk = (value, path) => {
    if (Array.isArray(value)) return value.forEach((v, i) => walk(v, [...path, i]));
    if (!value || typeof value !== "object") return;
    const field = path.findLast(p => typeof p === "string");
    if (typeof value.kind === "string" && typeof value.name === "string" && path.length > 1) {
      const api = value.apiVersion ?? (value.apiGroup ? value.apiGroup + "/" : value.group ? value.group + "/" : undefined);
      add(path, kindNamed(api, value.kind), value.namespace, value.name, value.optional);
    } else if (named[field] && typeof value.name === "string") {
      add(path, titled(named[field]), value.namespace, value.name, value.optional);
    }
    for (const [k, v] of Object.entries(value)) {
      if (typeof v === "string") named[k] && !["service", "configMap"].includes(k) && add([...path, k], titled(named[k]), undefined, v, value.optional);
      else walk(v, [...path, k]);
    }
  };
  for (const part of Object.keys(object)) if (!["metadata", "status", "kind", "apiVersion"].includes(part)) walk(object[part], [part]);
  return out;
}

// owners returns the owner references of an object with their kinds.
export const owners = object => (object.metadata.ownerReferences ?? []).map(o => ({...o, k: kindNamed(o.apiVersion, o.kind), namespace: object.metadata.namespace}));

// read reads an object; undefined if it does not exist, null if the server does not give it to the user.
export async function read(k, namespace, name, signal) {
  try {
    return await json(past(pathOf(k, k.namespaced ? namespace : "", name)), {signal});
  } catch (e) {
    if (e.code === 404) return undefined;
    if (e.code) return null;
    throw e;
  }
}

let known = {};

// family returns the children of each uid in a namespace, or in all of them: uid → [{k, metadata}].
export async function family(namespace, signal) {
  const key = [state.base, namespace, state.at].join("|");
  if (known.key === key && Date.now() - known.at < fresh) return known.children;
  known = {key, at: Date.now(), children: readFamily(namespace, signal)};
  known.children.catch(() => (known = {})); // aborted: the next one reads again
  return known.children;
}

async function readFamily(namespace, signal) {
  const children = new Map();
  const kinds = state.kinds.filter(k => listed(k) && (k.namespaced || !namespace) && !(k.group === "" && k.resource === "events"));
  let missing = 0;
  const one = async () => {
    for (let k; (k = kinds.pop()); ) {
      let owned = [];
      try {
        await pages(pathOf(k, namespace), {
          accept: metadata, limit: 5000, signal, each: (page, first) => {
            if (first) owned = []; // also when the list begins again
            owned.push(...(page.items ?? []).filter(i => i.metadata.ownerReferences));
          },
        });
        for (const {metadata: m} of owned) {
          for (const o of m.ownerReferences) {
            if (!children.has(o.uid)) children.set(o.uid, []);
            children.get(o.uid).push({k, metadata: m});
          }
        }
      } catch (e) {
        if (signal?.aborted) throw e;
        missing++;
      }
    }
  };
  await Promise.all(Array.from({length: atOnce}, one));
  children.missing = missing;
  return children;
}

// eventsOf returns the events about an object, the last first.
export async function eventsOf(object, signal) {
  const m = object.metadata;
  const k = kindOf("", "events");
  if (!k) return [];
  try {
    const list = await json(past(`${pathOf(k, m.namespace || "default")}?fieldSelector=${encodeURIComponent("involvedObject.uid=" + m.uid)}&limit=200`), {signal});
    return list.items.map(e => ({...e, when: e.series?.lastObservedTime ?? e.lastTimestamp ?? e.eventTime ?? e.metadata.creationTimestamp})).sort((a, b) => (a.when < b.when ? 1 : -1));
  } catch (e) {
    if (e.code) return [];
    throw e;
  }
}
