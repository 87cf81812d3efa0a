// Package configfile reads a configuration file of an API server, such as an
// AuthorizationConfiguration, and reloads it when it changes.
//
// It knows when to poll the file, when to retry, and the log lines and metrics. It does not know
// the meaning of a configuration.
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
	// LookAgain is the interval at which a file is polled.
	LookAgain = time.Second
	// RetryAfter is the pause after a failed load that may succeed later.
	RetryAfter = time.Minute
)

// Decode decodes a configuration as kube-apiserver does: unknown fields are errors. kind is the
// expected kind.
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

// DecodeAny decodes a configuration of any kind, and returns the kind.
func DecodeAny(data []byte) (runtime.Object, *schema.GroupVersionKind, error) {
	return decoder().Decode(data, nil, nil)
}

// DecodeInto decodes a configuration of the kind of an internal object. The data may have no apiVersion and kind.
func DecodeInto(data []byte, into runtime.Object) error {
	return runtime.DecodeInto(decoder(), data, into)
}

func decoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
}

// ErrSame says that a file means the same as before.
var ErrSame = errors.New("the configuration is unchanged")

// A File is a configuration file with the content that is in force.
type File struct {
	Path    string
	Of      string // "authentication" or "authorization"
	Data    []byte // the content in force
	Metrics *Metrics
	Log     *slog.Logger
	// Load puts a content in force. final reports that a retry cannot succeed.
	Load func(ctx context.Context, data []byte) (final bool, err error)
}

// Follow reloads the file whenever it changes, until ctx ends. A failed load is logged and
// counted, and the previous content stays in force.
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

// A follower has the state of the file.
type follower struct {
	*File
	decided []byte // in force, or failed for good

	tried  []byte    // failed, to be retried
	failed string    // last error
	at     time.Time // time of the last attempt
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
