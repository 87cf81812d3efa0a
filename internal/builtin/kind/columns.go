package kind

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema/gotype"
	"github.com/anykind/anykind/internal/schema/model"
)

// Cells compute the values of columns, by name.
type Cells map[string]func(obj map[string]any) any

// Docs are descriptions of columns, by name.
type Docs map[string]string

// columns parses the columns of a kind of the Go type t. Each line has up to four parts, separated
// by two or more spaces:
//
//	Up-to-date  integer      .status.updatedReplicas
//	Port(s)     string       ports   .spec.ports
//	Images      string wide  images  "Images referenced by each container in the template."
//	Age
//
// They are the name; the type, with "wide" for a column that is shown on request only; the path of
// the cell, or its function in Cells; and the description: a path, a name in Docs, or a text.
// Without a description, that of the cell is used. A path may end in a default:
// ".spec.minReplicas:<unset>". A line with a name only is a column of many kinds: Age.
func columns(t reflect.Type, text string, cells Cells, docs Docs) (out []view.Column) {
	for line := range strings.Lines(text) {
		parts := slices.DeleteFunc(strings.Split(strings.TrimSpace(line), "  "), func(s string) bool { return strings.TrimSpace(s) == "" })
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		switch {
		case len(parts) == 0:
		case len(parts) == 1 && parts[0] == "Age":
			out = append(out, AgeColumn())
		case len(parts) < 3:
			panic(fmt.Sprintf("kind: column %q of %s", line, t))
		default:
			out = append(out, column(t, parts, cells, docs))
		}
	}
	return out
}

func column(t reflect.Type, parts []string, cells Cells, docs Docs) view.Column {
	c := view.Column{Name: parts[0]}
	for i, word := range strings.Fields(parts[1]) {
		switch {
		case i == 0:
			c.Type = word
		case word == "wide":
			c.Priority = 1
		default:
			c.Format = word
		}
	}
	cell := parts[2]
	doc, _, _ := strings.Cut(cell, ":")
	if len(parts) > 3 {
		doc = parts[3]
	}
	unquoted, err := strconv.Unquote(doc)
	named, ok := docs[doc]
	switch {
	case err == nil:
		c.Description = unquoted
	case ok:
		c.Description = named
	default:
		c.Description = docOf(t, doc)
	}
	if c.Cell = cells[cell]; c.Cell == nil {
		c.Cell = pathCell(t, cell)
	}
	return c
}

// pathCell returns a function for the value at a path. If the value is missing, it returns the zero
// value of the Go type.
func pathCell(t reflect.Type, path string) func(map[string]any) any {
	at, ok := strings.CutPrefix(path, ".")
	if !ok {
		panic(fmt.Sprintf("kind: %s has no cell %q", t, path))
	}
	at, instead, ok := strings.Cut(at, ":")
	names, zero := strings.Split(at, "."), zeroAt(t, at)
	of, _ := typeAt(t, at)
	pointer := of.Kind() == reflect.Pointer // an empty text is a value
	if ok {
		zero = instead
	}
	return func(obj map[string]any) any {
		if v := Value(obj, names...); v != nil && (v != "" || pointer) {
			return v
		}
		return zero
	}
}

// typeAt returns the Go type of a field, and its struct.
func typeAt(t reflect.Type, path string) (of, in reflect.Type) {
	of = t
	for name := range strings.SplitSeq(path, ".") {
		for in = gotype.Deref(of); in.Kind() == reflect.Slice || in.Kind() == reflect.Map; in = gotype.Deref(in.Elem()) {
		}
		of = nil
		for f := range gotype.Fields(in) {
			if f.JSONName == name {
				of = f.Type
			}
		}
		if of == nil {
			panic(fmt.Sprintf("kind: %s has no field %q of %q", in, name, path))
		}
	}
	return of, in
}

func zeroAt(t reflect.Type, path string) any {
	of, _ := typeAt(t, path)
	switch gotype.Deref(of).Kind() {
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Int32, reflect.Int64:
		return int64(0)
	}
	return nil
}

// docOf returns the documentation of a field.
func docOf(t reflect.Type, path string) string {
	path = strings.TrimPrefix(path, ".")
	_, in := typeAt(t, path)
	return model.Docs(in)[path[strings.LastIndexByte(path, '.')+1:]]
}

// selectable parses the field selectors of a kind of the Go type t. A selector with the path "-" is
// valid, but no object has a value for it.
func selectable(t reflect.Type, text string) map[string]func(map[string]any) string {
	out := map[string]func(map[string]any) string{}
	for _, word := range strings.Fields(text) {
		name, path, ok := strings.Cut(word, "=")
		if !ok {
			path = name
		}
		if path == "-" {
			out[name] = func(map[string]any) string { return "" }
			continue
		}
		cell := sync.OnceValue(func() func(map[string]any) any { return pathCell(t, "."+path) })
		out[name] = func(obj map[string]any) string {
			switch v := cell()(obj).(type) {
			case nil:
				return ""
			case string:
				return v
			default:
				return fmt.Sprint(v)
			}
		}
	}
	return out
}

// AgeColumn returns the column with the age of an object.
func AgeColumn() view.Column {
	return view.Column{
		Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Cell: func(obj map[string]any) any { return Age(object.MetaString(obj, "creationTimestamp")) },
	}
}

// Age returns the cell of a timestamp, which may be missing.
func Age(timestamp string) any {
	if timestamp == "" {
		return "<unknown>"
	}
	return view.Age(timestamp)
}

// Count returns a function for the number of elements at a path.
func Count(path ...string) func(map[string]any) any {
	return func(obj map[string]any) any { return int64(len(List(obj, path...))) }
}
