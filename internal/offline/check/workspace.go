package check

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/anykind/anykind/internal/object/resource"
)

// A Workspace checks texts of a folder with the definitions below it. It is safe for concurrent use.
type Workspace struct {
	// Definitions are further files and folders with CustomResourceDefinitions.
	Definitions []string
	// RuntimeConfig and the like are those of Options.
	Options Options

	mu     sync.Mutex
	folder string
	state  string   // of the files with definitions
	files  []string // with definitions
	server *checker
}

// maxFiles limits the files of a folder that are searched for definitions.
const maxFiles = 20_000

// skipped are folders without manifests of their own.
var skipped = []string{".git", "node_modules", "vendor", ".terraform"}

// Open reads the definitions below a folder; "" is none.
func (w *Workspace) Open(ctx context.Context, folder string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.folder = folder
	return w.read(ctx)
}

// errMany ends a search.
var errMany = errors.New("too many files")

// read reads the definitions, unless no file has changed. The caller holds mu.
func (w *Workspace) read(ctx context.Context) error {
	files := slices.Clone(w.Definitions)
	n := 0
	if w.folder != "" {
		_ = filepath.WalkDir(w.folder, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case e.IsDir() && slices.Contains(skipped, e.Name()):
				return filepath.SkipDir
			case e.IsDir() || !isManifest(path):
				return nil
			}
			if n++; n > maxFiles {
				return errMany
			}
			if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("CustomResourceDefinition")) {
				files = append(files, path)
			}
			return nil
		})
	}
	state := Fingerprint(files)
	if w.server != nil && state == w.state {
		return nil
	}
	server, err := newChecker(ctx, w.Options)
	if err != nil {
		return err
	}
	w.state, w.files = state, nil
	for _, file := range files {
		all, err := read([]string{file}, nil)
		if err != nil {
			continue // a file that is being edited
		}
		w.files = append(w.files, file)
		for i := range all.documents {
			if d := &all.documents[i]; d.broken == nil && d.isDefinition() {
				if _, err := server.define(ctx, d); err != nil {
					return err
				}
			}
		}
	}
	if w.server != nil {
		_ = w.server.server.Stop(context.WithoutCancel(ctx))
	}
	w.server = server
	return nil
}

// Check returns the results of the objects in a text, with their places in it. Objects of unknown kinds are passed over.
func (w *Workspace) Check(ctx context.Context, text string) ([]Result, error) {
	w.mu.Lock()
	err := w.read(ctx)
	o := w.Options
	o.Definitions, o.PassUnknown = slices.Clone(w.files), true
	w.mu.Unlock()
	if err != nil {
		return nil, err
	}
	all, err := readText([]byte(text))
	if err != nil {
		return nil, err
	}
	report, err := run(ctx, all, o)
	if err != nil {
		return nil, err
	}
	return report.Results, nil
}

// Kinds returns the served kinds: the built-in ones, and those of the definitions.
func (w *Workspace) Kinds() *resource.Set {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server == nil {
		return nil
	}
	return w.server.server.Definitions()
}

// Close stops the server of the Workspace.
func (w *Workspace) Close(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server == nil {
		return nil
	}
	return w.server.server.Stop(ctx)
}
