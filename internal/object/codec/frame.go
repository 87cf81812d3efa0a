package codec

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// Types of watch events.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
	Error    = "ERROR"
)

// AppendFrame appends a watch event. first marks the first event of the watch, in which a Table
// has column definitions. cells returns the data that the view needs besides the JSON.
func (v *View) AppendFrame(dst []byte, eventType string, e *object.Encoded, cells Part, first bool) ([]byte, error) {
	if v.Format.Media == Protobuf {
		message, err := v.Message(e)
		if err != nil {
			return nil, err
		}
		return appendEvent(dst, eventType, v.appendWrapped(nil, message)), nil
	}
	open := len(dst)
	dst = openFrame(dst, eventType)
	shown := len(dst)
	var err error
	if v.Format.As == Table {
		dst, err = v.appendTable(dst, e, cells, first)
	} else {
		dst, err = v.appendObject(dst, e, nil)
	}
	switch {
	case err != nil:
		return nil, err
	case v.Format.Media == CBOR:
		return appendCBOREvent(dst[:open], eventType, dst[shown:])
	}
	return closeFrame(dst), nil
}

// AppendErrorFrame appends the event that ends a watch with an error.
func (f Format) AppendErrorFrame(dst []byte, s metav1.Status) []byte {
	switch f.Media {
	case Protobuf:
		return appendEvent(dst, Error, f.RenderStatus(s))
	case CBOR:
		dst, err := appendCBOREvent(dst, Error, AppendStatus(nil, s))
		if err != nil {
			panic("codec: a Status that is not CBOR: " + err.Error()) // It has only strings and numbers.
		}
		return dst
	}
	return closeFrame(AppendStatus(openFrame(dst, Error), s))
}

func openFrame(dst []byte, eventType string) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, eventType...)
	return append(dst, `","object":`...)
}

func closeFrame(dst []byte) []byte { return append(dst, '}', '\n') }

// empty returns an empty object of the kind: the encoding of an empty Go value if the kind has a
// Go type.
func (v *View) empty() object.Tree {
	t := object.Tree{}
	if v.New == nil {
		return t
	}
	data, err := json.Marshal(v.New())
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &t)
	}
	if err != nil {
		panic("codec: an empty object that cannot be written: " + err.Error())
	}
	return t
}

// AppendBookmark appends a bookmark at revision. end marks the one that ends the initial events.
func (v *View) AppendBookmark(dst []byte, revision int64, end, first bool) []byte {
	metadata := object.Tree{}
	if end {
		metadata["annotations"] = object.Tree{metav1.InitialEventsAnnotationKey: "true"}
	}
	t := v.empty()
	t["apiVersion"], t["kind"], t["metadata"] = v.APIVersion, v.Kind, metadata
	e, err := object.Scan(object.AppendJSON(nil, t), revision)
	if err != nil {
		panic("codec: a bookmark that is not an object: " + err.Error())
	}
	shown := *v
	if end && v.Include == IncludeNone {
		shown.Include = IncludeMetadata // without metadata the client would not see the annotation
	}
	dst, err = shown.AppendFrame(dst, Bookmark, &e, func() ([]byte, error) { return v.Columns.Cells(t), nil }, first)
	if err != nil {
		panic("codec: a bookmark that cannot be written: " + err.Error())
	}
	return dst
}
