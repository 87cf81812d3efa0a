package flags

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// parsed returns the flags of serve with values.
func parsed(t *testing.T, args ...string) *Serve {
	t.Helper()
	var f Serve
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Add(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &f
}

// JSON logs have the field names of Kubernetes, in one object a line.
func TestJSONLog(t *testing.T) {
	for _, test := range []struct {
		name string
		log  func(*slog.Logger)
		want map[string]any
	}{
		{"error", func(l *slog.Logger) { l.Error("it failed", "error", errors.New("no luck"), "key", "a") },
			map[string]any{"msg": "it failed", "err": "no luck", "key": "a"}},
		{"warning", func(l *slog.Logger) { l.Warn("careful", "in", 1500*time.Millisecond) },
			map[string]any{"msg": "careful", "v": 0., "in": "1.5s"}},
		{"information", func(l *slog.Logger) { l.With("controller", "gc").Info("two\nlines") },
			map[string]any{"msg": "two\nlines", "v": 1., "controller": "gc"}},
		{"debug", func(l *slog.Logger) { l.Debug("a request", slog.Group("of", "error", "x")) },
			map[string]any{"msg": "a request", "v": 4., "of": map[string]any{"error": "x"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			before := time.Now()
			test.log(parsed(t, "--logging-format=json", "-v=4").Log(&out))
			if strings.Count(out.String(), "\n") != 1 {
				t.Fatalf("not one line: %s", &out)
			}
			var got map[string]any
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			ts, _ := got["ts"].(float64)
			if at := time.UnixMicro(int64(ts * 1000)); at.Before(before.Add(-time.Millisecond)) || at.After(time.Now().Add(time.Millisecond)) {
				t.Errorf("ts is %v, not milliseconds of now", got["ts"])
			}
			if caller, _ := got["caller"].(string); !regexp.MustCompile(`^flags/log_test\.go:\d+$`).MatchString(caller) {
				t.Errorf("caller is %v", got["caller"])
			}
			delete(got, "ts")
			delete(got, "caller")
			equal := func(a, b any) bool {
				x, _ := json.Marshal(a)
				y, _ := json.Marshal(b)
				return bytes.Equal(x, y)
			}
			if !maps.EqualFunc(got, test.want, equal) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// -v selects what is logged in both formats, and text stays the default.
func TestLogVerbosity(t *testing.T) {
	for args, want := range map[string]int{"": 1, "-v=1": 2, "-v=3": 2, "-v=4": 3, "--logging-format=json": 1, "--logging-format=json -v=4": 3} {
		var out bytes.Buffer
		l := parsed(t, strings.Fields(args)...).Log(&out)
		l.Warn("a")
		l.Info("b")
		l.Debug("c")
		if got := strings.Count(out.String(), "\n"); got != want || strings.Contains(args, "json") != strings.HasPrefix(out.String(), "{") {
			t.Errorf("%q logs %d lines, want %d: %s", args, got, want, &out)
		}
	}
}

// An unknown format is an error with the words of Kubernetes.
func TestLogFormat(t *testing.T) {
	var f Serve
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Add(flags)
	err := flags.Parse([]string{"--logging-format=xml"})
	if err == nil || !strings.Contains(err.Error(), `format: Invalid value: "xml": Unsupported log format`) {
		t.Errorf("%v", err)
	}
}
