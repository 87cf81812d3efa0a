// Owners, dependents and references of an object as a drawing. Each box is a link.
import {h, svg} from "./dom.js";
import {objectOf} from "./route.js";
import {around} from "./why.js";

const width = 190, height = 40, gap = 14, step = 250; // of boxes and columns, in pixels, as in style.css
const most = 60; // boxes in a column

// graph returns the tab with the drawing.
export async function graph(view, signal) {
  const {above, refs, below, own} = await around(view, signal);
  const columns = [];
  const edges = [];
  const put = (column, box) => {
    columns[column] ??= [];
    if (columns[column].length === most) return null;
    columns[column].push(box);
    return box;
  };
  const box = (n, tone) => ({k: n.k, name: n.o?.metadata.name ?? n.name, namespace: n.o?.metadata.namespace ?? n.namespace, tone});
  const tone = n => (n.bad || n.findings?.length ? "bad" : n.o ? "good" : "");
  let last = null;
  above.forEach((a, i) => {
    const b = put(i, box(a, tone(a)));
    if (last) edges.push([last, b, "owns"]);
    last = b;
  });
  const self = put(above.length, {...box({o: view.object, k: view.k}, own.length ? "bad" : "good"), self: true});
  if (last) edges.push([last, self, "owns"]);
  const down = (nodes, parent, column) => {
    for (const n of nodes) {
      const b = n.more ? put(column, {more: n.more}) : put(column, box(n, tone(n)));
      if (!b) return;
      edges.push([parent, b, "owns"]);
      down(n.below ?? [], b, column + 1);
    }
  };
  down(below, self, above.length + 1);
  for (const r of refs) {
    const b = put(above.length + 1, {k: r.k, name: r.name, namespace: r.namespace, tone: r.found === undefined ? (r.optional ? "wait" : "bad") : r.found ? "good" : "", missing: r.found === undefined});
    if (b) edges.push([self, b, r.path.findLast(p => typeof p === "string")]);
  }
  return draw(columns, edges);
}

// draw places the columns side by side, each in the middle.
function draw(columns, edges) {
  const tall = Math.max(...columns.map(c => c.length)) * (height + gap);
  columns.forEach((c, x) => c.forEach((b, i) => Object.assign(b, {x: x * step, y: (tall - c.length * (height + gap)) / 2 + i * (height + gap)})));
  const lines = edges.map(([a, b, words]) => {
    const [x1, y1, x2, y2] = [a.x + width, a.y + height / 2, b.x, b.y + height / 2];
    const middle = (x1 + x2) / 2;
    return svg("path", {d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, class: words === "owns" ? "owns" : "refers"}, svg("title", null, words));
  });
  const boxes = columns.flat().map(b => {
    const e = b.more ? h("span", {class: "box quiet"}, `${b.more} more`)
      : h(b.k.resource && !b.missing && !b.self ? "a" : "span", {class: ["box", b.tone, b.self && "self"], href: b.k.resource && !b.missing && !b.self ? objectOf(b.k, b.namespace, b.name) : null, title: b.name},
        h("small", null, b.k.kind), h("span", null, b.name, b.missing && " (does not exist)"));
    e.style.transform = `translate(${b.x}px, ${b.y}px)`;
    return e;
  });
  const drawing = h("div", {class: "graph"}, svg("svg", {width: columns.length * step, height: tall, "aria-hidden": "true"}, lines), boxes);
  drawing.style.width = columns.length * step + "px";
  drawing.style.height = tall + "px";
  return h("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "Graph"}, h("p", {class: "quiet"}, "Solid lines lead from owners to dependents, dashed ones to objects that a field names."), drawing);
}
