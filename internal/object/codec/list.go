package codec

import (
	"bytes"
	"io"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
)

// ListMeta is the metadata of a list.
type ListMeta struct {
	ResourceVersion    int64
	Continue           string
	RemainingItemCount *int64
	// ShardSelector is that of the request, in normal form. Only whole objects of Go types show it.
	ShardSelector string
	// Size is the size of the objects. Only protobuf needs it.
	Size ListSize
}

// A ListSize is the size of the objects of a list in a view.
type ListSize int

// Add adds an object. Errors come from part.
func (s *ListSize) Add(part Part) error {
	if part == nil {
		return nil
	}
	data, err := part()
	*s += ListSize(fieldSize(len(data)))
	return err
}

// A ListWriter streams a list.
type ListWriter interface {
	// Add writes the next object. Errors come from the io.Writer or from part.
	Add(e *object.Encoded, part Part) error
	// Close ends the list. It does not close the io.Writer.
	Close() error
}

// NewList begins a list of objects.
func (v *View) NewList(to io.Writer, meta ListMeta) ListWriter {
	if v.Format.As != Whole || !v.KindFirst {
		meta.ShardSelector = ""
	}
	if v.Format.Media == Protobuf {
		return v.newMessageList(to, meta)
	}
	return v.newTextList(to, meta)
}

// A textList writes in chunks and never buffers more than one, except as CBOR.
type textList struct {
	view  *View
	to    io.Writer
	meta  ListMeta
	buf   []byte
	items int
	whole bool    // buffers everything until Close
	parts *parted // for a Format other than compact JSON; nil before the first object
	err   error
}

// listChunk is the size of a chunk.
const listChunk = 32 << 10

func (v *View) newTextList(to io.Writer, meta ListMeta) *textList {
	l := &textList{view: v, to: to, meta: meta, whole: v.Format.Media == CBOR}
	l.buf = make([]byte, 0, 4<<10)
	switch v.Format.As {
	case Table:
		l.open("Table", metav1.GroupName+"/"+v.Format.Version)
		l.buf = append(l.buf, `"columnDefinitions":`...)
		l.buf = append(l.buf, v.Columns.definitions...)
		l.buf = append(l.buf, `,"rows":[`...)
	case PartialMetadata, PartialMetadataList:
		l.open("PartialObjectMetadataList", metav1.GroupName+"/"+v.Format.Version)
		l.buf = append(l.buf, `"items":[`...)
	default:
		if v.KindFirst {
			l.open(v.ListKind, v.APIVersion)
			l.buf = append(l.buf, `"items":[`...)
			break
		}
		l.buf = append(l.buf, `{"apiVersion":`...)
		l.buf = object.AppendJSON(l.buf, v.APIVersion)
		l.buf = append(l.buf, `,"items":[`...)
	}
	return l
}

// open appends the beginning of a list of typed objects.
func (l *textList) open(kind, apiVersion string) {
	l.buf = append(l.buf, `{"kind":`...)
	l.buf = object.AppendJSON(l.buf, kind)
	l.buf = append(l.buf, `,"apiVersion":`...)
	l.buf = object.AppendJSON(l.buf, apiVersion)
	l.buf = append(l.buf, `,"metadata":`...)
	l.buf = l.meta.appendTyped(l.buf, l.view.Format.As == Whole && !l.view.OmitsEmptyContinue)
	l.buf = append(l.buf, ',')
}

func (l *textList) Add(e *object.Encoded, part Part) error {
	if l.err == nil && l.items == 0 && l.view.Format.parts() {
		l.part()
	}
	if l.err != nil {
		return l.err
	}
	from := len(l.buf)
	if l.items > 0 && l.parts == nil {
		l.buf = append(l.buf, ',')
	}
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
		l.buf = l.view.appendWhole(l.buf, e)
	}
	if l.parts != nil {
		l.buf, l.err = l.parts.render(l.buf, from, l.items)
	}
	l.items++
	if len(l.buf) >= listChunk && !l.whole {
		l.flush()
	}
	return l.err
}

func (l *textList) flush() {
	if l.err == nil {
		_, l.err = l.to.Write(l.buf)
	}
	l.buf = l.buf[:0]
}

func (l *textList) Close() error {
	if l.err != nil {
		return l.err
	}
	if l.items == 0 && l.view.Format.As != Whole && l.view.Format.As != Table {
		// In Kubernetes an empty list of metadata is null.
		l.buf = append(bytes.TrimSuffix(l.buf, []byte{'['}), "null"...)
	} else if l.parts == nil {
		l.buf = append(l.buf, ']')
	}
	if l.parts != nil {
		l.buf = append(l.buf, l.parts.after...)
	} else {
		l.buf, l.err = l.view.Format.Render(l.end(l.buf))
	}
	if l.err == nil {
		l.flush()
	}
	return l.err
}

// end appends the document after the array of objects.
func (l *textList) end(buf []byte) []byte {
	if l.view.Format.As == Whole && !l.view.KindFirst {
		buf = append(buf, `,"kind":`...)
		buf = object.AppendJSON(buf, l.view.ListKind)
		buf = append(buf, `,"metadata":`...)
		buf = l.meta.append(buf, !l.view.OmitsEmptyContinue)
	}
	return append(buf, '}')
}

// part renders the document around the objects, of which the buffer has the beginning.
func (l *textList) part() {
	l.parts, l.err = l.view.Format.split(l.end(append(append(l.buf, placeholder...), ']')))
	if l.err == nil {
		l.buf = append(l.buf[:0], l.parts.before...)
	}
}

// append appends the metadata with sorted fields. It omits an empty continue unless always is
// set.
func (m ListMeta) append(dst []byte, always bool) []byte {
	dst = append(dst, '{')
	dst = m.appendContinue(dst, always)
	dst = m.appendRemaining(dst)
	dst = m.appendRevision(dst)
	return append(bytes.TrimSuffix(dst, []byte{','}), '}')
}

// appendTyped is append in the order of the Go type.
func (m ListMeta) appendTyped(dst []byte, always bool) []byte {
	dst = append(dst, '{')
	dst = m.appendRevision(dst)
	dst = m.appendContinue(dst, always)
	dst = m.appendRemaining(dst)
	if m.ShardSelector != "" {
		dst = append(dst, `"shardInfo":{"selector":`...)
		dst = append(object.AppendJSON(dst, m.ShardSelector), '}')
	}
	return append(bytes.TrimSuffix(dst, []byte{','}), '}')
}

func (m ListMeta) appendContinue(dst []byte, always bool) []byte {
	if !always && m.Continue == "" {
		return dst
	}
	dst = append(dst, `"continue":`...)
	return append(object.AppendJSON(dst, m.Continue), ',')
}

func (m ListMeta) appendRemaining(dst []byte) []byte {
	if m.RemainingItemCount == nil {
		return dst
	}
	dst = append(dst, `"remainingItemCount":`...)
	return append(strconv.AppendInt(dst, *m.RemainingItemCount, 10), ',')
}

func (m ListMeta) appendRevision(dst []byte) []byte {
	if m.ResourceVersion == 0 {
		return dst
	}
	dst = append(dst, `"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, m.ResourceVersion, 10)
	return append(dst, '"', ',')
}
