package codec

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/object/view"
)

// Include is the content of a Table's rows besides their cells.
type Include int

const (
	IncludeMetadata Include = iota
	IncludeNone
	IncludeObject
)

// ParseInclude parses the includeObject parameter.
func ParseInclude(s string) (Include, error) {
	switch s {
	case "", string(metav1.IncludeMetadata):
		return IncludeMetadata, nil
	case string(metav1.IncludeNone):
		return IncludeNone, nil
	case string(metav1.IncludeObject):
		return IncludeObject, nil
	}
	return 0, status.BadRequest("Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", s)
}

// Columns are the prepared columns of a resource's Tables.
type Columns struct {
	columns     []view.Column
	definitions []byte // as JSON
	conditions  func(obj map[string]any) []metav1.TableRowCondition
}

// NewColumns prepares columns. It adds the name as the first column unless columns has it.
func NewColumns(columns []view.Column) *Columns {
	c := &Columns{columns: columns}
	if !slices.ContainsFunc(columns, func(c view.Column) bool { return c.Format == "name" }) {
		c.columns = append([]view.Column{NameColumn()}, columns...)
	}
	c.definitions = appendDefinitions(nil, c.columns)
	return c
}

// WithConditions adds row conditions. Nil adds none.
func (c *Columns) WithConditions(conditions func(obj map[string]any) []metav1.TableRowCondition) *Columns {
	c.conditions = conditions
	return c
}

func appendDefinitions(dst []byte, columns []view.Column) []byte {
	dst = append(dst, '[')
	for i, c := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = object.AppendJSON(dst, c.Name)
		dst = append(dst, `,"type":`...)
		dst = object.AppendJSON(dst, c.Type)
		dst = append(dst, `,"format":`...)
		dst = object.AppendJSON(dst, c.Format)
		dst = append(dst, `,"description":`...)
		dst = object.AppendJSON(dst, c.Description)
		dst = append(dst, `,"priority":`...)
		dst = object.AppendJSON(dst, int64(c.Priority))
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// NameColumn returns the first column of nearly every Table.
func NameColumn() view.Column {
	return view.Column{
		Name: "Name", Type: "string", Format: "name",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
		Cell:        func(obj map[string]any) any { return object.Name(obj) },
	}
}

// AgeColumn returns the default column of a custom resource.
func AgeColumn() view.Column {
	return view.Column{
		Name: "Age", Type: "date",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Cell:        Cell(".metadata.creationTimestamp", "date"),
	}
}

// ageMark encloses a timestamp in cached cells that becomes an age when the Table is written.
// JSON never contains this byte.
const ageMark = 0

// insideText follows the first mark of an age inside a text.
const insideText = 'i'

// Cells computes the cells and the conditions of an object's row. The result may be cached as
// long as the object: ages become JSON when the Table is written.
func (c *Columns) Cells(obj object.Tree) []byte {
	dst := make([]byte, 0, 16*len(c.columns))
	dst = append(dst, '[')
	for i := range c.columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch v := c.columns[i].Cell(obj).(type) {
		case view.Age:
			dst = appendAge(dst, string(v))
		case view.TextWithAge:
			dst = object.AppendJSON(dst, v.Before)
			dst = append(dst[:len(dst)-1], ageMark, insideText)
			dst = append(dst, v.At...)
			dst = append(dst, ageMark)
			quote := len(dst)
			dst = object.AppendJSON(dst, v.After)
			dst = append(dst[:quote], dst[quote+1:]...)
		default:
			dst = object.AppendJSON(dst, v)
		}
	}
	return c.appendConditions(append(dst, ']'), obj)
}

// Default is Cells for the default object of a list.
func (c *Columns) Default(obj object.Tree) []byte {
	cells := c.Cells(obj)
	name := object.AppendJSON([]byte{'['}, object.Name(obj))
	rest, found := bytes.CutPrefix(cells, name)
	if !found {
		return cells // the name is not first
	}
	return slices.Concat(object.AppendJSON([]byte{'['}, object.Name(obj)+" (default)"), rest)
}

func (c *Columns) appendConditions(dst []byte, obj object.Tree) []byte {
	if c.conditions == nil {
		return dst
	}
	conditions := c.conditions(obj)
	if len(conditions) == 0 {
		return dst
	}
	data, err := json.Marshal(conditions)
	if err != nil {
		return dst // It has only strings.
	}
	return append(append(dst, `,"conditions":`...), data...)
}

func appendAge(dst []byte, timestamp string) []byte {
	if timestamp == "" || timestamp == "null" {
		return append(dst, `"\u003cunknown\u003e"`...)
	}
	if _, err := time.Parse(time.RFC3339, timestamp); err != nil {
		return append(dst, `"\u003cinvalid\u003e"`...)
	}
	dst = append(dst, ageMark)
	dst = append(dst, timestamp...)
	return append(dst, ageMark)
}

// appendCells appends cached cells as JSON, with current ages.
func appendCells(dst, cells []byte) []byte {
	for {
		i := bytes.IndexByte(cells, ageMark)
		if i < 0 {
			return append(dst, cells...)
		}
		dst = append(dst, cells[:i]...)
		cells = cells[i+1:]
		end := bytes.IndexByte(cells, ageMark)
		if at, ok := bytes.CutPrefix(cells[:end], []byte{insideText}); ok {
			text := object.AppendJSON(nil, age(string(at)))
			dst = append(dst, text[1:len(text)-1]...)
		} else {
			dst = object.AppendJSON(dst, age(string(cells[:end])))
		}
		cells = cells[end+1:]
	}
}

func age(timestamp string) string {
	t, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return "<invalid>"
	}
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t))
}
