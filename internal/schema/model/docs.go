package model

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"maps"
	"path"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"weak"

	"github.com/anykind/anykind/internal/schema/gotype"
)

// docsFiles have the documentation of the types of a package each: a line for a type, and an indented line for each
// field with documentation, "" for the type itself. A type is "like" its namesake in another package if both have the same
// documentation: NAME like PACKAGE. The files come from the methods SwaggerDoc of the types; a test writes and compares them. The
// methods would take three times as much of the program.
//
//go:embed docs
var docsFiles embed.FS

// A docsFile has the documentation of each type.
type docsFile map[string]typeDocs

// typeDocs are the lines of a type, or the package of the namesake that has them.
type typeDocs struct{ lines, like string }

// A docsCache has the files in use. They do not change, and the garbage collector drops the others.
type docsCache struct {
	files sync.Map // of weak.Pointer[docsFile], by package
}

var documentation docsCache

// lines returns the lines of a type.
func (c *docsCache) lines(pkg, name string) string {
	docs := c.of(pkg)[name]
	if docs.like != "" {
		docs = c.of(docs.like)[name]
	}
	return docs.lines
}

// of returns the documentation of the types of a package, nil for none.
func (c *docsCache) of(pkg string) docsFile {
	if known, ok := c.files.Load(pkg); ok {
		if file := known.(weak.Pointer[docsFile]).Value(); file != nil {
			return *file
		}
	}
	packed, err := docsFiles.ReadFile(path.Join("docs", gotype.NameOf(pkg, "gz")))
	if err != nil {
		return nil
	}
	file := parseDocs(unpack(packed))
	c.files.Store(pkg, weak.Make(&file))
	return file
}

func unpack(packed []byte) string {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // a test reads all files
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func parseDocs(text string) docsFile {
	file := docsFile{}
	for text != "" {
		head, rest, _ := strings.Cut(text, "\n")
		name, like, _ := strings.Cut(head, " like ")
		end := 0
		for strings.HasPrefix(rest[end:], "\t") {
			end += strings.IndexByte(rest[end:], '\n') + 1
		}
		file[name], text = typeDocs{rest[:end], like}, rest[end:]
	}
	return file
}

// Docs returns the documentation of a type by field; "" is its own.
func Docs(t reflect.Type) map[string]string { return Renamed{}.docs(t) }

func (r Renamed) docs(t reflect.Type) map[string]string {
	out := r.inlinedDocs(t)
	for line := range strings.Lines(documentation.lines(r.of(t), t.Name())) {
		name, quoted, _ := strings.Cut(strings.Trim(line, "\t\n"), " ")
		if doc, err := strconv.Unquote(quoted); err == nil {
			out[strings.Clone(name)] = strings.Clone(doc) // so that the rest of the file can go
		}
	}
	return out
}

// inlinedDocs returns the documentation of the fields of inlined structs.
func (r Renamed) inlinedDocs(t reflect.Type) map[string]string {
	out := map[string]string{}
	if t.Kind() != reflect.Struct {
		return out
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous || name != "" || gotype.Deref(f.Type).Kind() != reflect.Struct {
			continue
		}
		maps.Copy(out, r.docs(gotype.Deref(f.Type)))
	}
	delete(out, "")
	return out
}
