package object

import (
	"maps"
	"slices"
)

// AppendTyped appends the object as Append does, in the order in which Kubernetes writes
// a Go type: kind, apiVersion and metadata come first. An object that is not stored in the
// usual form keeps its order.
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

// AppendUntyped appends the object as AppendTyped does, but without its
// apiVersion and kind, which lists of kinds with a Go type leave away.
func (e *Encoded) AppendUntyped(dst []byte) []byte {
	f, ok := e.front()
	if !ok {
		return e.Append(dst, "")
	}
	dst = slices.Grow(dst, len(e.JSON)+versionRoom)
	return e.appendRest(append(dst, '{'), f)
}

// appendRest appends the metadata and all other fields but those in front of it.
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
		dst = dst[:len(dst)-1] // there is nothing after the last comma
	}
	return append(dst, e.JSON[from:]...)
}

// front returns where kind, apiVersion and metadata are, in the order of the JSON, each with
// the comma that follows. It reports false where that is not the usual form.
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
	// A last field has the comma before it, which is the end of another one.
	return f, f[0].to <= f[1].from && f[1].to <= f[2].from
}

// field returns where a field of that value is, with the comma that follows, if any.
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

// AppendTypedJSON appends the JSON of an object as AppendJSON does, in the order of AppendTyped.
func AppendTypedJSON(dst []byte, t Tree) []byte {
	dst = append(dst, '{')
	for _, key := range [...]string{"kind", "apiVersion", "metadata"} {
		if v, ok := t[key]; ok {
			dst = append(appendString(dst, key), ':')
			dst = append(AppendJSON(dst, v), ',')
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t)) {
		switch key {
		case "kind", "apiVersion", "metadata":
		default:
			dst = append(appendString(dst, key), ':')
			dst = append(AppendJSON(dst, t[key]), ',')
		}
	}
	if len(t) > 0 {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}')
}
