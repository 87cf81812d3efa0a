package lsp

import "strings"

// A flow is a collection in braces or brackets, as in JSON. A text that is being edited has collections without a
// closing bracket. Such a collection ends at a line with the indentation of its parent.
type flow struct {
	// line and column are the place of the first bracket.
	line, column int
	// isRoot is true for a whole document, as in JSON.
	isRoot bool
	root   *level
	open   []*level // the collections at the character at hand
	quote  byte     // of the text at hand, or 0
	// escaped is true behind a backslash in a text.
	escaped bool
	// at are the collections at the cursor, and inner is the last of them.
	at    []level
	inner *level
}

// A level is an object or a list.
type level struct {
	list bool
	// entry is the number of the entry at hand, key its key if inValue is true, and word the word at hand. The key
	// of an element is item.
	entry   int
	key     string
	inValue bool
	word    word
	// full is true behind a complete key or value.
	full  bool
	pairs []pair
}

// A pair is a field with its value, if that is no collection.
type pair struct {
	key, value string
	entry      int
}

// A word is a key or a value, without its quotation marks. It ends with its line.
type word struct {
	text   string
	column int
	// quote is the quotation mark, or 0. closed reports the second one.
	quote           byte
	started, closed bool
}

// flowAt returns the outermost collection that a place is in, or nil. The document begins at the line first and ends
// with the lines.
func flowAt(lines []string, first, at, column int) *flow {
	inText, margin := false, 0
	for i := first; i <= at; i++ {
		line := lines[i]
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if blank(line) || inText && indent > margin {
			continue
		}
		inText = false
		start, parent := indent, indent-1
		if all := tokens(line); len(all) > 0 {
			last := all[len(all)-1]
			start, parent = last.value, last.column
		}
		value := line[start:]
		switch {
		case blockPattern.MatchString(value):
			inText, margin = true, parent
		case strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") && !strings.HasPrefix(value, "{{"): // {{ is an action of a template
			f := &flow{line: i, column: start, isRoot: parent < 0}
			f.push(line[start])
			f.root = f.open[0]
			i = f.scan(lines, parent, at, column)
			if f.at != nil {
				return f
			}
		}
	}
	return nil
}

// scan reads the collection, and returns its last line.
func (f *flow) scan(lines []string, parent, at, column int) int {
	for i := f.line; i < len(lines); i++ {
		line, k := lines[i], 0
		if i == f.line {
			k = f.column + 1
		} else if text := strings.TrimLeft(line, " "); parent >= 0 && text != "" && len(line)-len(text) <= parent && text[0] != ']' && text[0] != '}' {
			return i - 1
		}
		for ; k <= len(line); k++ {
			if i == at && k == column {
				for _, l := range f.open {
					f.at = append(f.at, *l)
				}
				f.inner = f.open[len(f.open)-1]
			}
			if k == len(line) || f.quote == 0 && line[k] == '#' && (k == 0 || line[k-1] == ' ') { // a comment
				break
			}
			if f.char(line, k); len(f.open) == 0 {
				return i
			}
		}
		f.quote, f.escaped = 0, false
		if l := f.open[len(f.open)-1]; l.full || l.word.started { // a comma may be missing
			f.char(",", 0)
		}
	}
	return len(lines) - 1
}

// char reads a character of a line.
func (f *flow) char(line string, column int) {
	c, l := line[column], f.open[len(f.open)-1]
	switch {
	case f.quote != 0:
		f.quoted(&l.word, line, column)
	case c == '{' || c == '[':
		l.word = word{} // of this line
		f.push(c)
	case c == ',' || c == '}' || c == ']':
		l.end()
		if c == ',' {
			return
		}
		if f.open = f.open[:len(f.open)-1]; len(f.open) > 0 {
			f.open[len(f.open)-1].full = true
		}
	case c == ':' && l.word.started && !l.inValue && (l.word.closed || column+1 == len(line) || line[column+1] == ' '):
		l.pairs = append(l.pairs, pair{key: l.word.text, entry: l.entry})
		l.key, l.inValue, l.full, l.word = l.word.text, true, false, word{}
	case c == ' ' || c == '\t':
		l.full = l.full || l.word.closed
	case !l.word.started:
		l.word = word{column: column, started: true}
		if c == '"' || c == '\'' {
			l.word.quote, f.quote = c, c
		} else {
			l.word.text = line[column : column+1]
		}
	case !l.word.closed:
		l.word.text = line[l.word.column : column+1]
	case c == '\'' && line[column-1] == c: // an apostrophe is two of them
		l.word.closed, f.quote = false, c
	}
}

// push begins a collection.
func (f *flow) push(c byte) {
	l := &level{}
	if c == '[' {
		l.list, l.inValue, l.key = true, true, item
	}
	f.open = append(f.open, l)
}

// quoted reads a character of a word in quotation marks.
func (f *flow) quoted(w *word, line string, column int) {
	c := line[column]
	switch {
	case f.escaped:
		f.escaped = false
	case c == '\\' && f.quote == '"':
		f.escaped = true
	case c == f.quote:
		f.quote, w.closed = 0, true
		return
	}
	w.text = line[w.column+1 : column+1]
}

// end ends the entry at hand.
func (l *level) end() {
	if n := len(l.pairs); n > 0 && l.inValue {
		l.pairs[n-1].value = l.word.text
	}
	l.entry++
	l.inValue, l.word, l.full = l.list, word{}, false
	if !l.list {
		l.key = ""
	}
}

// enter continues the path of a collection to the cursor in it.
func (p *place) enter(f *flow, column int) {
	path := p.path
	if p.inValue {
		path = p.named
	} else {
		p.named = nil
	}
	for n := range f.at {
		l := &f.at[n]
		path = append(path, l.key) // empty for a collection in the place of a key
		if l.inValue && !l.list {
			p.named = path
		}
	}
	l, last := &f.at[len(f.at)-1], len(path)-1
	p.path, p.key, p.value, p.inValue = path[:last], path[last], l.word.text, l.inValue
	p.inFlow, p.inText, p.present = true, l.full, nil
	p.start, p.quote, p.quoteKeys = column, l.word.quote, f.isRoot
	if l.word.started {
		p.start = l.word.column
	}
	if !p.inValue {
		p.key, p.value = p.value, ""
	}
	for i := range f.inner.pairs {
		other := &f.inner.pairs[i]
		if other.entry != l.entry {
			p.present = append(p.present, other.key)
		} else if !p.inValue && l.word.started {
			path[last] = other.key
			p.named = path
		}
	}
	if f.isRoot {
		p.apiVersion, p.kind = "", ""
		for _, field := range f.root.pairs {
			switch field.key {
			case "apiVersion":
				p.apiVersion = field.value
			case "kind":
				p.kind = field.value
			}
		}
	}
}
