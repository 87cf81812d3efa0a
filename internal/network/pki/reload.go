package pki

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// reloadAfter is the interval at which files are checked.
const reloadAfter = time.Second

// Reloaded is a value that is parsed from files, and again when they change. There is no watch:
// Get checks the files, at most once a second.
type Reloaded[T any] struct {
	files []string
	parse func(contents [][]byte) (T, error)
	log   *slog.Logger

	mu       sync.Mutex
	value    T
	contents [][]byte // files of value
	failed   string   // error of the last attempt
	looked   time.Time
}

// reload loads files for the first time; they must be valid.
func reload[T any](log *slog.Logger, files []string, parse func([][]byte) (T, error)) (*Reloaded[T], error) {
	r := &Reloaded[T]{files: files, parse: parse, log: log}
	r.looked = time.Now()
	return r, r.load()
}

// Get returns the current value. While the files are invalid, such as between the writes of a
// certificate and its key, it is the last valid one.
func (r *Reloaded[T]) Get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.looked) >= reloadAfter || now.Before(r.looked) {
		r.looked = now
		r.look()
	}
	return r.value
}

func (r *Reloaded[T]) look() {
	before, failed := r.contents, r.failed
	err := r.load()
	r.failed = ""
	if err != nil {
		r.failed = err.Error()
	}
	switch {
	case err != nil && r.failed != failed:
		r.log.Warn("changed files are invalid; the previous contents stay in effect", "files", r.files, "error", err)
	case !same(before, r.contents):
		r.log.Info("changed files are in use", "files", r.files)
	}
}

// load parses the files if they have changed.
func (r *Reloaded[T]) load() error {
	contents := make([][]byte, len(r.files))
	for i, file := range r.files {
		var err error
		if contents[i], err = os.ReadFile(file); err != nil {
			return fmt.Errorf("reading certificates and keys: %w", err)
		}
	}
	if same(contents, r.contents) {
		return nil
	}
	value, err := r.parse(contents)
	if err == nil {
		r.value, r.contents = value, contents
	}
	return err
}

func same(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
