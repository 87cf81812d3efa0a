package structural

import (
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
)

// The values of x-kubernetes-list-type with unique items.
const (
	listSet = "set"
	listMap = "map"
)

// distinct reports whether no set or map list in v has an item twice. If it is true, listErrors finds
// no errors. It may be false for valid lists: it compares hashes.
func (n *node) distinct(v any) bool {
	if n == nil || !n.merges {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if c := n.child(k); c != nil && c.merges && !c.distinct(e) {
				return false
			}
		}
	case []any:
		if n.listType != "" && !n.distinctItems(v) {
			return false
		}
		if n.items == nil || !n.items.merges {
			return true
		}
		for _, e := range v {
			if !n.items.distinct(e) {
				return false
			}
		}
	}
	return true
}

// Buffers of hashes, reused for the next list.
var hashes = sync.Pool{New: func() any { return new([]uint64) }}

var hashSeed = maphash.MakeSeed()

func (n *node) distinctItems(list []any) bool {
	if n.listType == listMap {
		for _, v := range list {
			if _, ok := v.(map[string]any); !ok && v != nil {
				return false
			}
		}
	}
	if len(list) <= 1 {
		return true
	}
	var few [16]uint64
	all := few[:0]
	if len(list) > len(few) {
		kept := hashes.Get().(*[]uint64)
		defer hashes.Put(kept)
		*kept = slices.Grow((*kept)[:0], len(list))
		all = *kept
	}
	for _, v := range list {
		all = append(all, n.hashItem(v))
	}
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			return false
		}
	}
	return true
}

func (n *node) hashItem(v any) uint64 {
	if n.listType == listSet {
		return hash(v)
	}
	obj, _ := v.(map[string]any)
	var h uint64
	for _, k := range n.mapKeys {
		h *= 31
		if v, ok := obj[k]; ok {
			h += hash(v)
		}
	}
	return h
}

// hash returns equal numbers for values with equal JSON.
func hash(v any) uint64 {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return 1 // invalid strings look the same in JSON
		}
		return maphash.String(hashSeed, v)
	case bool:
		if v {
			return 2
		}
		return 3
	case int64:
		return hashFloat(float64(v))
	case float64:
		return hashFloat(v)
	case []any:
		h := uint64(4)
		for _, e := range v {
			h = scramble(h*31 + hash(e))
		}
		return h
	case map[string]any:
		h := uint64(5)
		for k, e := range v {
			h += scramble(hash(k)*31 + hash(e))
		}
		return h
	}
	return 6
}

func hashFloat(f float64) uint64 {
	if f == 0 {
		return 7
	}
	return scramble(math.Float64bits(f) ^ maphash.String(hashSeed, ""))
}

func scramble(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

// listErrors returns the duplicates in sets and map lists of v at at.
func (n *node) listErrors(v any, at *field.Path) (errs field.ErrorList) {
	if n == nil || !n.merges {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if n.additional != nil {
				errs = append(errs, n.additional.listErrors(v[k], at.Key(k))...)
			}
			if c := n.properties[k]; c != nil {
				errs = append(errs, c.listErrors(v[k], at.Child(k))...)
			}
		}
	case []any:
		switch n.listType {
		case listSet:
			for _, i := range duplicates(v) {
				errs = append(errs, field.Duplicate(at.Index(i), v[i]))
			}
		case listMap:
			errs = append(errs, n.mapErrors(v, at)...)
		}
		if n.items != nil {
			for i, e := range v {
				errs = append(errs, n.items.listErrors(e, at.Index(i))...)
			}
		}
	}
	return errs
}

// unsaid is the key of an item without key fields.
type unsaid struct{}

func (n *node) mapErrors(list []any, at *field.Path) (errs field.ErrorList) {
	keys := make([]any, len(list))
	for i, v := range list {
		obj, ok := v.(map[string]any)
		if !ok && v != nil {
			return field.ErrorList{field.Invalid(at.Index(i), v, "must be an object for an array of list-type map")}
		}
		key := map[string]any{}
		for _, k := range n.mapKeys {
			if v, ok := obj[k]; ok {
				key[k] = v
			}
		}
		keys[i] = key
		if len(n.mapKeys) != 1 {
			continue
		}
		keys[i] = unsaid{}
		if v, ok := obj[n.mapKeys[0]]; ok {
			keys[i] = v
		}
	}
	for _, i := range duplicates(keys) {
		key, ok := keys[i].(map[string]any)
		if len(n.mapKeys) == 1 {
			key, ok = map[string]any{n.mapKeys[0]: keys[i]}, true
			if keys[i] == any(unsaid{}) {
				key = map[string]any{}
			}
		}
		if ok {
			errs = append(errs, field.Duplicate(at.Index(i), key))
		}
	}
	return errs
}

// duplicates returns the indices of the items that are there for the second time.
func duplicates(list []any) (found []int) {
	if len(list) <= 1 {
		return nil
	}
	type compound string
	times := make(map[any]int, len(list))
	for i, v := range list {
		var key any = v
		if !scalar(v) {
			key = compound(object.AppendJSON(nil, v))
		}
		if times[key]++; times[key] == 2 {
			found = append(found, i)
		}
	}
	return found
}
