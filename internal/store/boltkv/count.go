package boltkv

import (
	"context"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
)

// countedAtOnce is the number of keys counted without a break for writers.
const countedAtOnce = 4096

// Count implements kv.Counter.
func (s *Store) Count(ctx context.Context, prefix string, revision int64) (n int64, err error) {
	for from := prefix; from != ""; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		s.mu.RLock()
		at, err := s.resolve(revision)
		if err != nil {
			s.mu.RUnlock()
			return 0, err
		}
		found, next := s.index.count(prefix, from, at)
		s.mu.RUnlock()
		n, from = n+found, next
	}
	return n, nil
}

// count counts keys from one on, and returns from which one to go on, or "".
func (x *index) count(prefix, from string, revision int64) (n int64, next string) {
	seen := 0
	x.keys.Ascend(from, func(key string, v version) bool {
		switch {
		case !strings.HasPrefix(key, prefix):
			return false
		case seen == countedAtOnce:
			next = key
			return false
		case x.versionAt(key, v, revision) != kv.Absent:
			n++
		}
		seen++
		return true
	})
	return n, next
}
