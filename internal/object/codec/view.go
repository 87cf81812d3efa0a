package codec

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/protobuf"
)

// A View is how one client sees the objects of one version of a resource. It
// holds for a request, and its zero Columns and Include are right for whoever
// does not ask for a Table.
type View struct {
	Format     Format
	APIVersion string // of the objects
	Kind       string // of the objects
	ListKind   string
	// New returns an empty object of the Go type of the kind, where there is a protobuf
	// form of it.
	New func() runtime.Object
	// Types are those of which there is a protobuf form. Only protobuf needs them.
	Types *protobuf.Types
	// KindFirst is what the Dialect of the kind says of objects and lists, BareItems and
	// OmitsEmptyContinue are what it says of lists.
	KindFirst          bool
	BareItems          bool
	OmitsEmptyContinue bool
	NoTable            bool     // it is only answered, and there is no Table of it
	Columns            *Columns // of a Table
	Include            Include  // what the rows of a Table have besides cells

	offer Offer // of the server that answers
}

// A Part returns what a view needs of an object that its JSON does not have, made
// for it now or earlier: for a Table the cells, as Columns.Cells makes them, for
// protobuf the message, as View.Message does. It is not called for any other
// view.
type Part func() ([]byte, error)

// A Key tells apart the views that show the same object as different bytes.
type Key struct {
	Media      Media
	As         As
	Version    string
	APIVersion string
}

// Key returns the key under which what the view appends may be kept with an
// object or event. ok is false if it may not, because it depends on the time or
// on what was written before.
func (v *View) Key() (key Key, ok bool) {
	return Key{v.Format.Media, v.Format.As, v.Format.Version, v.APIVersion}, v.Format.As != Table
}

// Render is the document that answers a request with an object.
func (v *View) Render(e *object.Encoded, part Part) ([]byte, error) {
	if v.Format.Media == Protobuf {
		message, err := part()
		if err != nil {
			return nil, err
		}
		return v.appendWrapped(nil, message), nil
	}
	doc, err := v.appendObject(nil, e, part)
	if err != nil {
		return nil, err
	}
	return v.Format.Render(doc)
}

// RenderTree is the document that answers a request with the whole of t.
func (v *View) RenderTree(t object.Tree) ([]byte, error) {
	if v.Format.Media != Protobuf {
		if v.KindFirst {
			return v.Format.Render(object.AppendTypedJSON(nil, t))
		}
		return v.Format.Render(object.AppendJSON(nil, t))
	}
	message, err := v.messageOf(object.AppendJSON(nil, t))
	if err != nil {
		return nil, err
	}
	return v.appendWrapped(nil, message), nil
}

// appendObject appends the JSON of an object as a client sees it who asks for it
// alone.
func (v *View) appendObject(dst []byte, e *object.Encoded, part Part) ([]byte, error) {
	switch v.Format.As {
	case Table:
		return v.appendTable(dst, e, part, true)
	case PartialMetadata, PartialMetadataList:
		return v.appendPartial(dst, e), nil
	default:
		return v.appendWhole(dst, e), nil
	}
}

// appendWhole appends the whole of an object.
func (v *View) appendWhole(dst []byte, e *object.Encoded) []byte {
	if v.KindFirst {
		return e.AppendTyped(dst, v.APIVersion)
	}
	return e.Append(dst, v.APIVersion)
}

func (v *View) appendPartial(dst []byte, e *object.Encoded) []byte {
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, v.Format.Version...)
	dst = append(dst, `","metadata":`...)
	dst = e.AppendMetadata(dst)
	return append(dst, '}')
}

// appendTable appends a Table of one row.
func (v *View) appendTable(dst []byte, e *object.Encoded, cells Part, headers bool) ([]byte, error) {
	row, err := cells()
	if err != nil {
		return nil, err
	}
	dst = append(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, v.Format.Version...)
	dst = append(dst, `","metadata":{"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, e.Revision, 10)
	dst = append(dst, `"},"columnDefinitions":`...)
	if headers {
		dst = append(dst, v.Columns.definitions...)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"rows":[`...)
	dst = v.appendRow(dst, e, row)
	return append(dst, "]}"...), nil
}

func (v *View) appendRow(dst []byte, e *object.Encoded, cells []byte) []byte {
	dst = append(dst, `{"cells":`...)
	dst = appendCells(dst, cells)
	dst = append(dst, `,"object":`...)
	switch v.Include {
	case IncludeNone:
		dst = append(dst, "null"...)
	case IncludeObject:
		dst = v.appendWhole(dst, e)
	default:
		dst = v.appendPartial(dst, e)
	}
	return append(dst, '}')
}
