package object

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An Accessor is a tree as a metav1.Object. It reads and writes metadata.managedFields without
// reflection. The reflection of an Unstructured would take a third of the time of a write.
// Unusual forms are left to the Unstructured, so that the result is always the same.
type Accessor struct{ *unstructured.Unstructured }

// AccessorOf returns the Accessor of t, which it reads and writes.
func AccessorOf(t Tree) Accessor { return Accessor{&unstructured.Unstructured{Object: t}} }

// GetManagedFields implements metav1.Object.
func (a Accessor) GetManagedFields() []metav1.ManagedFieldsEntry {
	metadata, _ := a.Object["metadata"].(Tree)
	list, ok := metadata["managedFields"].([]any)
	if !ok {
		return a.Unstructured.GetManagedFields()
	}
	entries := make([]metav1.ManagedFieldsEntry, len(list))
	for i, item := range list {
		t, ok := item.(Tree)
		if !ok || !readEntry(t, &entries[i]) {
			return a.Unstructured.GetManagedFields()
		}
	}
	return entries
}

// readEntry decodes an entry, and reports whether it could.
func readEntry(t Tree, e *metav1.ManagedFieldsEntry) bool {
	for key, value := range t {
		if key == "fieldsV1" {
			fields, ok := value.(Tree)
			if !ok {
				return false
			}
			e.FieldsV1 = metav1.NewFieldsV1(string(AppendJSON(nil, fields)))
			continue
		}
		s, ok := value.(string)
		if !ok {
			return false
		}
		switch key {
		case "manager":
			e.Manager = s
		case "operation":
			e.Operation = metav1.ManagedFieldsOperationType(s)
		case "apiVersion":
			e.APIVersion = s
		case "fieldsType":
			e.FieldsType = s
		case "subresource":
			e.Subresource = s
		case "time":
			at, err := time.Parse(time.RFC3339, s)
			if err != nil {
				return false
			}
			e.Time = &metav1.Time{Time: at.Local()}
		default:
			return false
		}
	}
	return true
}

// SetManagedFields implements metav1.Object.
func (a Accessor) SetManagedFields(entries []metav1.ManagedFieldsEntry) {
	metadata, ok := a.Object["metadata"].(Tree)
	if entries == nil || !ok {
		a.Unstructured.SetManagedFields(entries)
		return
	}
	list := make([]any, len(entries))
	for i := range entries {
		t, ok := writeEntry(&entries[i])
		if !ok {
			a.Unstructured.SetManagedFields(entries)
			return
		}
		list[i] = t
	}
	metadata["managedFields"] = list
}

// writeEntry encodes an entry, and reports whether it could.
func writeEntry(e *metav1.ManagedFieldsEntry) (Tree, bool) {
	t := make(Tree, 7)
	for _, field := range [...]struct{ key, value string }{
		{"manager", e.Manager}, {"operation", string(e.Operation)}, {"apiVersion", e.APIVersion},
		{"fieldsType", e.FieldsType}, {"subresource", e.Subresource},
	} {
		if field.value != "" {
			t[field.key] = field.value
		}
	}
	if e.Time != nil {
		if e.Time.IsZero() {
			return nil, false
		}
		t["time"] = e.Time.UTC().Format(time.RFC3339)
	}
	if e.FieldsV1 != nil {
		fields, ok := ReadFields(e.FieldsV1.GetRawBytes())
		if !ok {
			return nil, false
		}
		t["fieldsV1"] = fields
	}
	return t, true
}

// ReadFields parses the JSON of a set of fields. It reports whether it could: spaces and rare escapes are left
// to other parsers.
func ReadFields(data []byte) (Tree, bool) {
	t, rest, ok := readSets(data)
	return t, ok && len(rest) == 0
}

// readSets parses nested JSON objects without spaces, the form of field sets. It reports whether
// data begins with such an object, and returns the rest.
func readSets(data []byte) (t Tree, rest []byte, ok bool) {
	if len(data) < 2 || data[0] != '{' {
		return nil, nil, false
	}
	t = Tree{}
	if data[1] == '}' {
		return t, data[2:], true
	}
	for first := true; ; first = false {
		if len(data) == 0 {
			return nil, nil, false
		}
		if data[0] == '}' && !first {
			return t, data[1:], true
		}
		if (data[0] == '{') != first || data[0] != '{' && data[0] != ',' {
			return nil, nil, false
		}
		key, rest, ok := readKey(data[1:])
		if !ok {
			return nil, nil, false
		}
		value, rest, ok := readSets(rest)
		if !ok {
			return nil, nil, false
		}
		t[key], data = value, rest
	}
}

// readKey parses a string and the colon behind it.
func readKey(data []byte) (key string, rest []byte, ok bool) {
	if len(data) == 0 || data[0] != '"' {
		return "", nil, false
	}
	var unescaped []byte // of data[1:from], if there was an escape
	from := 1
	for i := 1; i < len(data)-1; i++ {
		switch c := data[i]; {
		case c < ' ' || c > '~':
			return "", nil, false // not a plain string
		case c == '\\':
			if next := data[i+1]; next != '"' && next != '\\' {
				return "", nil, false
			}
			unescaped, from = append(unescaped, data[from:i]...), i+1
			i++
		case c == '"':
			return string(append(unescaped, data[from:i]...)), data[i+2:], data[i+1] == ':'
		}
	}
	return "", nil, false
}
