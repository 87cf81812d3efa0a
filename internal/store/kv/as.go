package kv

// As returns the first T among a backend and the ones it decorates, which it finds by their method
// Unwrap() Backend. T is an ability of some backends besides the contract. Such a T sees the stored
// values of the decorated backend, which may differ from those that callers read and write.
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
