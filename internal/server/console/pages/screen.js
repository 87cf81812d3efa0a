// The screen of a terminal: text and escape sequences in, lines of cells out. It understands the sequences that programs send to
// an xterm with 256 colours, except for those of the mouse.

const history = 2000; // lines above the screen

// plain is the style of cells without attributes. A style never changes: cells share it.
const plain = Object.freeze({});

// Characters that DEC's charset for drawing has in the place of lower case letters, from ` on.
const drawing = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";

const wide = /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f320}\u{20000}-\u{3fffd}]/u;
const combining = /^[\p{Mn}\p{Me}\u200d\ufe0f]/u;

class Line {
  constructor(columns, style = plain) {
    this.chars = new Array(columns).fill(" "); // "" after a character that is two cells wide
    this.styles = new Array(columns).fill(style);
    this.dirty = true;
  }
}

export class Screen {
  // A Screen calls reply with the answers to the questions of a program.
  constructor(columns, rows, reply = () => {}) {
    Object.assign(this, {columns, rows, reply});
    this.reset();
  }

  reset() {
    this.pen = plain;
    this.lines = this.blank();
    this.above = []; // lines that have left the screen
    this.other = null; // the main screen and its saved cursor, while a program uses the alternative one
    this.x = this.y = 0;
    this.full = false; // the last column has been written: the next character begins a line
    this.saved = null;
    this.region(0, this.rows - 1);
    this.modes = {wrap: true, visible: true};
    this.graphics = [false, false];
    this.shift = 0;
    this.tabs = new Set();
    for (let x = 8; x < 1000; x += 8) this.tabs.add(x);
    this.state = this.ground;
  }

  blank() {
    return Array.from({length: this.rows}, () => new Line(this.columns, this.empty));
  }

  // empty is the style of erased cells: they keep the background.
  get empty() {
    return this.pen?.bg === undefined ? plain : {bg: this.pen.bg};
  }

  region(top, bottom) {
    this.top = top;
    this.bottom = bottom;
  }

  resize(columns, rows) {
    for (const set of [this.lines, this.other?.lines, this.above]) {
      for (const l of set ?? []) {
        while (l.chars.length < columns) {
          l.chars.push(" ");
          l.styles.push(plain);
        }
        l.chars.length = l.styles.length = columns;
        l.dirty = true;
      }
    }
    for (const {lines, cursor} of [{lines: this.lines, cursor: this}, ...(this.other ? [{lines: this.other.lines, cursor: this.other.saved ?? {y: this.other.lines.length - 1}}] : [])]) {
      while (lines.length > rows) {
        if (cursor.y < lines.length - 1) lines.pop(); // lines below the cursor go first
        else {
          const gone = lines.shift();
          if (lines !== this.lines || !this.other) this.above.push(gone);
          cursor.y--;
        }
      }
      while (lines.length < rows) lines.push(new Line(columns));
    }
    Object.assign(this, {columns, rows, full: false});
    this.region(0, rows - 1);
    this.move(this.x, this.y);
  }

  // write takes a part of the output of a program.
  write(text) {
    for (const c of text) this.take(c);
  }

  take(c) {
    const code = c.codePointAt(0);
    if (code === 0x1b) {
      this.state = this.escape;
      this.parameters = "";
    } else if (code === 0x18 || code === 0x1a) this.state = this.ground;
    else if (this.state === this.string) this.string(c);
    else if (code < 0x20) this.control(code);
    else if (code !== 0x7f) this.state(c);
  }

  control(code) {
    switch (code) {
      case 0x08: return this.move(this.x - 1, this.y);
      case 0x09: return this.tab(1);
      case 0x0a: case 0x0b: case 0x0c: return this.feed();
      case 0x0d: return this.move(0, this.y);
      case 0x0e: case 0x0f: this.shift = 0x0f - code;
    }
  }

  // States

  ground(c) {
    if (this.graphics[this.shift] && c >= "`" && c <= "~") c = drawing[c.charCodeAt(0) - 0x60];
    this.print(c);
  }

