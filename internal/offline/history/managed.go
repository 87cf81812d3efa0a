package history

import (
	"strconv"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/merge"
	"github.com/anykind/anykind/internal/object/order"
)

// An entry is an entry of managedFields: the last write of a manager.
type entry struct {
	Manager     string      `json:"manager"`
	Operation   string      `json:"operation"`
	Time        time.Time   `json:"time"`
	Subresource string      `json:"subresource"`
	Fields      object.Tree `json:"fieldsV1"`
}

func (e *entry) change() *Change {
	return &Change{Revision: "-", Time: e.Time, Manager: e.Manager, Verb: e.Operation, Subresource: e.Subresource}
}

// entries returns the managedFields of an object, the oldest first.
func entries(o object.Tree) (all []entry, err error) {
	data := object.AppendJSON(nil, object.Metadata(o)["managedFields"])
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &all); err != nil {
		return nil, err
	}
	order.Stable(all, func(a, b entry) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// BlameManaged is Blame from the managedFields of an object: for each field the last manager that owns
// it. There are no revisions and no users.
func BlameManaged(o object.Tree) ([]Line, error) {
	all, err := entries(o)
	if err != nil {
		return nil, err
	}
	var b *blamed
	b = b.set(merge.Without(o, "managedFields"), nil)
	for i := range all {
		b.mark(all[i].Fields, all[i].change())
	}
	return b.lines(), nil
}

// mark sets the change of the fields in a set of the form fieldsV1.
func (b *blamed) mark(set object.Tree, by *Change) {
	if len(set) == 0 {
		b.by = by
		for _, e := range b.fields {
			e.mark(nil, by)
		}
		for _, e := range b.elements {
			e.mark(nil, by)
		}
		return
	}
	for key, v := range set {
		below, _ := v.(object.Tree)
		if key == "." {
			b.by = by
		} else if e := b.child(key); e != nil {
			e.mark(below, by)
		}
	}
}

// child returns the field or element that a key of fieldsV1 names, or nil.
func (b *blamed) child(key string) *blamed {
	form, text, _ := strings.Cut(key, ":")
	switch form {
	case "f":
		return b.fields[text]
	case "i":
		if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(b.elements) {
			return b.elements[i]
		}
		return nil
	}
	var want any
	if kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &want) != nil {
		return nil
	}
	keys, isKey := want.(object.Tree)
	for _, e := range b.elements {
		if form == "v" && merge.Equal(e.value, want) {
			return e
		}
		if fields, ok := e.value.(object.Tree); form == "k" && isKey && ok && has(fields, keys) {
			return e
		}
	}
	return nil
}

func has(fields, keys object.Tree) bool {
	for key, v := range keys {
		if !merge.Equal(merge.Field(fields, key), v) {
			return false
		}
	}
	return true
}

// managedPaths appends the paths in a set of the form fieldsV1.
func managedPaths(all []string, path string, set object.Tree) []string {
	for _, key := range merge.Keys(set) {
		below, _ := set[key].(object.Tree)
		form, text, _ := strings.Cut(key, ":")
		at := path + "." + text
		switch form {
		case ".":
			continue
		case "k":
			var keys object.Tree
			_ = kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &keys) // no path for other text
			at = path + merge.KeyText(merge.Keys(keys), keys)
		case "v":
			at = path + "[=" + text + "]"
		case "i":
			at = path + "[" + text + "]"
		}
		if len(below) == 0 || len(below) == 1 && below["."] != nil {
			all = append(all, at)
			continue
		}
		all = managedPaths(all, at, below)
	}
	return all
}
