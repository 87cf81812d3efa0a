package registry

import (
	"fmt"
	"strconv"

	"k8s.io/apiserver/pkg/sharding"

	"github.com/anykind/anykind/internal/store/watchcache"
)

// A shard selects objects whose UID or namespace has its hash in one of some ranges.
type shard struct {
	namespaces bool // the hash is of the namespace, otherwise of the UID
	ranges     []hashRange
	selector   string // in normal form
	// missed is called for each object outside the shard. It may be nil.
	missed func()
}

// A hashRange includes both of its ends: 1<<64 is no uint64.
type hashRange struct{ first, last uint64 }

// narrow restricts s to a shard; "" is no restriction. As in Kubernetes, an invalid selector is a 500.
func (s *Selection) narrow(selector string, missed func()) error {
	if selector == "" {
		return nil
	}
	parsed, err := sharding.Parse(selector)
	if err != nil {
		return fmt.Errorf("invalid shard selector: %w", err)
	}
	s.shard = &shard{selector: parsed.String(), missed: missed}
	for _, r := range parsed.Requirements() { // of one field, with 16 or 17 digits each
		s.shard.namespaces = r.Key == "object.metadata.namespace"
		first, err := strconv.ParseUint(r.Start, 0, 64)
		if err != nil {
			return err
		}
		end, err := strconv.ParseUint(r.End, 0, 64)
		if err != nil {
			end = 0 // 1<<64 wraps around
		}
		s.shard.ranges = append(s.shard.ranges, hashRange{first, end - 1})
	}
	return nil
}

// has reports whether an object is in the shard. It reads the header only.
func (s *shard) has(o *watchcache.Object) bool {
	var hash uint64
	if s.namespaces {
		hash = fnv1a(o.Namespace())
	} else {
		var uid [48]byte
		hash = fnv1a(o.AppendUID(uid[:0]))
	}
	for _, r := range s.ranges {
		if r.first <= hash && hash <= r.last {
			return true
		}
	}
	if s.missed != nil {
		s.missed()
	}
	return false
}

// fnv1a returns the 64-bit FNV-1a hash of a text.
func fnv1a[T string | []byte](text T) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	hash := uint64(offset)
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * prime
	}
	return hash
}
