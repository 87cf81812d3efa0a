package schema

// Typed is the schema of a Go type whose Complete keeps values that the type does not encode: empty
// lists and maps, and fractions of a second. Kubernetes processes them until it stores an object.
type Typed struct{ *Schema }

// Complete is that of Schema, but keeps these values.
func (s Typed) Complete(obj map[string]any) (out map[string]any, unknown []string, err error) {
	p := s.must()
	return p.decode(obj, p.typ.Read)
}

// DropUnstored drops the values that Complete keeps, and reports whether there were any. It does not change
// obj.
func (s Typed) DropUnstored(obj map[string]any) (out map[string]any, dropped bool) {
	return s.must().typ.DropUnstored(obj)
}

// DropUnwritten is DropUnstored, but keeps empty lists and maps that are encoded.
func (s Typed) DropUnwritten(obj map[string]any) map[string]any {
	return s.must().typ.DropUnwritten(obj)
}

// DropEmpty is the part of DropUnstored for lists, maps and bytes.
func (s Typed) DropEmpty(obj map[string]any) map[string]any { return s.must().typ.DropEmpty(obj) }

// DropEmptyBytes is the part of DropUnstored for bytes.
func (s Typed) DropEmptyBytes(obj map[string]any) map[string]any {
	return s.must().typ.DropEmptyBytes(obj)
}
