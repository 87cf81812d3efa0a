package protobuf

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
)

// itself is a type with its own JSON methods.
type itself struct {
	t reflect.Type
	// usual appends the message of JSON in the usual form of the type, without a value of the type. It
	// returns false for other JSON. It is nil for rare types.
	usual func(dst, doc []byte) ([]byte, bool)
}

func itselfOf(t reflect.Type) *itself {
	i := &itself{t: t}
	switch t {
	case reflect.TypeFor[metav1.FieldsV1]():
		i.usual = appendFields
	case reflect.TypeFor[metav1.Time]():
		i.usual = appendTime
	case reflect.TypeFor[resource.Quantity]():
		i.usual = appendQuantity
	case reflect.TypeFor[intstr.IntOrString]():
		i.usual = appendIntOrString
	}
	return i
}

func (i *itself) write(w *writer, tag []byte) error {
	raw, err := w.raw()
	if err != nil {
		return err
	}
	if i.usual != nil {
		from := len(w.out)
		if out, ok := i.usual(w.out, raw); ok {
			w.out = prefix(out, from, tag)
			return nil
		}
	}
	v := reflect.New(i.t)
	if u, ok := v.Interface().(json.Unmarshaler); ok {
		err = u.UnmarshalJSON(raw)
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, v.Interface())
	}
	if err != nil {
		return err
	}
	data, err := marshal(v)
	if err != nil {
		return err
	}
	w.data(tag, data)
	return nil
}

// appendFields appends the message of a FieldsV1: its JSON.
func appendFields(dst, doc []byte) ([]byte, bool) {
	dst = appendVarint(append(dst, 1<<3|2), uint64(len(doc)))
	return append(dst, doc...), doc[0] == '{'
}

// appendTime appends the message of a Time: its seconds, and no nanoseconds.
func appendTime(dst, doc []byte) ([]byte, bool) {
	s, ok := plainText(doc)
	var at time.Time
	if !ok || at.UnmarshalText(s) != nil || at.IsZero() {
		return dst, false
	}
	dst = appendVarint(append(dst, 1<<3), uint64(at.Unix()))
	return append(dst, 2<<3, 0), true
}

// appendIntOrString appends the message of an IntOrString: its type, the number and the string.
func appendIntOrString(dst, doc []byte) ([]byte, bool) {
	s, ok := plainText(doc)
	if !ok {
		n, err := strconv.ParseInt(string(doc), 10, 32)
		dst = append(dst, 1<<3, byte(intstr.Int), 2<<3)
		return append(appendVarint(dst, uint64(n)), 3<<3|2, 0), err == nil
	}
	dst = append(dst, 1<<3, byte(intstr.String), 2<<3, 0, 3<<3|2)
	return append(appendVarint(dst, uint64(len(s))), s...), true
}

// appendQuantity appends the message of a Quantity: its canonical text.
func appendQuantity(dst, doc []byte) ([]byte, bool) {
	s, ok := plainText(doc)
	if !ok || !canonical(s) {
		return dst, false
	}
	return append(append(dst, 1<<3|2, byte(len(s))), s...), true
}

// canonical reports whether a quantity certainly is the canonical text of its value: such as 500m or 64Mi, with
// too few digits for another suffix.
func canonical(quantity []byte) bool {
	digits := 0
	for digits < len(quantity) && quantity[digits]-'0' <= 9 {
		digits++
	}
	if digits == 0 || digits > 3 || quantity[0] == '0' {
		return false
	}
	switch string(quantity[digits:]) {
	case "", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti":
		return true
	}
	return false
}

// plainText returns the value of a JSON string without escapes.
func plainText(doc []byte) ([]byte, bool) {
	if doc[0] != '"' || bytes.IndexByte(doc, '\\') >= 0 || !utf8.Valid(doc) {
		return nil, false
	}
	return doc[1 : len(doc)-1], true
}
