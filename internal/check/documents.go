package check

import (
	"bufio"
	"bytes"
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

	"github.com/anykind/anykind/internal/codec"
	"github.com/anykind/anykind/internal/crd"
	"github.com/anykind/anykind/internal/object"
)

// A Document is one object of a file.
type Document struct {
	file string
	line int // of the file, on which text begins
	text []byte
	// path leads to the object in the text, where that is a list.
	path string
	tree object.Tree
	// body is what a server is sent, in media.
	body   []byte
	media  codec.Media
	broken error // why it cannot be read
	// duplicates are fields that are there twice.
	duplicates []string
}

// Documents are those of some files.
type Documents struct {
	documents  []Document
	files      int
	passedOver int // documents of folders that are no objects
}

// read reads all files at the paths; of folders those that are called YAML or JSON, and those of
// the folders in them. The path - is in.
func read(paths []string, in io.Reader) (*Documents, error) {
	all := &Documents{}
	for _, path := range paths {
		if err := all.at(path, in); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (a *Documents) at(path string, in io.Reader) error {
	if path == "-" && in != nil {
		return a.stream("stdin", in, false)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return a.open(path, false)
	}
	return filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			return err
		}
		return a.open(file, true)
	})
}

func (a *Documents) open(path string, found bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return a.stream(path, f, found)
}

// stream reads the documents of a file. In one that was found in a folder, there may be others than
// objects.
func (a *Documents) stream(file string, in io.Reader, found bool) error {
	a.files++
	line, begins := 0, 1
	var text []byte
	end := func() {
		if len(bytes.TrimSpace(text)) > 0 && !onlyComments(text) {
			a.add(file, begins, text, found)
		}
		text = nil
	}
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		s, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", file, err)
		}
		if line++; separates(s) {
			end()
			begins = line + 1
		} else {
			if len(text) == 0 && len(bytes.TrimSpace(s)) == 0 {
				begins = line + 1
			} else {
				text = append(text, s...)
			}
		}
		if err != nil {
			end()
			return nil
		}
	}
}

// separates reports whether a line is between two documents of YAML.
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

// add adds a document, or what is in it if it is a list.
func (a *Documents) add(file string, line int, text []byte, found bool) {
	if values := jsonValues(text); len(values) > 1 { // of which who reads YAML sees the first
		for _, value := range values {
			a.add(file, line, value, found)
			line += bytes.Count(value, []byte("\n"))
		}
		return
	}
	d := Document{file: file, line: line, text: text, body: text, media: codec.YAML}
	d.tree, d.duplicates, d.broken = codec.Decode(codec.YAML, text)
	if d.broken == nil && (object.Kind(d.tree) == "" || object.APIVersion(d.tree) == "") {
		if found && object.Kind(d.tree) == "" && object.APIVersion(d.tree) == "" {
			a.passedOver++
			return
		}
		d.broken = errors.New("it is no object: it has no apiVersion or no kind")
	}
	items, ok := d.tree["items"].([]any)
	if d.broken != nil || !ok || !strings.HasSuffix(object.Kind(d.tree), "List") {
		a.documents = append(a.documents, d)
		return
	}
	for i, item := range items {
		one := d
		one.path = fmt.Sprintf("items[%d]", i)
		one.media = codec.JSON
		if one.tree, ok = item.(object.Tree); !ok || object.Kind(one.tree) == "" || object.APIVersion(one.tree) == "" {
			one.tree, one.broken = object.Tree{}, errors.New("it is no object: it has no apiVersion or no kind")
		}
		one.body = object.AppendJSON(nil, one.tree)
		a.documents = append(a.documents, one)
	}
}

// jsonValues divides a text into the values of JSON in it, each with the space before it, if it has
// nothing else.
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

// where is where the document begins.
func (d *Document) where() string { return fmt.Sprintf("%s:%d", d.file, d.line) }

// A kindName is a kind in any version.
type kindName = schema.GroupKind

func (d *Document) kind() kindName { return kindOf(d.tree) }

func kindOf(t object.Tree) kindName {
	return schema.FromAPIVersionAndKind(object.APIVersion(t), object.Kind(t)).GroupKind()
}

// An identity tells objects apart.
type identity struct {
	kindName
	namespace, name string
}

func (d *Document) identity(namespace string) identity {
	return identity{d.kind(), namespace, object.Name(d.tree)}
}

func (d *Document) isDefinition() bool { return isDefinition(d.tree) }

func isDefinition(t object.Tree) bool { return kindOf(t) == kindName{Group: crd.Group, Kind: crd.Kind} }

// defines is the kind that a definition defines.
func (d *Document) defines() kindName {
	spec, _ := d.tree["spec"].(object.Tree)
	names, _ := spec["names"].(object.Tree)
	group, _ := spec["group"].(string)
	kind, _ := names["kind"].(string)
	return kindName{Group: group, Kind: kind}
}

// result is what is known of an object before it is checked.
func (d *Document) result() Result {
	return Result{
		File: d.file, Line: d.line, APIVersion: object.APIVersion(d.tree), Kind: object.Kind(d.tree),
		Namespace: object.Namespace(d.tree), Name: object.Name(d.tree), document: d,
	}
}
