package schema

// Typed is the schema of a Go type whose Complete keeps what the type holds and does not
// write: lists and maps that are there and empty, parts of a second. Kubernetes looks at
// them until it stores an object.
type Typed struct{ *Schema }

// Complete is that of Schema, but for what it keeps.
func (s Typed) Complete(obj map[string]any) (out map[string]any, unknown []string, err error) {
	p := s.must()
	return p.decode(obj, p.typ.Read)
}

// Settle drops what Complete keeps, and reports whether there was anything. It changes
// nothing in obj.
func (s Typed) Settle(obj map[string]any) (out map[string]any, dropped bool) {
	return s.must().typ.Settle(obj)
}

// DropUnwritten is Settle, but keeps lists and maps that are empty and written.
func (s Typed) DropUnwritten(obj map[string]any) map[string]any {
	return s.must().typ.DropUnwritten(obj)
}

// DropEmpty does of Settle what is about lists, maps and bytes.
func (s Typed) DropEmpty(obj map[string]any) map[string]any { return s.must().typ.DropEmpty(obj) }

// DropEmptyBytes does of Settle what is about bytes.
func (s Typed) DropEmptyBytes(obj map[string]any) map[string]any {
	return s.must().typ.DropEmptyBytes(obj)
}
