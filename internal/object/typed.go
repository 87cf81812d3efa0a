package object

import (
	"maps"
	"slices"
)

// AppendTyped appends the object as Append does, in the order of Kubernetes' Go types: kind,
// apiVersion and metadata first. An object that is stored in another form keeps its order.
func (e *Encoded) AppendTyped(dst []byte, apiVersion string) []byte {
	f, ok := e.front()
	if !ok {
		return e.Append(dst, apiVersion)
	}
	if apiVersion == "" {
		apiVersion = e.APIVersion()
	}
	dst = slices.Grow(dst, len(e.JSON)+len(apiVersion)+versionRoom)
	dst = append(dst, `{"kind":"`...)
	dst = append(dst, e.JSON[e.kind.from:e.kind.to]...)
	dst = append(dst, `","apiVersion":"`...)
	dst = append(dst, apiVersion...)
	dst = append(dst, `",`...)
	return e.appendRest(dst, f)
}

// AppendUntyped is AppendTyped without apiVersion and kind, which items in lists of typed kinds
// omit.
func (e *Encoded) AppendUntyped(dst []byte) []byte {
	f, ok := e.front()
	if !ok {
		return e.Append(dst, "")
	}
	dst = slices.Grow(dst, len(e.JSON)+versionRoom)
	return e.appendRest(append(dst, '{'), f)
}

// appendRest appends the metadata and all other fields except those of f.
func (e *Encoded) appendRest(dst []byte, f [3]span) []byte {
	dst = append(dst, `"metadata":`...)
	dst = e.AppendMetadata(dst)
	dst = append(dst, ',')
	from := int32(1)
	for _, gone := range f {
		dst = append(dst, e.JSON[from:gone.from]...)
		from = gone.to
	}
	if e.JSON[from] == '}' {
		dst = dst[:len(dst)-1] // drop the trailing comma
	}
	return append(dst, e.JSON[from:]...)
}

// front returns the spans of kind, apiVersion and metadata, in the order of the JSON, each with
// the following comma. It returns false for other forms.
func (e *Encoded) front() (f [3]span, ok bool) {
	if e.JSON[0] != '{' {
		return f, false
	}
	for i, field := range [...]struct {
		value span
		key   string
	}{
		{span{e.apiVersion.from - 1, e.apiVersion.to + 1}, `"apiVersion":`},
		{span{e.kind.from - 1, e.kind.to + 1}, `"kind":`},
		{e.metadata, `"metadata":`},
	} {
		if f[i], ok = e.field(field.value, field.key); !ok {
			return f, false
		}
	}
	for _, i := range [...]int{0, 1, 0} {
		if f[i].from > f[i+1].from {
			f[i], f[i+1] = f[i+1], f[i]
		}
	}
	// A last field has the preceding comma, which overlaps the span of another one.
	return f, f[0].to <= f[1].from && f[1].to <= f[2].from
}

// field returns the span of the field with that value, and the following comma, if any.
func (e *Encoded) field(value span, key string) (span, bool) {
	at := span{value.from - int32(len(key)), value.to}
	if value.from < 0 || at.from < 1 || int(at.to) >= len(e.JSON) || text(e.JSON[at.from:value.from]) != key {
		return span{}, false
	}
	if before := e.JSON[at.from-1]; before != '{' && before != ',' {
		return span{}, false
	}
	switch e.JSON[at.to] {
	case ',':
		at.to++
		return at, int(at.to) < len(e.JSON)
	case '}':
		return at, true
	}
	return span{}, false
}

// AppendTypedJSON is AppendJSON in the order of AppendTyped.
func AppendTypedJSON(dst []byte, t Tree) []byte {
	dst = append(dst, '{')
	for _, key := range [...]string{"kind", "apiVersion", "metadata"} {
		if v, ok := t[key]; ok {
			dst = append(AppendString(dst, key), ':')
			dst = append(AppendJSON(dst, v), ',')
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t)) {
		switch key {
		case "kind", "apiVersion", "metadata":
		default:
			dst = append(AppendString(dst, key), ':')
			dst = append(AppendJSON(dst, t[key]), ',')
		}
	}
	if len(t) > 0 {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}')
}
