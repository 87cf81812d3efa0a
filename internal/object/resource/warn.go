package resource

import "context"

type warnKey struct{}

// WithWarn returns a context in which Warn calls warn. Nil is for nobody.
func WithWarn(ctx context.Context, warn func(message string)) context.Context {
	if warn == nil {
		return ctx
	}
	return context.WithValue(ctx, warnKey{}, warn)
}

// Warn tells who writes the object that is being validated something that is not
// an error.
func Warn(ctx context.Context, message string) {
	if warn, ok := ctx.Value(warnKey{}).(func(string)); ok {
		warn(message)
	}
}
