package fieldset

import "github.com/anykind/anykind/internal/object"

// Merge returns old merged with wanted. The result shares nothing with either. Both conform to the
// type. It reports false if it cannot merge: a value changes its form, or a list in old has
// duplicates.
func (t *Type) Merge(old, wanted object.Tree) (object.Tree, bool) {
	v, ok := t.merge(old, wanted)
	out, is := v.(object.Tree)
	return out, ok && is
}

// merge merges two values. If one is missing, the other stays.
func (t *Type) merge(old, wanted any) (any, bool) {
	part := t.of(old)
	if part != t.of(wanted) {
		return nil, false
	}
	switch part.first() {
	case mapPart:
		was, _ := old.(object.Tree)
		is, _ := wanted.(object.Tree)
		if !t.fields.atomic && (len(was) > 0 || len(is) > 0) {
			return t.fields.merge(was, is)
		}
	case listPart:
		was, _ := old.([]any)
		is, _ := wanted.([]any)
		if !t.list.atomic && (len(was) > 0 || len(is) > 0) {
			return t.list.merge(was, is)
		}
	}
	return object.Clone(wanted), true
}

func (m *mapping) merge(was, is object.Tree) (any, bool) {
	out := make(object.Tree, max(len(was), len(is)))
	for name, old := range was {
		wanted, ok := is[name]
		if !ok {
			out[name] = object.Clone(old)
			continue
		}
		t, _, _ := m.child(name)
		if t == nil {
			return nil, false
		}
		if out[name], ok = t.merge(old, wanted); !ok {
			return nil, false
		}
	}
	for name, wanted := range is {
		if _, ok := was[name]; !ok {
			out[name] = object.Clone(wanted)
		}
	}
	return out, true
}

// merge takes the order of the wanted elements. The others stay between their neighbours.
func (l *list) merge(was, is []any) (any, bool) {
	old, _ := l.index(was)
	now, _ := l.index(is)
	if old.repeats || now.repeats {
		return nil, false
	}
	m := listMerge{list: l, was: was, is: is, old: &old, now: &now, out: make([]any, 0, max(len(was), len(is)))}
	m.advance(0)
	for i, k := 0, 0; i < len(was) || k < len(is); {
		if i < len(was) && k < len(is) {
			key := old.keys[i]
			if key == now.keys[k] {
				if !m.take(k) {
					return nil, false
				}
				m.advance(m.next + 1)
				i, k = i+1, k+1
				continue
			}
			if now.find(key) >= 0 && m.next < len(is) && now.keys[m.next] != key {
				i++ // it comes later, at its wanted place
				continue
			}
		}
		if i < len(was) {
			at := now.find(old.keys[i])
			if at < 0 {
				m.out = append(m.out, object.Clone(was[i]))
				i++
				continue
			}
			if at < k {
				i++
			}
		}
		if k < len(is) {
			if !m.take(k) {
				return nil, false
			}
			if k == m.next {
				m.advance(m.next + 1)
			}
			k++
		}
	}
	if len(m.out) == 0 {
		return nil, false
	}
	return m.out, true
}

type listMerge struct {
	*list
	was, is  []any
	old, now *index
	out      []any
	next     int // the next element in both lists
}

func (m *listMerge) advance(from int) {
	for m.next = from; m.next < len(m.is) && m.old.find(m.now.keys[m.next]) < 0; {
		m.next++
	}
}

// take adds the kth wanted element, merged with the existing one.
func (m *listMerge) take(k int) bool {
	at := m.old.find(m.now.keys[k])
	if at < 0 {
		m.out = append(m.out, object.Clone(m.is[k]))
		return true
	}
	v, ok := m.of.merge(m.was[at], m.is[k])
	m.out = append(m.out, v)
	return ok
}
