package flags

import (
	"fmt"
	"io"
	"log/slog"
	"path"
	"strconv"
	"time"
)

// A logFormat is the flag --logging-format.
type logFormat string

// The log formats of Kubernetes.
const (
	logText logFormat = "text"
	logJSON logFormat = "json"
)

func (f *logFormat) String() string { return string(*f) }

// Type is the name of the value in help.
func (f *logFormat) Type() string { return "string" }

// Set implements pflag.Value.
func (f *logFormat) Set(value string) error {
	switch format := logFormat(value); format {
	case logText, logJSON:
		*f = format
		return nil
	default:
		return fmt.Errorf("format: Invalid value: %q: Unsupported log format", value)
	}
}

// Log returns the logger of the server, with the level of -v and the format of --logging-format.
func (f *Serve) Log(to io.Writer) *slog.Logger {
	f.setVerbosity(f.verbosity)
	if f.logFormat == logJSON {
		return slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: &f.level, AddSource: true, ReplaceAttr: asKubernetes}))
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: &f.level}))
}

// setVerbosity sets the level of the Log.
func (f *Serve) setVerbosity(v int) { f.level.Set(levelOf(v)) }

func levelOf(verbosity int) slog.Level {
	switch {
	case verbosity >= verbosityOf(slog.LevelDebug):
		return slog.LevelDebug
	case verbosity >= verbosityOf(slog.LevelInfo):
		return slog.LevelInfo
	default:
		return slog.LevelWarn
	}
}

// verbosityOf returns the lowest value of -v that logs a level.
func verbosityOf(level slog.Level) int {
	switch {
	case level < slog.LevelInfo:
		return 4
	case level < slog.LevelWarn:
		return 1
	default:
		return 0
	}
}

// asKubernetes gives attributes the names and forms of Kubernetes' JSON logs: ts in milliseconds, the
// caller as folder/file.go:line, v, err, durations as strings. An error has no v.
func asKubernetes(groups []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		return slog.Float64("ts", float64(a.Value.Time().UnixNano())/float64(time.Millisecond))
	case slog.LevelKey:
		if level, ok := a.Value.Any().(slog.Level); ok {
			if level >= slog.LevelError {
				return slog.Attr{}
			}
			return slog.Int("v", verbosityOf(level))
		}
	case slog.SourceKey:
		if source, ok := a.Value.Any().(*slog.Source); ok {
			return slog.String("caller", path.Base(path.Dir(source.File))+"/"+path.Base(source.File)+":"+strconv.Itoa(source.Line))
		}
	case "error":
		a.Key = "err"
	}
	return a
}
