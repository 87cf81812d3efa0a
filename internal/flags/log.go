package flags

import (
	"io"
	"log/slog"
)

// Log is where the server says what somebody who looks after it would want to know.
func (f *Serve) Log(to io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: f.level()}))
}

func (f *Serve) level() slog.Level {
	switch {
	case f.verbosity >= 4:
		return slog.LevelDebug
	case f.verbosity >= 1:
		return slog.LevelInfo
	default:
		return slog.LevelWarn
	}
}
