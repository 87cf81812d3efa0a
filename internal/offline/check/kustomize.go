package check

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
)

// kustomizations are the files that make a folder a kustomization.
var kustomizations = [...]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomization returns the kustomization file of a folder, or "".
func kustomization(folder string) string {
	for _, name := range kustomizations {
		if file := filepath.Join(folder, name); isFile(file) {
			return file
		}
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// kustomizeGroup is the group of the kinds that only kustomize reads.
const kustomizeGroup = "kustomize.config.k8s.io"

// A kustomizeOutput is the output of kustomize for a folder.
type kustomizeOutput struct {
	// folder and file, the kustomization, are as the user names them.
	folder, file string
	text         string
	// sources are the objects in the files that kustomize names as origins, by their paths from the folder.
	sources map[string][]Document
}

// build runs the user's kustomize, or kubectl. named is the name of the folder in findings.
func build(folder, named string) (*kustomizeOutput, error) {
	cmd := exec.Command("kustomize", "build", folder)
	if errors.Is(cmd.Err, exec.ErrNotFound) {
		cmd = exec.Command("kubectl", "kustomize", folder)
	}
	if cmd.Err != nil {
		return nil, fmt.Errorf("%s is a kustomization, and neither kustomize nor kubectl was found: install one of them, or name files in place of the folder", folder)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(said.String()))
	}
	k := &kustomizeOutput{folder: named, file: filepath.Join(named, filepath.Base(kustomization(folder))), text: string(out)}
	return k, k.readSources(folder)
}

// readSources reads the files that the output names as origins, from the folder. It skips origins in other
// repositories.
func (k *kustomizeOutput) readSources(folder string) error {
	k.sources = map[string][]Document{}
	if !strings.Contains(k.text, originAnnotation) {
		return nil
	}
	objects, err := decodeAll(func(r *reader) error { return r.split(k.file, []byte(k.text), false) })
	if err != nil {
		return err
	}
	for i := range objects.documents {
		path := originIn(&objects.documents[i]).Path
		file := filepath.Join(folder, filepath.FromSlash(path))
		if path == "" || k.sources[path] != nil || !isFile(file) {
			continue
		}
		if all, err := read([]string{file}, nil); err == nil {
			k.sources[path] = all.documents
		}
	}
	return nil
}

// kustomize reads the objects of a folder as kustomize builds them.
func (r *reader) kustomize(folder string) error {
	k, err := build(folder, folder)
	if err != nil {
		return err
	}
	return r.splitOutput(k)
}

// splitOutput reads the output of kustomize.
func (r *reader) splitOutput(k *kustomizeOutput) error {
	r.mark = k.mark
	defer func() { r.mark = nil }()
	return r.split(k.file, []byte(k.text), false)
}

// An origin is the annotation of kustomize with the origin of an object: its file, or the kustomization
// with its generator.
type origin struct{ Path, Repo, ConfiguredIn string }

const originAnnotation = "config.kubernetes.io/origin"

// originIn returns the origin of an object. It is empty for an origin in another repository.
func originIn(d *Document) (o origin) {
	text, _ := object.Annotation(d.tree, originAnnotation)
	if yaml.Unmarshal([]byte(text), &o) != nil || o.Repo != "" {
		return origin{}
	}
	return o
}

// mark sets the file of an object: its origin, or the kustomization.
func (k *kustomizeOutput) mark(d *Document) {
	d.file, d.source = k.file, k
	o := originIn(d)
	if path := cmp.Or(o.Path, o.ConfiguredIn); path != "" {
		d.file = filepath.Join(k.folder, filepath.FromSlash(path))
	}
}

// place sets the line of the field in the origin if the field has the same value there. A field that a
// patch has changed, or a generator has added, has the line of the object.
func (k *kustomizeOutput) place(d *Document, root *yamlv3.Node, field string, p *Problem) {
	p.Line, p.Column = 0, 0
	from := k.sourceOf(d)
	if from == nil {
		return
	}
	own := from.root()
	p.Line, p.Column = from.in(own)
	if root == nil || own == nil {
		return
	}
	if same := counterpart(root, own, field); same != nil {
		p.Line, p.Column = from.in(same)
	}
}

// sourceOf returns the object in the origin that an object was made from, or nil if that is unsure. Its name is the
// name of the object, or a part of it: kustomize adds the same prefix and suffix to all names of a kind.
func (k *kustomizeOutput) sourceOf(d *Document) (found *Document) {
	id, documents := d.identity(""), k.sources[originIn(d).Path]
	names := make([]string, len(documents)) // of the possible objects
	for i := range documents {
		if own := documents[i].identity(""); own.kindName == id.kindName && strings.Contains(id.name, own.name) {
			names[i] = own.name
		}
	}
	for i, own := range names {
		prefix, suffix, _ := strings.Cut(id.name, own)
		missing := func(other string) bool {
			return other != "" && other != own && !strings.Contains(k.text, "\n  name: "+prefix+other+suffix+"\n")
		}
		switch {
		case own == "" || slices.ContainsFunc(names, missing):
		case found != nil:
			return nil
		default:
			found = &documents[i]
		}
	}
	return found
}
