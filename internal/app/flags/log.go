package flags

import (
	"io"
	"log/slog"
)

// Log returns the logger of the server.
func (f *Serve) Log(to io.Writer) *slog.Logger {
	f.setVerbosity(f.verbosity)
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: &f.level}))
}

// setVerbosity sets the level of Log.
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
