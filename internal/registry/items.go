package registry

import (
	"iter"

	"github.com/anykind/anykind/internal/store/watchcache"
)

// Items are the objects of a list. A list without selectors takes no memory: it reads the snapshot
// again.
type Items struct {
	all   iter.Seq[*watchcache.Object] // of a list without selectors, perhaps more than len
	found [][]*watchcache.Object       // otherwise, in chunks
	len   int
}

// itemChunk limits the chunks. The slices of a large list are not copied as it grows.
const itemChunk = 4096

// Len returns the number of objects.
func (i *Items) Len() int { return i.len }

// All yields the objects in order, as often as it is called.
func (i *Items) All() iter.Seq[*watchcache.Object] {
	return func(yield func(*watchcache.Object) bool) {
		if i.all == nil {
			for _, chunk := range i.found {
				for _, o := range chunk {
					if !yield(o) {
						return
					}
				}
			}
			return
		}
		left := i.len
		for o := range i.all {
			if left == 0 || !yield(o) {
				return
			}
			left--
		}
	}
}

func (i *Items) add(o *watchcache.Object) {
	i.len++
	if i.all != nil {
		return
	}
	last := len(i.found) - 1
	if last < 0 || len(i.found[last]) == itemChunk {
		i.found = append(i.found, nil)
		last++
	}
	i.found[last] = append(i.found[last], o)
}
