package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/schema/crd"
)

// stdin is the file of the objects in standard input, and in a text.
const stdin = "stdin"

// A Document is one object of a file.
type Document struct {
	file string
	line int // the first line of text in the file, or in the input with a source
	// source, if not nil, has the places in the file: another program made the object from it.
	source source
	text   []byte
	// path is the path of the object in the text, if the text is a list.
	path string
	// isSpec reports that the text is only the spec of the object.
	isSpec bool
	tree   object.Tree
	// body is the request body, in media.
	body   []byte
	media  codec.Media
	broken error // the parse error
	// duplicates are duplicate fields.
	duplicates []string
	// before is the stored object that the document updates, if Options.Old does not have it.
	before object.Tree
}

// Documents are the documents of some files.
type Documents struct {
	documents  []Document
	files      int
	passedOver int // documents in folders that are not objects
}

// read reads all files at the paths. In folders it reads YAML and JSON files, recursively. The path
// - is in.
func read(paths []string, in io.Reader) (*Documents, error) {
	return decodeAll(func(r *reader) error { return r.all(paths, in) })
}

// readText reads a text. All objects have their places in the text, even if it names files that they come from.
func readText(data []byte) (*Documents, error) {
	all, err := decodeAll(func(r *reader) error { return r.split(stdin, data, false) })
	if err != nil {
		return nil, err
	}
	for i := range all.documents { // the source of an item of a ResourceList is its file
		all.documents[i].file, all.documents[i].source = stdin, nil
	}
	return all, nil
}

// decodeAll decodes the documents that split finds, concurrently.
func decodeAll(split func(*reader) error) (*Documents, error) {
	var texts []text
	r := &reader{postpone: func(t text) { texts = append(texts, t) }}
	if err := split(r); err != nil {
		return nil, err
	}
	all := &Documents{files: r.files, passedOver: r.passedOver}
	decoded := make([]Documents, len(texts))
	_ = each(context.Background(), len(texts), func(i int) error {
		into := &decoded[i]
		one := &reader{visit: func(d *Document) error { into.documents = append(into.documents, *d); return nil }, mark: texts[i].mark}
		defer func() { into.passedOver = one.passedOver }()
		return one.add(texts[i])
	})
	for i := range decoded {
		all.documents = append(all.documents, decoded[i].documents...)
		all.passedOver += decoded[i].passedOver
	}
	return all, nil
}

// A text is a document before it is decoded.
type text struct {
	file string
	line int // its first line in the file
	data []byte
	// found reports that the file was found in a folder, where other documents than objects are skipped.
	found bool
	mark  func(*Document)
}

// A reader calls visit for each document.
type reader struct {
	visit func(*Document) error
	// plain, if not nil, is the kind of documents without apiVersion and kind.
	plain *Plain
	// postpone, if not nil, is called with each document in place of visit.
	postpone func(text)
	// mark, if not nil, sets the place of a generated document.
	mark       func(*Document)
	files      int
	passedOver int
}

func (r *reader) all(paths []string, in io.Reader) error {
	for _, path := range paths {
		if err := r.at(path, in); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) at(path string, in io.Reader) error {
	if path == "-" && in != nil {
		r.mark = templates()
		defer func() { r.mark = nil }()
		data, err := io.ReadAll(in)
		if err != nil {
			return fmt.Errorf("stdin: %w", err)
		}
		return r.split(stdin, data, false)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.open(path, false)
	}
	switch {
	case kustomization(path) != "":
		return r.kustomize(path)
	case isChart(path):
		return fmt.Errorf("%s is a Helm chart: helm template %[1]s | anykind check -", path)
	}
	return filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && isTemplates(file):
			r.passedOver++
			return fs.SkipDir
		case filepath.Base(file) == chartFile:
			r.passedOver++
			return nil
		case err != nil || d.IsDir() || !isManifest(file):
			return err
		}
		return r.open(file, true)
	})
}

// isTemplates reports whether a folder has the templates of a Helm chart.
func isTemplates(folder string) bool {
	return filepath.Base(folder) == "templates" && isChart(filepath.Dir(folder))
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

func (r *reader) open(path string, found bool) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return r.split(path, data, found)
}

// split reads the documents of a file. found reports that the file was found in a folder, where other
// documents than objects are skipped.
func (r *reader) split(file string, data []byte, found bool) error {
	r.files++
	line, begins := 1, 1
	from, at := 0, 0 // of the document, and of the line
	end := func() error {
		document := data[from:at:at]
		if len(bytes.TrimSpace(document)) == 0 || onlyComments(document) {
			return nil
		}
		t := text{file: file, line: begins, data: document, found: found, mark: r.mark}
		if r.postpone != nil {
			r.postpone(t)
			return nil
		}
		return r.add(t)
	}
	for s := range bytes.Lines(data) {
		next := at + len(s)
		switch {
		case separates(s):
			if err := end(); err != nil {
				return err
			}
			begins, from = line+1, next
		case from == at && len(bytes.TrimSpace(s)) == 0: // an empty line at the beginning
			begins, from = line+1, next
		}
		at = next
		line++
	}
	return end()
}

