package watchcache

import (
	"encoding/hex"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
	"unique"

	"github.com/anykind/anykind/internal/object"
)

// A shape is the part of a header that many objects have in common.
type shape struct {
	kind   *kind
	labels object.Labels
	odd    *odd // nil for most objects
}

// A kind is the common part of all objects of an API version.
type kind struct {
	cache      *Cache // that loads values; nil for objects whose value is in memory
	apiVersion string
}

// odd is the part of a header that does not follow from the key, or is no UUID.
type odd struct{ name, namespace, uid string }

var none = &shape{kind: &kind{}}

func (o *Object) odd() *odd {
	if o.shape == nil || o.shape.odd == nil {
		return &odd{}
	}
	return o.shape.odd
}

// shapes has the last used shapes of a cache, each at a place that its hash decides. It keeps a few and needs
// nothing for an object with a shape of its own.
type shapes struct {
	cache *Cache // that loads the values, or nil
	kinds [64]atomic.Pointer[kind]
	last  [512]atomic.Pointer[shape]
}

var seed = maphash.MakeSeed()

// of returns the shape of an object. It copies the strings, so that the value can leave memory. A nil s shares no
// shape, and no string is copied: the value stays in memory.
func (s *shapes) of(e *object.Encoded, o odd) *shape {
	var own *shape
	if s == nil {
		own = &shape{kind: &kind{apiVersion: e.APIVersion()}, labels: e.Labels}
	} else if place := s.place(e); o == (odd{}) {
		if known := place.Load(); known != nil && known.kind.apiVersion == e.APIVersion() && slices.Equal(known.labels, e.Labels) {
			return known
		}
		own = s.copied(e)
		place.Store(own)
		return own
	} else {
		own = s.copied(e)
		o = odd{strings.Clone(o.name), strings.Clone(o.namespace), strings.Clone(o.uid)}
	}
	if o != (odd{}) {
		own.odd = &o
	}
	return own
}

func (s *shapes) place(e *object.Encoded) *atomic.Pointer[shape] {
	h := maphash.String(seed, e.APIVersion())
	for _, l := range e.Labels {
		h = h*31 + maphash.String(seed, l.Key)
		h = h*31 + maphash.String(seed, l.Value)
	}
	return &s.last[h%uint64(len(s.last))]
}

func (s *shapes) copied(e *object.Encoded) *shape {
	own := &shape{kind: s.kind(e.APIVersion())}
	if len(e.Labels) == 0 {
		return own
	}
	var size int
	for _, l := range e.Labels {
		size += len(l.Value)
	}
	var text strings.Builder
	text.Grow(size)
	for _, l := range e.Labels {
		text.WriteString(l.Value)
	}
	values := text.String()
	own.labels = make(object.Labels, len(e.Labels))
	for i, l := range e.Labels {
		own.labels[i] = object.Label{Key: unique.Make(l.Key).Value(), Value: values[:len(l.Value)]}
		values = values[len(l.Value):]
	}
	return own
}

func (s *shapes) kind(apiVersion string) *kind {
	place := &s.kinds[maphash.String(seed, apiVersion)%uint64(len(s.kinds))]
	if known := place.Load(); known != nil && known.apiVersion == apiVersion {
		return known
	}
	own := &kind{cache: s.cache, apiVersion: strings.Clone(apiVersion)}
	place.Store(own)
	return own
}

// dashes are the places of the dashes in a UUID.
var dashes = [...]int{8, 13, 18, 23}

// parseUID parses a UUID in lower case. It returns false for any other text.
func parseUID(text string, id *[16]byte) bool {
	if len(text) != 36 {
		return false
	}
	var digits [32]byte
	n := 0
	for i := range len(text) {
		switch c := text[i]; {
		case slices.Contains(dashes[:], i):
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'f':
			digits[n] = c
			n++
		default:
			return false
		}
	}
	_, err := hex.Decode(id[:], digits[:])
	return err == nil
}

func formatUID(id *[16]byte) string {
	var text [36]byte
	return string(appendUID(text[:0], id))
}

func appendUID(dst []byte, id *[16]byte) []byte {
	dst = hex.AppendEncode(dst, id[:4])
	for _, part := range [...][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		dst = hex.AppendEncode(append(dst, '-'), part)
	}
	return dst
}
