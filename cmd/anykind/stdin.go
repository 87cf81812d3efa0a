package main

import (
	"context"
	"io"
	"os"
)

// untilStdin returns a context that also ends with the standard input, if stop is set. A pipe ends with the
// process that writes to it, even if that process is killed.
func untilStdin(ctx context.Context, stop bool) context.Context {
	if !stop {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return ctx
}
