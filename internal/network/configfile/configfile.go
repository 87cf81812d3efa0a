// Package configfile reads the file of a configuration of an API server, such as an
// AuthorizationConfiguration, and follows it as it changes.
//
// It knows when to look at the file, when to try again, and what to say in the log and in
// metrics. It does not know what a configuration means.
package configfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
)

const (
	// LookAgain is how often a file is looked at.
	LookAgain = time.Second
	// RetryAfter is how long a configuration that could not be put in force, and that may be
	// another time, is not tried again.
	RetryAfter = time.Minute
)

// Decode reads a configuration as kube-apiserver does: unknown fields are errors. kind is what it
// has to be.
func Decode[T runtime.Object](data []byte, kind string) (T, error) {
	var none T
	decoded, _, err := DecodeAny(data)
	if err != nil {
		return none, err
	}
	c, ok := decoded.(T)
	if !ok {
		return none, fmt.Errorf("expected %s, got %T", kind, decoded)
	}
	return c, nil
}

// DecodeAny reads a configuration of any kind, and says which one it is.
func DecodeAny(data []byte) (runtime.Object, *schema.GroupVersionKind, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder().Decode(data, nil, nil)
}

// ErrSame says that a file means the same as before.
var ErrSame = errors.New("the configuration is unchanged")

// A File is one whose content was put in force.
type File struct {
	Path    string
	Of      string // what is configured: "authentication" or "authorization"
	Data    []byte // was put in force
	Metrics *Metrics
	Log     *slog.Logger
	// Load puts a content in force. final says that trying it again makes no difference.
	Load func(ctx context.Context, data []byte) (final bool, err error)
}

// Follow loads the file whenever it changes, as long as ctx lasts. What cannot be put in force is
// said in the log and in metrics, and what was in force before stays.
func (f *File) Follow(ctx context.Context) {
	l := follower{File: f, decided: f.Data}
	for {
		select {
		case <-time.After(LookAgain):
			l.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// A follower remembers what it knows of the file.
type follower struct {
	*File
	decided []byte // is in force, or never will be

	tried  []byte    // could not be put in force
	failed string    // why
	at     time.Time // when that was
}

func (f *follower) look(ctx context.Context) {
	data, err := os.ReadFile(f.Path)
	if err == nil && bytes.Equal(data, f.decided) {
		f.failed = ""
		return
	}
	if err != nil {
		err = fmt.Errorf("failed to read %s config file: %w", f.Of, err)
		if err.Error() == f.failed && time.Since(f.at) < RetryAfter {
			return
		}
	} else if f.failed != "" && bytes.Equal(data, f.tried) && time.Since(f.at) < RetryAfter {
		return
	}
	final := false
	if err == nil {
		final, err = f.Load(ctx, data)
	}
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, ErrSame):
		f.decided, f.failed = data, ""
		return
	}
	f.Metrics.loaded(data, err)
	if err != nil {
		f.Log.Error("the "+f.Of+" configuration was not loaded; the one before stays in force", "file", f.Path, "error", err)
		f.tried, f.failed, f.at = data, err.Error(), time.Now()
	} else {
		f.Log.Info("reloaded "+f.Of+" config", "file", f.Path)
		f.failed = ""
	}
	if final {
		f.decided, f.failed = data, ""
	}
}
