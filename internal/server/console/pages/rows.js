// A grid of any number of rows, of which only those in view have elements.
import {age, fill, h, text} from "./dom.js";

const height = 30; // of a row, in pixels, as in style.css
const spare = 8; // rows above and below the view

// A Grid shows the rows of a store. columns have title, cell (row → text), width in characters, and kind: "name", "age" or "".
export class Grid {
  focus = 0; // the index of the row for keys
  selected = new Set(); // ids
  used = new Map(); // index → element
  free = [];

  constructor({store, columns, href, label, open, sort, selects}) {
    Object.assign(this, {store, href, open, sort});
    this.head = h("div", {role: "row", class: "row head", "aria-rowindex": 1});
    this.space = h("div", {class: "space", role: "rowgroup"});
    this.box = h("div", {class: "grid", role: "grid", tabindex: 0, "aria-label": label, "aria-multiselectable": "true", scroll: () => this.scrolled(), "data-scroll": ""},
      h("div", {role: "rowgroup", class: "heads"}, this.head), this.space);
    this.selects = selects;
    this.arrange(columns);
    this.watched = new ResizeObserver(() => this.later());
    this.watched.observe(this.box);
  }

  // arrange sets the columns.
  arrange(columns) {
    this.columns = columns;
    this.box.setAttribute("aria-colcount", columns.length + 1);
    this.space.replaceChildren();
    this.used.clear();
    this.free = [];
    this.widths();
    this.titles();
    this.later();
  }

  // widths sets the width of each column.
  widths() {
    const w = "34px " + this.columns.map((c, i) => (i === this.columns.length - 1 ? `minmax(${c.width}ch, 1fr)` : `${c.width}ch`)).join(" ");
    if (w === this.width) return;
    this.width = w;
    this.box.style.setProperty("--columns", w);
  }

  titles(sorted = this.sorted) {
    this.sorted = sorted;
    const all = h("input", {type: "checkbox", "aria-label": "Select all rows that are shown", change: e => this.selectAll(e.target.checked)});
    fill(this.head, h("div", {role: "columnheader"}, all), this.columns.map((c, i) => {
      const by = sorted?.column === c.title ? (sorted.down ? "descending" : "ascending") : "none";
      return h("div", {role: "columnheader", "aria-sort": by, title: c.words}, h("button", {click: () => this.sort(c, by === "ascending")}, c.title, by === "none" ? "" : by === "ascending" ? " ↑" : " ↓"));
    }));
  }

  // later draws before the next frame.
  later() {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = null;
      this.draw();
    });
  }

  // scrolled draws the rows that are now in view. A user who scrolls away from the end does not follow it any more.
  scrolled() {
    if (this.box.scrollTop < this.top) this.atEnd = false;
    this.top = this.box.scrollTop;
    this.later();
  }

  draw() {
    const rows = this.store.shown;
    this.space.style.height = rows.length * height + "px";
    this.box.setAttribute("aria-rowcount", rows.length + 1);
    if (this.atEnd && this.focus < rows.length - 1) { // the list has grown
      this.focus = rows.length - 1;
      this.box.scrollTop = this.box.scrollHeight;
    }
    const first = Math.max(0, Math.floor(this.box.scrollTop / height) - spare);
    const last = Math.min(rows.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / height) + spare);
    for (const [i, e] of this.used) {
      if (i >= first && i < last) continue;
      this.used.delete(i);
      this.free.push(e);
    }
    for (let i = first; i < last; i++) {
      let e = this.used.get(i);
      if (!e) {
        e = this.free.pop() ?? this.element();
        e.style.transform = `translateY(${i * height}px)`;
        this.used.set(i, e);
      }
      this.show(e, rows[i], i);
    }
    for (const e of this.free) e.hidden = true;
  }

  element() {
    const box = h("input", {type: "checkbox", tabindex: -1, change: () => this.select(e.shows.id, box.checked)});
    const cells = this.columns.map(c => (c.kind === "name" ? h("a", {tabindex: -1}) : null));
    const e = h("div", {role: "row", class: "row", click: event => this.clicked(event, e), dblclick: () => this.open(e.shows)},
      h("div", {role: "gridcell"}, box), cells.map(c => h("div", {role: "gridcell"}, c)));
    this.space.append(e);
    return e;
  }

  // show writes a row into an element. Texts that are the same stay.
  show(e, row, i) {
    e.hidden = false;
    const now = Date.now();
    if (e.shows !== row) {
      const same = e.shows?.id === row.id;
      e.shows = row;
      e.setAttribute("aria-rowindex", i + 2);
      this.columns.forEach((c, n) => {
        const cell = e.children[n + 1];
        const value = c.cell(row, now);
        if (c.kind === "name") {
          cell.firstChild.href = this.href(row);
          text(cell.firstChild, value);
        } else {
          text(cell, value);
        }
        cell.dataset.tone = c.tone?.(value) ?? "";
      });
      e.firstChild.firstChild.setAttribute("aria-label", "Select " + row.name);
      e.classList.toggle("leaving", Boolean(row.deleted));
      if (same || row.changed) this.flash(e, row, now);
    } else {
      this.columns.forEach((c, n) => c.kind === "age" && text(e.children[n + 1], c.cell(row, now)));
    }
    const chosen = this.selected.has(row.id);
    e.firstChild.firstChild.checked = chosen;
    e.setAttribute("aria-selected", chosen);
    e.classList.toggle("focus", i === this.focus);
  }

  // flash marks an element for a moment if its row has just changed.
  flash(e, row, now) {
    if (!row.changed || now - row.changed > 1500) return;
    e.classList.remove("flash");
    void e.offsetWidth; // the animation begins again
    e.classList.add("flash");
  }

  clicked(event, e) {
    if (event.target.closest("a, input, button") || getSelection().toString()) return;
    this.move(this.store.shown.indexOf(e.shows));
    this.open(e.shows);
  }

  // move sets the row for keys, and scrolls to it.
  move(to) {
    const rows = this.store.shown;
    this.atEnd = to === Infinity;
    this.focus = Math.max(0, Math.min(to, rows.length - 1));
    const top = this.focus * height, view = this.box.clientHeight - height;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    if (top + height > this.box.scrollTop + view) this.box.scrollTop = top + height - view;
    this.later();
  }

  get current() {
    return this.store.shown[this.focus];
  }

  select(id, on) {
    if (on) this.selected.add(id);
    else this.selected.delete(id);
    this.selects();
    this.later();
  }

  selectAll(on) {
    this.selected = new Set(on ? this.store.shown.map(r => r.id) : []);
    this.selects();
    this.later();
  }

  close() {
    this.watched.disconnect();
    cancelAnimationFrame(this.asked);
  }
}
