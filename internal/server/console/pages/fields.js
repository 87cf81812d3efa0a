// The owners of fields, from metadata.managedFields.

// managers returns the field sets of an object: {manager, operation, subresource, time, fields}.
export const managers = object => (object.metadata?.managedFields ?? []).map(m => ({...m, fields: m.fieldsV1 ?? {}}));

// ownersOf returns the managers that own the field at a path. A field set names an element of a list by its keys, its
// value, or its index; a set without children owns all below it.
export function ownersOf(all, object, path, leaf) {
  return all.filter(m => owns(m.fields, object, path, leaf));
}

function owns(set, value, path, leaf) {
  let here = set;
  for (let i = 0; i < path.length; i++) {
    if (i > 0 && Object.keys(here).length === 0) return leaf;
    value = value?.[path[i]];
    here = typeof path[i] === "number" ? element(here, value, path[i]) : here["f:" + path[i]];
    if (!here) return false;
  }
  return leaf || "." in here;
}

function element(set, value, index) {
  for (const [key, below] of Object.entries(set)) {
    const kind = key.slice(0, 2);
    if (kind === "k:" && Object.entries(JSON.parse(key.slice(2))).every(([n, v]) => value?.[n] === v)) return below;
    if (kind === "v:" && JSON.parse(key.slice(2)) === value) return below;
    if (kind === "i:" && +key.slice(2) === index) return below;
  }
  return null;
}
