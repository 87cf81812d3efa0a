package kv

// As returns the first T of a backend and those that it decorates, which it finds by
// their method Unwrap() Backend. It is for what some backends can do besides the
// contract. What such a T does with values it does with those that it stores, which
// need not be those that the decorated backend reads and writes.
func As[T any](b Backend) (found T, ok bool) {
	for b != nil {
		if found, ok = b.(T); ok {
			return found, true
		}
		decorator, ok := b.(interface{ Unwrap() Backend })
		if !ok {
			break
		}
		b = decorator.Unwrap()
	}
	return found, false
}