  escape(c) {
    this.state = this.ground;
    switch (c) {
      case "[": return void (this.state = this.sequence);
      case "]": case "P": case "X": case "^": case "_": return void (this.state = this.string);
      case "(": case ")": case "#": case "%": case " ": case "*": case "+": case "-": case ".":
        this.parameters = c;
        return void (this.state = this.selection);
      case "7": return this.save();
      case "8": return this.restore();
      case "D": return this.feed();
      case "E": this.move(0, this.y); return this.feed();
      case "M": return this.y === this.top ? this.scroll(-1) : this.move(this.x, this.y - 1);
      case "H": return void this.tabs.add(this.x);
      case "c": return this.reset();
      case "=": case ">": this.modes.keypad = c === "=";
    }
  }

  // selection is the state after the start of a sequence that selects a charset, or is not supported.
  selection(c) {
    this.state = this.ground;
    if (this.parameters === "#" && c === "8") for (const l of this.lines) Object.assign(l, {chars: l.chars.map(() => "E"), dirty: true});
    const at = "()".indexOf(this.parameters);
    if (at >= 0) this.graphics[at] = c === "0";
  }

  // string is the state in a title or another text for the terminal. Every escape sequence ends it, also ESC \.
  string(c) {
    if (c === "\x07" || c === "\x9c") this.state = this.ground;
  }

  sequence(c) {
    if (c < "@" || c > "~") {
      if (this.parameters.length < 256) this.parameters += c;
      return;
    }
    this.state = this.ground;
    const [, mark, text, between] = /^([<=>?]?)([\d;:]*)(.*)$/s.exec(this.parameters);
    const all = text.split(";").map(p => (p === "" ? undefined : Math.min(parseInt(p, 10) || 0, 9999)));
    if (between === "!" && c === "p") return this.soft();
    if (between) return;
    if (mark === "?" && (c === "h" || c === "l")) return all.forEach(n => this.mode(n, c === "h"));
    if (mark) return mark === ">" && c === "c" ? this.reply("\x1b[>0;10;1c") : undefined;
    this.command(c, all, text);
  }

  // Sequences

  command(c, [a, b], text) {
    const n = Math.max(a ?? 1, 1);
    const line = this.lines[this.y];
    switch (c) {
      case "A": return this.move(this.x, Math.max(this.y - n, this.y >= this.top ? this.top : 0));
      case "B": case "e": return this.move(this.x, Math.min(this.y + n, this.y <= this.bottom ? this.bottom : this.rows - 1));
      case "C": case "a": return this.move(this.x + n, this.y);
      case "D": return this.move(this.x - n, this.y);
      case "E": return this.move(0, Math.min(this.y + n, this.y <= this.bottom ? this.bottom : this.rows - 1));
      case "F": return this.move(0, Math.max(this.y - n, this.y >= this.top ? this.top : 0));
      case "G": case "`": return this.move(n - 1, this.y);
      case "d": return this.place(this.x, n - 1);
      case "H": case "f": return this.place(Math.max(b ?? 1, 1) - 1, n - 1);
      case "I": return this.tab(n);
      case "Z": return this.tab(-n);
      case "J": return this.eraseScreen(a ?? 0);
      case "K": return this.eraseLine(line, a ?? 0);
      case "L": case "M":
        if (this.y >= this.top && this.y <= this.bottom) this.scroll(c === "L" ? -n : n, this.y);
        return;
      case "@": return this.shiftCells(line, n);
      case "P": return this.shiftCells(line, -n);
      case "X": return this.erase(line, this.x, this.x + n);
      case "S": return this.scroll(n);
      case "T": return this.scroll(-n);
      case "b":
        if (this.printed) for (let left = Math.min(n, this.columns - this.x); left > 0; left--) this.print(this.printed);
        return;
      case "m": return this.paint(text);
      case "r":
        if (Math.max(a ?? 1, 1) < Math.min(b || this.rows, this.rows)) {
          this.region(n - 1, Math.min(b || this.rows, this.rows) - 1);
          this.place(0, 0);
        }
        return;
      case "h": case "l":
        if (a === 4) this.modes.insert = c === "h";
        return;
      case "s": return this.save();
      case "u": return this.restore();
      case "g": return a === 3 ? this.tabs.clear() : void this.tabs.delete(this.x);
      case "n": return a === 6 ? this.reply(`\x1b[${this.y - (this.modes.origin ? this.top : 0) + 1};${this.x + 1}R`) : a === 5 ? this.reply("\x1b[0n") : undefined;
      case "c": return this.reply("\x1b[?62;22c");
    }
  }

