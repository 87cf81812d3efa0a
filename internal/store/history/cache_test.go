package history

import (
	"fmt"
	"testing"
)

// The cache has the newest runs up to its limit. A run of more than a quarter of it is not cached.
func TestCacheIsBounded(t *testing.T) {
	const runs, kept = 12, 4
	var c cache
	name := func(i int) cached { return cached{key: fmt.Sprint(i)} }
	for i := range runs {
		r := &run{}
		c.put(name(i), r, maxCached/kept)
		c.put(name(i), &run{}, maxCached/kept) // again
		if c.get(name(i)) != r {
			t.Fatalf("the cache does not have run %d", i)
		}
	}
	c.put(name(runs), &run{}, maxCached/4+1)
	for i := range runs + 1 {
		if got, want := c.get(name(i)) != nil, i >= runs-kept && i < runs; got != want {
			t.Errorf("the cache has run %d: %v, want %v", i, got, want)
		}
	}
	if c.size != maxCached || len(c.runs) != kept || len(c.order) != kept || len(c.sizes) != kept {
		t.Errorf("%d bytes, %d runs, %d names and %d sizes, want %d and %d", c.size, len(c.runs), len(c.order), len(c.sizes), maxCached, kept)
	}
}