// separates reports whether a line separates two YAML documents.
func separates(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	if !ok {
		return false
	}
	rest = bytes.TrimSpace(rest)
	return len(rest) == 0 || rest[0] == '#'
}

func onlyComments(text []byte) bool {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// add decodes and visits a document, or the items of a list.
func (r *reader) add(t text) error {
	if values := jsonValues(t.data); len(values) > 1 { // a YAML parser would read only the first
		for _, value := range values {
			t.data = value
			if err := r.add(t); err != nil {
				return err
			}
			t.line += bytes.Count(value, []byte("\n"))
		}
		return nil
	}
	d := t.decode()
	if r.mark != nil {
		r.mark(&d)
	}
	if d.broken == nil && t.found && d.kind().Group == kustomizeGroup {
		r.passedOver++
		return nil
	}
	if d.broken == nil && (object.Kind(d.tree) == "" || object.APIVersion(d.tree) == "") {
		nothing := object.Kind(d.tree) == "" && object.APIVersion(d.tree) == ""
		switch {
		case nothing && r.plain != nil:
			r.plain.wrap(&d)
			return r.visit(&d)
		case nothing && t.found:
			r.passedOver++
			return nil
		}
		d.broken = errors.New("not an object: apiVersion or kind is missing")
	}
	items, ok := d.tree["items"].([]any)
	if d.broken != nil || !ok || !strings.HasSuffix(object.Kind(d.tree), "List") {
		return r.visit(&d)
	}
	for i, item := range items {
		one := d
		one.path = fmt.Sprintf("items[%d]", i)
		one.media = codec.JSON
		if one.tree, ok = item.(object.Tree); !ok || object.Kind(one.tree) == "" || object.APIVersion(one.tree) == "" {
			one.tree, one.broken = object.Tree{}, errors.New("not an object: apiVersion or kind is missing")
		}
		one.body = object.AppendJSON(nil, one.tree)
		if object.Kind(d.tree) == krmKind {
			itemSource(&one)
		}
		if err := r.visit(&one); err != nil {
			return err
		}
	}
	return nil
}

// decode decodes a document. The request has it as JSON, as requests of kubectl do. A document with
// duplicate fields stays YAML: only that reports them.
func (t *text) decode() Document {
	d := Document{file: t.file, line: t.line, text: t.data, body: t.data, media: codec.YAML}
	if bytes.HasPrefix(bytes.TrimSpace(t.data), []byte("{")) {
		d.tree, d.duplicates, d.broken = codec.Decode(codec.YAML, t.data)
		return d
	}
	body, duplicates, err := codec.FromYAML(t.data)
	if d.duplicates, d.broken = duplicates, err; err != nil {
		return d
	}
	if d.tree, _, d.broken = codec.Decode(codec.JSON, body); d.broken == nil && len(duplicates) == 0 {
		d.body, d.media = body, codec.JSON
	}
	return d
}

// jsonValues splits a text that consists of JSON values, each with its leading space. Other texts
// have none.
func jsonValues(text []byte) (all [][]byte) {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return nil
	}
	from := int64(0)
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var value json.RawMessage
		err := d.Decode(&value)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			return nil
		}
		all = append(all, text[from:d.InputOffset()])
		from = d.InputOffset()
	}
}

// where returns the file and line of the document.
func (d *Document) where() string {
	if d.source != nil {
		return d.file
	}
	return fmt.Sprintf("%s:%d", d.file, d.line)
}

// A kindName is a kind in any version.
type kindName = schema.GroupKind

func (d *Document) kind() kindName { return kindOf(d.tree) }

func kindOf(t object.Tree) kindName {
	return schema.FromAPIVersionAndKind(object.APIVersion(t), object.Kind(t)).GroupKind()
}

// An identity identifies an object.
type identity struct {
	kindName
	namespace, name string
}

func (d *Document) identity(namespace string) identity {
	return identity{d.kind(), namespace, object.Name(d.tree)}
}

func (d *Document) isDefinition() bool { return isDefinition(d.tree) }

func isDefinition(t object.Tree) bool { return kindOf(t) == kindName{Group: crd.Group, Kind: crd.Kind} }

// defines returns the kind of a definition.
func (d *Document) defines() kindName {
	spec, _ := d.tree["spec"].(object.Tree)
	names, _ := spec["names"].(object.Tree)
	group, _ := spec["group"].(string)
	kind, _ := names["kind"].(string)
	return kindName{Group: group, Kind: kind}
}

// result returns the result of an object before its check.
func (d *Document) result() Result {
	line := d.line
	if d.source != nil {
		line = 0
	}
	return Result{
		File: d.file, Line: line, APIVersion: object.APIVersion(d.tree), Kind: object.Kind(d.tree),
		Namespace: object.Namespace(d.tree), Name: object.Name(d.tree), document: d,
	}
}