  // mode sets a mode that DEC's terminals or xterm have.
  mode(n, on) {
    const named = {1: "cursorKeys", 7: "wrap", 25: "visible", 2004: "paste"}[n];
    if (named) this.modes[named] = on;
    if (n === 6) {
      this.modes.origin = on;
      this.place(0, 0);
    }
    if (n === 1048 || n === 1049 && on) on ? this.save() : this.restore();
    if (n === 47 || n === 1047 || n === 1049) this.alternate(on);
    if (n === 1049 && !on) this.restore();
  }

  alternate(on) {
    if (on === Boolean(this.other)) return;
    if (on) {
      this.other = {lines: this.lines, saved: this.saved};
      this.lines = this.blank();
      this.saved = null;
    } else {
      Object.assign(this, this.other);
      this.other = null;
      for (const l of this.lines) l.dirty = true;
    }
    this.full = false;
  }

  soft() {
    Object.assign(this.modes, {wrap: true, visible: true, insert: false, origin: false, cursorKeys: false});
    this.region(0, this.rows - 1);
    this.pen = plain;
    this.graphics = [false, false];
    this.shift = 0;
  }

  save() {
    const {x, y, pen, full, shift} = this;
    this.saved = {x, y, pen, full, shift, graphics: [...this.graphics], origin: this.modes.origin};
  }

  restore() {
    const {origin, ...s} = this.saved ?? {x: 0, y: 0, pen: plain, full: false, shift: 0, graphics: [false, false]};
    this.modes.origin = origin;
    Object.assign(this, s, {graphics: [...s.graphics]});
    this.x = Math.min(this.x, this.columns - 1);
    this.y = Math.min(this.y, this.rows - 1);
  }

  // Cells

  print(c) {
    if (combining.test(c)) return this.combine(c);
    const width = wide.test(c) ? 2 : 1;
    if (this.full && this.modes.wrap) {
      this.x = 0;
      this.full = false;
      this.feed();
    }
    if (width === 2 && this.x === this.columns - 1) {
      if (!this.modes.wrap || this.columns < 2) return;
      this.x = 0;
      this.feed();
    }
    const line = this.lines[this.y];
    if (this.modes.insert) this.shiftCells(line, width);
    this.halve(line, this.x);
    if (width === 2) this.halve(line, this.x + 1);
    this.set(line, this.x, c, this.pen);
    if (width === 2) this.set(line, this.x + 1, "", this.pen);
    this.printed = c;
    const next = this.x + width;
    this.full = next >= this.columns;
    this.x = Math.min(next, this.columns - 1);
  }

  combine(c) {
    const line = this.lines[this.y];
    let at = this.full ? this.x : this.x - 1;
    if (at > 0 && line.chars[at] === "") at--;
    if (at < 0 || line.chars[at].length > 16) return;
    line.chars[at] += c;
    line.dirty = true;
  }

  set(line, x, c, style) {
    line.chars[x] = c;
    line.styles[x] = style;
    line.dirty = true;
  }

  // halve blanks the other half of a wide character, of which a cell is overwritten.
  halve(line, x) {
    if (line.chars[x] === "" && x > 0) line.chars[x - 1] = " ";
    if (line.chars[x + 1] === "") line.chars[x + 1] = " ";
  }

  erase(line, from, to) {
    this.full = false;
    to = Math.min(to, this.columns);
    if (from >= to) return;
    this.halve(line, from);
    this.halve(line, to - 1);
    for (let x = from; x < to; x++) this.set(line, x, " ", this.empty);
  }

  eraseLine(line, part) {
    this.erase(line, part === 0 ? this.x : 0, part === 1 ? this.x + 1 : this.columns);
  }

  eraseScreen(part) {
    if (part === 3) return void (this.above = []);
    if (part > 3) return;
    if (part < 2) this.eraseLine(this.lines[this.y], part);
    for (let y = part === 0 ? this.y + 1 : 0; y < (part === 1 ? this.y : this.rows); y++) this.erase(this.lines[y], 0, this.columns);
  }

