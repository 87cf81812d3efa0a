package main

import (
	"log/slog"
	"os"
)

// log is where the server says what somebody who looks after it would want to know.
func (f *serveFlags) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: f.level()}))
}

func (f *serveFlags) level() slog.Level {
	switch {
	case f.verbosity >= 4:
		return slog.LevelDebug
	case f.verbosity >= 1:
		return slog.LevelInfo
	default:
		return slog.LevelWarn
	}
}
