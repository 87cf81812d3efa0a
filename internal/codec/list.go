package codec

import (
	"bytes"
	"io"
	"strconv"

	"github.com/anykind/anykind/internal/object"
)

// ListMeta is the metadata of a list.
type ListMeta struct {
	ResourceVersion    int64
	Continue           string
	RemainingItemCount *int64
}

// A ListWriter writes a list as its objects come. The metadata comes last, so that
// it may say what is only known then.
type ListWriter interface {
	// Add writes the next object. An error is that of the io.Writer, or of part.
	Add(e *object.Encoded, part Part) error
	// Len returns the number of objects written.
	Len() int
	// Close ends the list. It does not close the io.Writer.
	Close(meta ListMeta) error
}

// NewList begins a list of objects.
func (v *View) NewList(to io.Writer) ListWriter {
	if v.Format.Media == Protobuf {
		return &messageList{view: v, to: to}
	}
	return v.newTextList(to)
}

// A textList writes to its io.Writer in pieces of some size, and never holds more
// than one of them, unless the Format can only be made from the whole.
type textList struct {
	view  *View
	to    io.Writer
	buf   []byte
	items int
	whole bool // everything goes into buf until Close
	err   error
}

// listChunk is how much is gathered before it is written.
const listChunk = 32 << 10

func (v *View) newTextList(to io.Writer) *textList {
	l := &textList{view: v, to: to, whole: v.Format.Media != JSON || v.Format.Pretty}
	l.buf = make([]byte, 0, 4<<10)
	switch v.Format.As {
	case Table:
		l.buf = append(l.buf, `{"kind":"Table","apiVersion":"meta.k8s.io/`...)
		l.buf = append(l.buf, v.Format.Version...)
		l.buf = append(l.buf, `","columnDefinitions":`...)
		l.buf = append(l.buf, v.Columns.definitions...)
		l.buf = append(l.buf, `,"rows":[`...)
	case PartialMetadata, PartialMetadataList:
		l.buf = append(l.buf, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/`...)
		l.buf = append(l.buf, v.Format.Version...)
		l.buf = append(l.buf, `","items":[`...)
	default:
		l.buf = append(l.buf, `{"apiVersion":`...)
		l.buf = object.AppendJSON(l.buf, v.APIVersion)
		l.buf = append(l.buf, `,"items":[`...)
	}
	return l
}

func (l *textList) Add(e *object.Encoded, part Part) error {
	if l.err != nil {
		return l.err
	}
	if l.items > 0 {
		l.buf = append(l.buf, ',')
	}
	l.items++
	switch l.view.Format.As {
	case Table:
		row, err := part()
		if err != nil {
			l.err = err
			return err
		}
		l.buf = l.view.appendRow(l.buf, e, row)
	case PartialMetadata, PartialMetadataList:
		l.buf = l.view.appendPartial(l.buf, e)
	default:
		if l.view.BareItems {
			l.buf = e.AppendUntyped(l.buf)
			break
		}
		l.buf = e.Append(l.buf, l.view.APIVersion)
	}
	if len(l.buf) >= listChunk && !l.whole {
		l.flush()
	}
	return l.err
}

func (l *textList) Len() int { return l.items }

func (l *textList) flush() {
	if l.err == nil {
		_, l.err = l.to.Write(l.buf)
	}
	l.buf = l.buf[:0]
}

func (l *textList) Close(meta ListMeta) error {
	if l.err != nil {
		return l.err
	}
	if l.items == 0 && l.view.Format.As != Whole && l.view.Format.As != Table {
		// Kubernetes gathers metadata in a list that it never makes where there is none.
		l.buf = append(bytes.TrimSuffix(l.buf, []byte{'['}), "null"...)
	} else {
		l.buf = append(l.buf, ']')
	}
	if l.view.Format.As == Whole {
		l.buf = append(l.buf, `,"kind":`...)
		l.buf = object.AppendJSON(l.buf, l.view.ListKind)
	}
	l.buf = append(l.buf, `,"metadata":`...)
	l.buf = meta.append(l.buf, l.view.Format.As == Whole && !l.view.OmitsEmptyContinue)
	l.buf = append(l.buf, '}')
	if l.buf, l.err = l.view.Format.Render(l.buf); l.err == nil {
		l.flush()
	}
	return l.err
}

// append appends the metadata, with a continue always or if there is one.
func (m ListMeta) append(dst []byte, always bool) []byte {
	dst = append(dst, '{')
	if always || m.Continue != "" {
		dst = append(dst, `"continue":`...)
		dst = object.AppendJSON(dst, m.Continue)
		dst = append(dst, ',')
	}
	if m.RemainingItemCount != nil {
		dst = append(dst, `"remainingItemCount":`...)
		dst = strconv.AppendInt(dst, *m.RemainingItemCount, 10)
		dst = append(dst, ',')
	}
	if m.ResourceVersion == 0 {
		return append(bytes.TrimSuffix(dst, []byte{','}), '}')
	}
	dst = append(dst, `"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, m.ResourceVersion, 10)
	return append(dst, '"', '}')
}
