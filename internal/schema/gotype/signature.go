package gotype

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Signature returns equal strings for Go types with the same JSON encoding, independent of their
// names.
func Signature(t reflect.Type) string {
	s := signer{seen: map[*Type]int{}}
	s.sign(Of(t))
	return s.text.String()
}

// A signer writes signatures. A type that is there already is written as its number.
type signer struct {
	text strings.Builder
	seen map[*Type]int
}

func (s *signer) sign(t *Type) {
	if t == nil {
		return
	}
	if n, ok := s.seen[t]; ok {
		fmt.Fprintf(&s.text, "#%d", n)
		return
	}
	s.seen[t] = len(s.seen)
	fmt.Fprintf(&s.text, "%d.%d", t.form, t.bits)
	if t.form == formOpaque {
		fmt.Fprintf(&s.text, "%s.%s", t.typ.PkgPath(), t.typ)
	}
	s.text.WriteByte('(')
	s.sign(t.elem)
	for _, name := range slices.Sorted(maps.Keys(t.fields)) {
		f := t.fields[name]
		fmt.Fprintf(&s.text, " %s %t %t %t ", name, f.pointer, f.omitEmpty, f.omitZero)
		s.sign(f.Type)
	}
	s.text.WriteByte(')')
}
