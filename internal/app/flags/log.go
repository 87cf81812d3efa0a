package flags

import (
	"io"
	"log/slog"
)

// Log is where the server says what somebody who looks after it would want to know.
func (f *Serve) Log(to io.Writer) *slog.Logger {
	f.setVerbosity(f.verbosity)
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: &f.level}))
}

// setVerbosity sets how much the Log says.
func (f *Serve) setVerbosity(v int) { f.level.Set(levelOf(v)) }

func levelOf(verbosity int) slog.Level {
	switch {
	case verbosity >= 4:
		return slog.LevelDebug
	case verbosity >= 1:
		return slog.LevelInfo
	default:
		return slog.LevelWarn
	}
}
