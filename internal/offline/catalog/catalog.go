// Package catalog keeps published CustomResourceDefinitions in a folder of the user, for checks
// without their files.
//
// An entry has a name, a source and the definitions that the source had when it was added. The lock
// file has the digest of each definition. A definition whose content has another digest is rejected. The
// package fetches sources and searches schemas. It validates nothing.
package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/atomicfile"
)

// A Catalog is a folder with a lock file, and a folder of definitions for each entry.
type Catalog struct {
	Folder string
	// Client fetches URLs.
	Client *http.Client
	// Read reads the CustomResourceDefinitions at some paths, sorted by name.
	Read func(paths []string) ([]object.Tree, error)
}

// Default returns the folder of the user's catalog.
func Default() (string, error) {
	config := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) { // the specification ignores relative ones
		var err error
		if config, err = os.UserConfigDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(config, "anykind", "catalog"), nil
}

// An Entry is a line of the lock file.
type Entry struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	// Commit is the commit of a source in git.
	Commit string `json:"commit,omitempty"`
	// Digest is the digest of all definitions.
	Digest      string       `json:"digest"`
	Definitions []Definition `json:"definitions"`
}

// A Definition is a definition of an Entry.
type Definition struct {
	Name   string `json:"name"`
	Group  string `json:"group"`
	Kind   string `json:"kind"`
	Digest string `json:"digest"`
}

const lockFile = "lock.json"

// A lock is the content of the lock file.
type lock struct {
	Entries []Entry `json:"entries"`
}

// Entries returns the entries, sorted by name.
func (c *Catalog) Entries() ([]Entry, error) {
	data, err := os.ReadFile(filepath.Join(c.Folder, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var l lock
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		return nil, fmt.Errorf("the lock file of the catalog: %w", err)
	}
	return l.Entries, nil
}

func (c *Catalog) write(entries []Entry) error {
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	data, err := json.MarshalIndent(lock{entries}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(c.Folder, lockFile), append(data, '\n'), 0o644)
}

// find returns the index of an entry.
func find(entries []Entry, name string) (int, error) {
	at := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if at < 0 {
		return 0, fmt.Errorf("the catalog has no entry %q: anykind catalog list shows its entries", name)
	}
	return at, nil
}

// Remove removes an entry.
func (c *Catalog) Remove(name string) error {
	entries, err := c.Entries()
	if err != nil {
		return err
	}
	at, err := find(entries, name)
	if err != nil {
		return err
	}
	if err := c.write(slices.Delete(entries, at, at+1)); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(c.Folder, name))
}

// names allows names of files and folders only.
var names = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// put stores the definitions of an entry, and its line in the lock file.
func (c *Catalog) put(e Entry, trees []object.Tree) (Entry, error) {
	entries, err := c.Entries()
	if err != nil {
		return e, err
	}
	e, files, err := pin(e, trees)
	if err != nil {
		return e, err
	}
	folder := filepath.Join(c.Folder, e.Name)
	if err := os.RemoveAll(folder); err != nil {
		return e, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return e, err
	}
	for i, d := range e.Definitions {
		if err := os.WriteFile(filepath.Join(folder, d.Name+".json"), files[i], 0o644); err != nil {
			return e, err
		}
	}
	entries = slices.DeleteFunc(entries, func(other Entry) bool { return other.Name == e.Name })
	return e, c.write(append(entries, e))
}

// pin computes the digests of an entry, and returns the contents of its files.
func pin(e Entry, trees []object.Tree) (Entry, [][]byte, error) {
	e.Definitions = nil
	var files [][]byte
	all := sha256.New()
	for _, t := range trees {
		spec, _ := t["spec"].(object.Tree)
		called, _ := spec["names"].(object.Tree)
		d := Definition{Name: object.Name(t)}
		d.Group, _ = spec["group"].(string)
		d.Kind, _ = called["kind"].(string)
		if !names.MatchString(d.Name) {
			return e, nil, fmt.Errorf("%s: %q is no name of a CustomResourceDefinition", e.Source, d.Name)
		}
		data := object.AppendJSON(nil, t)
		d.Digest = digest(data)
		fmt.Fprintln(all, d.Digest, d.Name)
		e.Definitions, files = append(e.Definitions, d), append(files, data)
	}
	e.Digest = "sha256:" + hex.EncodeToString(all.Sum(nil))
	return e, files, nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// read returns the content of a definition, with the pinned digest.
func (c *Catalog) read(e *Entry, d *Definition) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(c.Folder, e.Name, d.Name+".json"))
	if err != nil {
		return nil, fmt.Errorf("the catalog lacks a definition of %s: %w; anykind catalog update %[1]s fetches it again", e.Name, err)
	}
	if got := digest(data); got != d.Digest {
		return nil, fmt.Errorf("%s of the catalog entry %s has changed: its digest is %s, and %s is pinned; anykind catalog update %[2]s fetches it again", d.Name, e.Name, got, d.Digest)
	}
	return data, nil
}

// Published returns the definition of a kind, for check.Options. Of several entries with the kind,
// the first one by name counts.
func (c *Catalog) Published() (func(group, kind string) (string, []byte, error), error) {
	entries, err := c.Entries()
	return func(group, kind string) (string, []byte, error) {
		for i := range entries {
			for j := range entries[i].Definitions {
				if d := &entries[i].Definitions[j]; d.Group == group && d.Kind == kind {
					data, err := c.read(&entries[i], d)
					return "catalog " + entries[i].Name + "/" + d.Name, data, err
				}
			}
		}
		return "", nil, nil
	}, err
}