  // shiftCells makes room for n cells at the cursor; with a negative n it removes cells.
  shiftCells(line, n) {
    this.full = false;
    const count = Math.min(Math.abs(n), this.columns - this.x);
    if (n < 0 || line.chars[this.x] === "") this.halve(line, this.x);
    for (const [cells, blank] of [[line.chars, " "], [line.styles, this.empty]]) {
      const blanks = new Array(count).fill(blank);
      if (n > 0) {
        cells.splice(this.x, 0, ...blanks);
        cells.length = this.columns;
      } else {
        cells.splice(this.x, count);
        cells.push(...blanks);
      }
    }
    if (line.chars[this.x + (n > 0 ? count : 0)] === "") line.chars[this.x + (n > 0 ? count : 0)] = " ";
    if (wide.test(line.chars[this.columns - 1])) line.chars[this.columns - 1] = " ";
    line.dirty = true;
  }

  // Lines

  feed() {
    this.full = false;
    if (this.y === this.bottom) this.scroll(1);
    else if (this.y < this.rows - 1) this.y++;
  }

  // scroll moves the lines of the region from a line on up by n, or down for a negative n.
  scroll(n, from = this.top) {
    this.full = this.full && from === this.top;
    const count = Math.min(Math.abs(n), this.bottom - from + 1);
    const blanks = Array.from({length: count}, () => new Line(this.columns, this.empty));
    if (n > 0) {
      const gone = this.lines.splice(from, count);
      this.lines.splice(this.bottom - count + 1, 0, ...blanks);
      if (from === 0 && this.top === 0 && !this.other) this.above.push(...gone);
      if (this.above.length > history) this.above.splice(0, this.above.length - history);
    } else {
      this.lines.splice(this.bottom - count + 1, count);
      this.lines.splice(from, 0, ...blanks);
    }
    for (let y = from; y <= this.bottom; y++) this.lines[y].dirty = true;
  }

  move(x, y) {
    this.full = false;
    this.x = Math.max(0, Math.min(x, this.columns - 1));
    this.y = Math.max(0, Math.min(y, this.rows - 1));
  }

  // place moves to an address, which is within the region in the mode for that.
  place(x, y) {
    if (this.modes.origin) this.move(x, Math.min(this.top + y, this.bottom));
    else this.move(x, y);
  }

  tab(n) {
    let {x} = this;
    for (let left = Math.abs(n); left > 0; left--) {
      do x += Math.sign(n); while (x > 0 && x < this.columns - 1 && !this.tabs.has(x));
      if (x <= 0 || x >= this.columns - 1) break;
    }
    this.move(x, this.y);
  }

  // Styles

  // paint changes the pen.
  paint(text) {
    const all = text.split(";");
    const pen = {...this.pen};
    for (let i = 0; i < all.length; i++) {
      const [n, ...sub] = all[i].split(":").map(Number);
      if (n === 38 || n === 48) {
        const given = sub.length ? sub : all.slice(i + 1, i + 5).map(Number);
        const rgb = sub.length > 4 ? given.slice(2, 5) : given.slice(1, 4);
        const known = given[0] === 5 ? given[1] & 255 : given[0] === 2 ? "#" + rgb.map(v => (v & 255 || 0).toString(16).padStart(2, "0")).join("") : undefined;
        if (known !== undefined) pen[n === 38 ? "fg" : "bg"] = known;
        if (!sub.length) i += {5: 2, 2: 4}[given[0]] ?? 0;
      } else if (n === 0) Object.keys(pen).forEach(k => delete pen[k]);
      else attribute(pen, n, sub);
    }
    this.pen = Object.keys(pen).length ? Object.freeze(pen) : plain;
  }
}

const attributes = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 8: "hidden", 9: "strike"};

// attribute applies a number of SGR that is no colour with parameters.
function attribute(pen, n, [sub]) {
  if (n === 4 && sub === 0) delete pen.underline;
  else if (attributes[n]) pen[attributes[n]] = true;
  else if (n === 22) delete pen.bold, delete pen.dim;
  else if (n > 22 && n < 30) delete pen[attributes[n - 20]];
  else if (n >= 30 && n < 38) pen.fg = n - 30;
  else if (n === 39) delete pen.fg;
  else if (n >= 40 && n < 48) pen.bg = n - 40;
  else if (n === 49) delete pen.bg;
  else if (n >= 90 && n < 98) pen.fg = n - 82;
  else if (n >= 100 && n < 108) pen.bg = n - 92;
}
