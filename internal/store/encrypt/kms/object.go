package kms

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A source is an encrypted seed or key, with all that the KMS needs to decrypt it.
type source struct {
	kind        kind
	encrypted   []byte
	keyID       string
	annotations map[string][]byte
}

// A kind is the meaning of the plain form of a source.
type kind int32

const (
	kindKey  kind = 0 // a key of AES-GCM; old servers wrote it
	kindSeed kind = 1 // a seed, from which HKDF with SHA-256 derives the keys

	kindEnvelope kind = -1 // the key of one value, by version 1 of the protocol
)

const (
	maxAnnotations = 32 << 10
	maxKeyID       = 1 << 10
	maxEncrypted   = 1 << 10
)

// Overhead is more than the encrypted value is longer than the plain one.
const Overhead = maxAnnotations + maxKeyID + maxEncrypted + 2<<10

// check checks the limits of Kubernetes for the answer of a KMS.
func (s *source) check() error {
	if s.kind != kindKey && s.kind != kindSeed {
		return fmt.Errorf("unknown encryptedDEKSourceType: %d", s.kind)
	}
	if len(s.encrypted) == 0 {
		return errors.New("failed to validate encrypted DEK source: encrypted DEK source is empty")
	}
	if n := len(s.encrypted); n > maxEncrypted {
		return fmt.Errorf("failed to validate encrypted DEK source: encrypted DEK source is %d bytes, which exceeds the max size of %d", n, maxEncrypted)
	}
	if _, err := checkKeyID(s.keyID); err != nil {
		return fmt.Errorf("failed to validate key id: %w", err)
	}
	if err := checkAnnotations(s.annotations); err != nil {
		return fmt.Errorf("failed to validate annotations: %w", err)
	}
	return nil
}

// checkKeyID returns the label of an invalid key ID in metrics, and its error.
func checkKeyID(id string) (label string, err error) {
	if id == "" {
		return "empty", errors.New("keyID is empty")
	}
	if len(id) > maxKeyID {
		return "too_long", fmt.Errorf("keyID is %d bytes, which exceeds the max size of %d", len(id), maxKeyID)
	}
	return "", nil
}

func checkAnnotations(all map[string][]byte) error {
	var errs []error
	total := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		errs = append(errs, validation.IsFullyQualifiedDomainName(field.NewPath("annotations"), name).ToAggregate())
		total += len(name) + len(all[name])
	}
	if total > maxAnnotations {
		errs = append(errs, fmt.Errorf("total size of annotations is %d, which exceeds the max size of %d", total, maxAnnotations))
	}
	return utilerrors.NewAggregate(errs)
}

// An id identifies a source.
type id [sha256.Size]byte

func (s *source) id() id {
	h := sha256.New()
	add := func(part []byte) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash does not fail
		h.Write(part)
	}
	add([]byte{byte(s.kind)})
	add(s.encrypted)
	add([]byte(s.keyID))
	for _, name := range slices.Sorted(maps.Keys(s.annotations)) {
		add([]byte(name))
		add(s.annotations[name])
	}
	return id(h.Sum(nil))
}

// clone returns a copy that shares no bytes with a stored value.
func (s *source) clone() source {
	c := source{kind: s.kind, encrypted: bytes.Clone(s.encrypted), keyID: s.keyID}
	if s.annotations != nil {
		c.annotations = map[string][]byte{}
		for name, value := range s.annotations {
			c.annotations[name] = bytes.Clone(value)
		}
	}
	return c
}

// An object is a stored value, EncryptedObject in Kubernetes.
type object struct {
	source
	data []byte
}

// The fields of EncryptedObject, a message of protobuf.
const (
	fieldData        protowire.Number = 1
	fieldKeyID       protowire.Number = 2
	fieldEncrypted   protowire.Number = 3
	fieldAnnotations protowire.Number = 4
	fieldKind        protowire.Number = 5
	// of an entry of the annotations
	fieldName  protowire.Number = 1
	fieldValue protowire.Number = 2
)

// appendObject appends the encoding of o.
func appendObject(dst []byte, o *object) []byte {
	add := func(dst []byte, n protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(dst, n, protowire.BytesType), value)
	}
	dst = add(dst, fieldData, o.data)
	dst = add(dst, fieldKeyID, []byte(o.keyID))
	dst = add(dst, fieldEncrypted, o.encrypted)
	for name, value := range o.annotations {
		dst = add(dst, fieldAnnotations, add(add(nil, fieldName, []byte(name)), fieldValue, value))
	}
	if o.kind != 0 {
		dst = protowire.AppendVarint(protowire.AppendTag(dst, fieldKind, protowire.VarintType), uint64(o.kind))
	}
	return dst
}

// parseObject decodes and checks a stored value. The result shares its bytes.
func parseObject(value []byte) (*object, error) {
	o := &object{}
	err := eachField(value, func(n protowire.Number, number uint64, content []byte) error {
		switch {
		case content == nil:
			if n == fieldKind {
				o.kind = kind(number)
			}
		case n == fieldData:
			o.data = content
		case n == fieldKeyID:
			o.keyID = string(content)
			return checkText(content)
		case n == fieldEncrypted:
			o.encrypted = content
		case n == fieldAnnotations:
			return o.annotate(content)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(o.data) == 0 {
		return nil, errors.New("encrypted data is empty")
	}
	return o, o.check()
}

// annotate decodes an entry of the annotations.
func (o *object) annotate(entry []byte) error {
	var name, value []byte
	err := eachField(entry, func(n protowire.Number, _ uint64, content []byte) error {
		switch {
		case content == nil:
		case n == fieldName:
			name = content
			return checkText(content)
		case n == fieldValue:
			value = content
		}
		return nil
	})
	if o.annotations == nil {
		o.annotations = map[string][]byte{}
	}
	o.annotations[string(name)] = value
	return err
}

var errText = errors.New("EncryptedObject has a text that is not UTF-8")

func checkText(content []byte) error {
	if !utf8.Valid(content) {
		return errText
	}
	return nil
}

// eachField calls f for each number and each sequence of bytes of a message. content is nil for a number.
func eachField(message []byte, f func(n protowire.Number, number uint64, content []byte) error) error {
	for len(message) > 0 {
		n, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return protowire.ParseError(length)
		}
		if n > protowire.MaxValidNumber {
			return fmt.Errorf("EncryptedObject has a field with the number %d", n)
		}
		message = message[length:]
		var err error
		switch kind {
		case protowire.BytesType:
			var content []byte
			if content, length = protowire.ConsumeBytes(message); length >= 0 {
				err = f(n, 0, content[:len(content):len(content)])
			}
		case protowire.VarintType:
			var number uint64
			if number, length = protowire.ConsumeVarint(message); length >= 0 {
				err = f(n, number, nil)
			}
		default:
			length = protowire.ConsumeFieldValue(n, kind, message)
		}
		if length < 0 {
			return protowire.ParseError(length)
		}
		if err != nil {
			return err
		}
		message = message[length:]
	}
	return nil
}
