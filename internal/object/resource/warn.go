package resource

import "context"

type warnKey struct{}

// WithWarn returns a context in which Warn calls warn. Nil discards warnings.
func WithWarn(ctx context.Context, warn func(message string)) context.Context {
	if warn == nil {
		return ctx
	}
	return context.WithValue(ctx, warnKey{}, warn)
}

// Warn sends a warning to the client that writes the object being validated.
func Warn(ctx context.Context, message string) {
	if warn, ok := ctx.Value(warnKey{}).(func(string)); ok {
		warn(message)
	}
}
