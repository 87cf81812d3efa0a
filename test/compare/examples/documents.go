// Package examples sends the objects that Kubernetes and other projects publish as examples to a
// kube-apiserver and to anykind, and compares the responses.
//
// They come from Go modules, which the go command downloads and verifies: the repository has none of
// them. Flags add folders, such as a copy of Kubernetes' website: YAML and JSON files, and YAML in
// Markdown. Each object is created as published, read as an object, as a row and as protobuf,
// replaced, patched, applied twice and deleted; then kubectl applies them all.
package examples

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	yamls "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/program"
)

// A Document is a published object.
type Document struct {
	Source string // the module or folder
	File   string // in it
	Number int    // in the file, from 1
	JSON   []byte
	Text   []byte // as published; nil for an item of a list

	Object
}

// Object identifies the object of a document.
type Object struct {
	APIVersion string
	Kind       string
	Metadata   struct{ Name, GenerateName, Namespace string }
}

func (d *Document) String() string { return fmt.Sprintf("%s %s #%d", d.Source, d.File, d.Number) }

// modules publish examples. The go.mod in the folder has their versions.
var modules = []struct {
	folder string
	paths  []string
}{
	{"test", []string{"k8s.io/kubernetes", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator", "k8s.io/pod-security-admission", "k8s.io/kubectl", "k8s.io/cli-runtime"}},
	{"test/operators/published", []string{"sigs.k8s.io/gateway-api", "github.com/cert-manager/cert-manager"}},
}

// Published returns the examples of the modules and of additional folders, without duplicates.
func Published(more ...string) ([]*Document, error) {
	top, err := program.Top()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var all []*Document
	add := func(source, dir string) error {
		found, err := read(source, dir)
		for _, d := range found {
			if !seen[string(d.JSON)] {
				seen[string(d.JSON)] = true
				all = append(all, d)
			}
		}
		return err
	}
	for _, m := range modules {
		dirs, err := download(filepath.Join(top, filepath.FromSlash(m.folder)), m.paths)
		if err != nil {
			return nil, err
		}
		for _, path := range m.paths {
			if err := add(path, dirs[path]); err != nil {
				return nil, err
			}
		}
	}
	for _, dir := range more {
		if err := add(filepath.Base(dir), dir); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// download returns the folders of modules, verified against the go.sum of a folder.
func download(dir string, paths []string) (map[string]string, error) {
	command := exec.Command("go", append([]string{"mod", "download", "-json"}, paths...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, failed := command.Output()
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var module struct{ Path, Dir, Error string }
		if err := d.Decode(&module); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("what go mod download says: %w", err)
		}
		if module.Error != "" {
			return nil, fmt.Errorf("downloading %s: %s", module.Path, module.Error)
		}
		dirs[module.Path] = module.Dir
	}
	if failed != nil {
		return nil, fmt.Errorf("go mod download in %s: %w", dir, failed)
	}
	return dirs, nil
}

// read returns the objects in the files of a folder and its subfolders.
func read(source, dir string) (all []*Document, err error) {
	err = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		texts := texts[filepath.Ext(file)]
		name, err := filepath.Rel(dir, file)
		if err != nil || texts == nil || skipped.MatchString(source+"/"+filepath.ToSlash(name)) {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		number := 0
		for _, text := range texts(data) {
			for _, d := range objects(text) {
				number++
				d.Source, d.File, d.Number = source, filepath.ToSlash(name), number
				all = append(all, d)
			}
		}
		return nil
	})
	return all, err
}

// skipped matches files without examples of their own: generated files, and thousands of pods that are
// equal for each version of the pod security standards.
var skipped = regexp.MustCompile(`^(k8s.io/kubernetes/(api|vendor)/|k8s.io/pod-security-admission/test/testdata/.*/v1\.([0-9]|1[0-9]|2[0-9])/)`)

// texts split a file into documents, by the suffix of its name.
var texts = map[string]func([]byte) [][]byte{
	".yaml": documents, ".yml": documents, ".json": values, ".md": blocks,
}

// documents returns the documents of a YAML file.
func documents(data []byte) (all [][]byte) {
	for r := yamls.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := r.Read()
		if err != nil {
			return all
		}
		all = append(all, document)
	}
}

// values returns the values of a JSON file, up to the first error.
func values(data []byte) (all [][]byte) {
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return all
		}
		all = append(all, value)
	}
}

var block = regexp.MustCompile("(?m)^([ \t]*)```[ ]?(?:ya?ml|json).*\n((?s:.*?))^[ \t]*```")

// blocks returns the documents in the YAML and JSON blocks of a Markdown file.
func blocks(data []byte) (all [][]byte) {
	for _, m := range block.FindAllSubmatch(data, -1) {
		indent := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(string(m[1])))
		all = append(all, documents(indent.ReplaceAll(m[2], nil))...)
	}
	return all
}

// objects returns the object of a text, or the items of a list. It omits everything else: templates,
// parts of objects, configurations of other programs.
func objects(text []byte) []*Document {
	converted, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil
	}
	d := &Document{JSON: converted, Text: text}
	if json.Unmarshal(converted, &d.Object) != nil || d.Kind == "" || d.APIVersion == "" {
		return nil
	}
	var list struct{ Items []json.RawMessage }
	if !strings.HasSuffix(d.Kind, "List") || json.Unmarshal(converted, &list) != nil {
		return []*Document{d}
	}
	var all []*Document
	for _, item := range list.Items {
		all = append(all, objects(item)...)
	}
	for _, d := range all {
		d.Text = nil
	}
	return all
}
