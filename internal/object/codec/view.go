package codec

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/protobuf"
)

// A View is a client's view of the objects of one version of a resource. It is for one request.
// Columns and Include are for Tables only.
type View struct {
	Format     Format
	APIVersion string // of the objects
	Kind       string // of the objects
	ListKind   string
	// New returns an empty object of the kind's Go type, if the kind has protobuf.
	New func() runtime.Object
	// Types are the types with protobuf. Only protobuf needs them.
	Types *protobuf.Types
	// KindFirst is that of the kind's Dialect, for objects and lists; BareItems and
	// OmitsEmptyContinue are for lists.
	KindFirst          bool
	BareItems          bool
	OmitsEmptyContinue bool
	NoTable            bool     // a kind with a Creater, which has no Table
	Columns            *Columns // of a Table
	Include            Include  // of the rows of a Table

	offer Offer // of the server
}

// AsJSON returns the view in JSON; ok is false if it is one.
func (v *View) AsJSON() (plain *View, ok bool) {
	if v.Format.Media == JSON && !v.Format.Pretty {
		return v, false
	}
	other := *v
	other.Format.Media, other.Format.Pretty = JSON, false
	return &other, true
}

// A Part returns the data that a view needs besides the JSON of an object, possibly cached: for a
// Table the result of Columns.Cells, for protobuf that of View.Message. It is not called for
// other views.
type Part func() ([]byte, error)

// A Key identifies views with the same bytes for the same object.
type Key struct {
	Media      Media
	As         As
	Version    string
	APIVersion string
}

// Key returns the key under which the output of the view may be cached. ok is false if it must
// not be, because it depends on the time or on earlier output.
func (v *View) Key() (key Key, ok bool) {
	return Key{v.Format.Media, v.Format.As, v.Format.Version, v.APIVersion}, v.Format.As != Table
}

// Render returns an object as the document of an answer.
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

// RenderTree returns t as the document of an answer, whole.
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

// appendObject appends the JSON of a single object in the form of the view.
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

// appendWhole appends a whole object.
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

// appendTable appends a Table with one row.
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
