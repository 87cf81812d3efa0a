package codec

import (
	"encoding/binary"
	"errors"
	"io"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object"
)

// The fields of a runtime.Unknown (the wrapper of every document), of a WatchEvent, and of its
// RawExtension.
const (
	unknownTypeMeta        = 1
	unknownRaw             = 2
	unknownContentEncoding = 3
	unknownContentType     = 4

	eventTypeField   = 1
	eventObjectField = 2
	extensionRaw     = 1
)

// appendField appends a field whose value is bytes, a string or a message.
func appendField(dst []byte, field protowire.Number, value []byte) []byte {
	return append(appendFieldHeader(dst, field, len(value)), value...)
}

// appendFieldHeader appends the tag and the length of a field.
func appendFieldHeader(dst []byte, field protowire.Number, length int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.BytesType), uint64(length))
}

// fieldSize returns the encoded size of such a field with a value of that length.
func fieldSize(length int) int { return protowire.SizeTag(unknownRaw) + protowire.SizeBytes(length) }

// appendWrapped appends a message as a document with its apiVersion and kind.
func appendWrapped(dst []byte, apiVersion, kind string, message []byte) []byte {
	dst = appendOpening(dst, apiVersion, kind, len(message))
	return appendEnding(append(dst, message...))
}

// appendOpening appends the part of a document before a message of that length.
func appendOpening(dst []byte, apiVersion, kind string, length int) []byte {
	meta, err := (&runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}).Marshal()
	if err != nil {
		panic("codec: a TypeMeta that is not protobuf: " + err.Error()) // It has only strings.
	}
	dst = append(dst, protobufMagic...)
	dst = appendField(dst, unknownTypeMeta, meta)
	return appendFieldHeader(dst, unknownRaw, length)
}

// appendEnding appends the part of a document after a message.
func appendEnding(dst []byte) []byte {
	return appendField(appendField(dst, unknownContentEncoding, nil), unknownContentType, nil)
}

// appendEvent appends a watch event: its length in four bytes, then a WatchEvent with a document.
func appendEvent(dst []byte, eventType string, doc []byte) []byte {
	length := fieldSize(len(eventType)) + fieldSize(fieldSize(len(doc)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(length))
	dst = appendField(dst, eventTypeField, []byte(eventType))
	dst = appendFieldHeader(dst, eventObjectField, fieldSize(len(doc)))
	return appendField(dst, extensionRaw, doc)
}

// A messageList writes in chunks. The document begins with its length.
type messageList struct {
	to       io.Writer
	items    protowire.Number // the field of the objects
	buf      []byte
	metadata []byte // after the objects
	left     int    // the size of the objects to come
	err      error
}

func (v *View) newMessageList(to io.Writer, meta ListMeta) *messageList {
	l := &messageList{to: to, items: 2, left: int(meta.Size)}
	// All list types but one have the metadata first.
	apiVersion, kind, metadataField := v.APIVersion, v.ListKind, protowire.Number(1)
	if f := v.Format; f.As != Whole {
		apiVersion, kind = metav1.GroupName+"/"+f.Version, "PartialObjectMetadataList"
		if f.Version == "v1beta1" {
			metadataField, l.items = 2, 1
		}
	}
	metadata, err := meta.message()
	l.err = err
	l.buf = appendOpening(nil, apiVersion, kind, fieldSize(len(metadata))+l.left)
	if metadata = appendField(nil, metadataField, metadata); metadataField < l.items {
		l.buf = append(l.buf, metadata...)
	} else {
		l.metadata = metadata
	}
	return l
}

// message returns the metadata as protobuf.
func (m *ListMeta) message() ([]byte, error) {
	meta := metav1.ListMeta{Continue: m.Continue, RemainingItemCount: m.RemainingItemCount}
	if m.ResourceVersion != 0 {
		meta.ResourceVersion = strconv.FormatInt(m.ResourceVersion, 10)
	}
	if m.ShardSelector != "" {
		meta.ShardInfo = &metav1.ShardInfo{Selector: m.ShardSelector}
	}
	return meta.Marshal()
}

func (l *messageList) Add(_ *object.Encoded, part Part) error {
	if l.err != nil {
		return l.err
	}
	message, err := part()
	if err != nil {
		l.err = err
		return err
	}
	l.left -= fieldSize(len(message))
	l.buf = appendField(l.buf, l.items, message)
	if len(l.buf) >= listChunk {
		l.flush()
	}
	return l.err
}

// errResized means that an object was encoded twice, with different results.
var errResized = errors.New("the objects of the list have another size than expected")

func (l *messageList) Close() error {
	if l.err == nil && l.left != 0 {
		l.err = errResized
	}
	if l.err != nil {
		return l.err
	}
	l.buf = appendEnding(append(l.buf, l.metadata...))
	l.flush()
	return l.err
}

func (l *messageList) flush() {
	_, l.err = l.to.Write(l.buf)
	l.buf = l.buf[:0]
}
