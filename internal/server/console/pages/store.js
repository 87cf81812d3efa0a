// The rows of a list: filtered, sorted, and kept so while hundreds of them change each second.

// A Store has rows by their id. A row has id, key (to sort by), and text (to filter by); both are set here.
export class Store {
  rows = new Map();
  shown = []; // the rows that pass the filter, in order
  pending = new Map(); // rows to merge into shown, by id
  stale = false; // shown has rows that were replaced or removed; they are marked
  matches = () => true;
  keyOf = row => row.name;
  down = false;

  get size() {
    return this.rows.size;
  }

  // put adds a row, or replaces the one with its id.
  put(row) {
    this.drop(row.id);
    this.pending.set(row.id, row);
    this.rows.set(row.id, row);
  }

  remove(id) {
    this.drop(id);
    this.pending.delete(id);
    this.rows.delete(id);
  }

  // drop marks the row of an id: a mark is cheaper to find than an id among hundreds of thousands.
  drop(id) {
    const old = this.rows.get(id);
    if (!old) return;
    old.stale = this.stale = true;
  }

  clear() {
    this.rows.clear();
    this.pending.clear();
    this.shown = [];
  }

  // arrange filters and sorts all rows. Without a function, the filter or the order is as before.
  arrange({matches = this.matches, keyOf = this.keyOf, down = this.down} = {}) {
    Object.assign(this, {matches, keyOf, down});
    this.pending.clear();
    this.stale = false;
    this.shown = [];
    for (const row of this.rows.values()) if (matches(row)) this.shown.push(row);
    for (const row of this.shown) row.key = keyOf(row);
    this.shown.sort(this.compare);
  }

  compare = (a, b) => {
    const sign = this.down ? -1 : 1;
    if (a.key < b.key) return -sign;
    if (a.key > b.key) return sign;
    return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
  };

  // settle merges pending rows into the shown ones in one pass, and reports whether there were any.
  settle() {
    if (!this.pending.size && !this.stale) return false;
    const fresh = [...this.pending.values()].filter(this.matches);
    this.pending = new Map();
    this.stale = false;
    for (const row of fresh) row.key = this.keyOf(row);
    fresh.sort(this.compare);
    const merged = [];
    let next = 0;
    for (const row of this.shown) {
      if (row.stale) continue;
      while (next < fresh.length && this.compare(fresh[next], row) < 0) merged.push(fresh[next++]);
      merged.push(row);
    }
    while (next < fresh.length) merged.push(fresh[next++]);
    this.shown = merged;
    return true;
  }
}

// sortable returns a key for the value of a cell: numbers before texts, "3/5" as three, durations by their length.
export function sortable(value) {
  if (typeof value === "number") return order(value);
  const s = String(value ?? "").toLowerCase();
  const duration = /^(?:(\d+)y)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(s);
  if (s && duration) {
    const [, y = 0, d = 0, h = 0, m = 0, sec = 0] = duration.map(n => +(n ?? 0));
    return order((((y * 365 + d) * 24 + h) * 60 + m) * 60 + sec);
  }
  const number = /^-?\d+(\.\d+)?(?=$|\/|%| )/.exec(s);
  return number ? order(+number[0]) + s : s;
}

// order writes a number so that texts sort as numbers do. Texts begin with a higher character than "!".
const order = n => (n < 0 ? "!-" + String(1e15 + n).padStart(16, "0") : "!0" + n.toFixed(3).padStart(26, "0"));
