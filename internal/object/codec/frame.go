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

// AppendFrame appends one event of a watch. first says that it is the first of
// its watch: a Table then names its columns, which are what cells is for.
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
			panic("codec: a Status that is not CBOR: " + err.Error()) // it has only strings and numbers
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

// empty returns an object of which nothing is known: what is written of an empty value
// of its Go type, where it has one.
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

// AppendBookmark appends the event that tells a client that it has seen all up
// to revision. end marks the first one, which ends the initial events.
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
		shown.Include = IncludeMetadata // or the client would not learn that it is the end
	}
	dst, err = shown.AppendFrame(dst, Bookmark, &e, func() ([]byte, error) { return v.Columns.Cells(t), nil }, first)
	if err != nil {
		panic("codec: a bookmark that cannot be written: " + err.Error())
	}
	return dst
}
