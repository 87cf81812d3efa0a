package stored

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/anykind/anykind/internal/store/watchcache"
)

// Unreadable has the objects that an Apply could not read, for callers that enforce all objects. The zero value has none.
type Unreadable struct {
	mu   sync.Mutex
	errs map[string]error // by key
}

// Set records the error of reading an object, or with nil that it is readable or gone.
func (u *Unreadable) Set(o *watchcache.Object, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil:
		delete(u.errs, o.Key)
	case u.errs == nil:
		u.errs = map[string]error{o.Key: unreadable(o, err)}
	default:
		u.errs[o.Key] = unreadable(o, err)
	}
}

// Clear removes the objects whose keys begin with a prefix.
func (u *Unreadable) Clear(prefix string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.errs, func(key string, _ error) bool { return strings.HasPrefix(key, prefix) })
}

// Err returns the error of one of the objects; nil if there is none.
func (u *Unreadable) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, err := range u.errs {
		return err
	}
	return nil
}

// unreadable returns the error for an object that cannot be read.
func unreadable(o *watchcache.Object, err error) error {
	return fmt.Errorf("%q cannot be read: %w", o.Key, err)
}
