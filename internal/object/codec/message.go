package codec

import (
	"encoding/binary"
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

// A messageList collects the messages of a list: the document begins with its length.
type messageList struct {
	view     *View
	to       io.Writer
	meta     ListMeta
	messages [][]byte
	err      error
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
	l.messages = append(l.messages, message)
	return nil
}

func (l *messageList) Len() int { return len(l.messages) }

func (l *messageList) Close() error {
	if l.err != nil {
		return l.err
	}
	meta := l.meta
	listMeta := metav1.ListMeta{Continue: meta.Continue, RemainingItemCount: meta.RemainingItemCount}
	if meta.ResourceVersion != 0 {
		listMeta.ResourceVersion = strconv.FormatInt(meta.ResourceVersion, 10)
	}
	metadata, err := listMeta.Marshal()
	if err != nil {
		return err
	}
	// All list types but one have the metadata first.
	apiVersion, kind := l.view.APIVersion, l.view.ListKind
	metadataField, itemsField := protowire.Number(1), protowire.Number(2)
	if f := l.view.Format; f.As != Whole {
		apiVersion, kind = metav1.GroupName+"/"+f.Version, "PartialObjectMetadataList"
		if f.Version == "v1beta1" {
			metadataField, itemsField = 2, 1
		}
	}
	length := fieldSize(len(metadata))
	for _, m := range l.messages {
		length += fieldSize(len(m))
	}
	buf := appendOpening(nil, apiVersion, kind, length)
	if metadataField < itemsField {
		buf = appendField(buf, metadataField, metadata)
	}
	for _, m := range l.messages {
		buf = appendField(buf, itemsField, m)
		if buf = l.flush(buf, listChunk); l.err != nil {
			return l.err
		}
	}
	if metadataField > itemsField {
		buf = appendField(buf, metadataField, metadata)
	}
	l.flush(appendEnding(buf), 0)
	return l.err
}

// flush writes buf if it has enough bytes, and returns the rest.
func (l *messageList) flush(buf []byte, enough int) []byte {
	if len(buf) < enough {
		return buf
	}
	_, l.err = l.to.Write(buf)
	return buf[:0]
}
