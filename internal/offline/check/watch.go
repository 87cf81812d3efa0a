package check

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// A Watch repeats a check when its files change, and prints the changes of verdicts. Objects whose
// text and definitions are unchanged are not checked again.
type Watch struct {
	// Paths are the files and folders of the check.
	Paths []string
	// Check is Run or Since with these Paths. It gets Options with the memory of the Watch.
	Check   func(ctx context.Context, o Options) (*Report, error)
	Options Options
	Out     io.Writer

	memory   *memory
	last     string // the fingerprint of the files
	failed   string // the last error
	findings map[string][]string
}

// watchEvery is the interval between looks at the files.
const watchEvery = 500 * time.Millisecond

// Run checks until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// look checks if the files have changed. It prints an error once, because a file may be incomplete
// while an editor writes it.
func (w *Watch) look(ctx context.Context) error {
	now := Fingerprint(w.files())
	if now == w.last {
		return nil
	}
	w.last = now
	if w.memory == nil {
		w.memory = &memory{results: map[string]Result{}}
	}
	o := w.Options
	o.memory = w.memory
	report, err := w.Check(ctx, o)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil && err.Error() != w.failed:
		w.failed = err.Error()
		_, err = fmt.Fprintln(w.Out, "error:", w.failed)
		return err
	case err != nil:
		return nil
	}
	w.failed = ""
	return w.print(report)
}

// files returns the files and folders to look at: a kustomization reads other folders, too.
func (w *Watch) files() []string {
	seen := map[string]bool{}
	var add func(path string)
	add = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		if file := kustomization(path); file != "" {
			for _, text := range namedIn(file) {
				if other := filepath.Join(path, filepath.FromSlash(text)); exists(other) {
					add(other)
				}
			}
		}
	}
	for _, path := range slices.Concat(w.Paths, w.Options.Definitions, w.Options.Old) {
		add(path)
	}
	return slices.Sorted(maps.Keys(seen))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// namedIn returns all texts in a YAML file.
func namedIn(file string) (all []string) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var root any
	if yaml.Unmarshal(data, &root) != nil {
		return nil
	}
	var visit func(value any)
	visit = func(value any) {
		switch value := value.(type) {
		case string:
			if value != "" && fs.ValidPath(strings.ReplaceAll(filepath.ToSlash(filepath.Clean(value)), "../", "")) {
				all = append(all, value)
			}
		case []any:
			for _, v := range value {
				visit(v)
			}
		case map[string]any:
			for _, v := range value {
				visit(v)
			}
		}
	}
	visit(root)
	return all
}

// print prints the first report, and then new findings, and objects that have none any more.
func (w *Watch) print(report *Report) error {
	now := map[string][]string{}
	var lines []string
	for i := range report.Results {
		one := &report.Results[i]
		key := one.File + "\x00" + one.id()
		texts, places := one.findings()
		_, twice := now[key]
		now[key] = append(now[key], texts...)
		for n, text := range texts {
			if !slices.Contains(w.findings[key], text) {
				lines = append(lines, places[n]+": "+text)
			}
		}
		if len(texts) == 0 && len(w.findings[key]) > 0 && !twice {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", one.document.where(), one.id(), one.Verdict))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.findings)) {
		if _, ok := now[key]; !ok && len(w.findings[key]) > 0 {
			file, id, _ := strings.Cut(key, "\x00")
			lines = append(lines, fmt.Sprintf("%s: %s: removed", file, id))
		}
	}
	first := w.findings == nil
	w.findings = now
	if len(lines) == 0 && !first {
		return nil
	}
	_, err := fmt.Fprintln(w.Out, strings.Join(append(lines, report.Summary.String()), "\n"))
	return err
}

// findings returns the findings of an object as text, and their places.
func (r *Result) findings() (texts, places []string) {
	for _, p := range r.Problems {
		texts, places = append(texts, "error: "+r.text(p)), append(places, r.at(p))
	}
	for _, p := range r.Warnings {
		texts, places = append(texts, "warning: "+r.text(p)), append(places, r.at(p))
	}
	return texts, places
}

// A memory has the results of a check, for the next one.
type memory struct {
	// state identifies all documents that decide about others: definitions, rules and stored objects.
	state   [sha256.Size]byte
	results map[string]Result
}

// recall returns the remembered results that are still valid. They stay in the memory only if they
// are recorded again.
func (m *memory) recall(all ...*Documents) map[string]Result {
	hash := sha256.New()
	for n, of := range all {
		for i := range of.documents {
			if d := &of.documents[i]; n > 0 || d.isDefinition() || d.isRules() {
				fmt.Fprintf(hash, "%d %d %s %d\n", n, len(d.text), d.where(), len(d.path))
				hash.Write(d.text)
			}
		}
	}
	valid, state := m.results, [sha256.Size]byte(hash.Sum(nil))
	if state != m.state {
		valid = nil
	}
	m.state, m.results = state, map[string]Result{}
	return valid
}

// recall returns the result of the last check of a document, if it is still valid.
func (c *checker) recall(d *Document) (Result, bool) {
	if c.known == nil {
		return Result{}, false
	}
	r, ok := c.known[keyOf(d)]
	r.document = d
	return r, ok
}

// keyOf identifies a document with its place and text.
func keyOf(d *Document) string {
	return fmt.Sprintf("%s\x00%s\x00%s", d.where(), d.path, d.text)
}
