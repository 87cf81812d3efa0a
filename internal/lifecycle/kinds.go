package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/resource"
)

// root begins the key of every object.
const root = "/registry/"

// findKind returns the Definition that serves a kind, or nil.
func findKind(set *resource.Set, apiVersion, kind string) *resource.Definition {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	group := set.Group(gv.Group)
	if group == nil {
		return nil
	}
	for _, d := range group.Definitions {
		if v := d.Version(gv.Version); d.Kind == kind && v != nil && v.Served {
			return d
		}
	}
	return nil
}

// findKey returns the Definition of the object of a group that is stored at a
// key, or nil.
func findKey(set *resource.Set, group, key string) *resource.Definition {
	rest, _ := strings.CutPrefix(key, root)
	first, rest, _ := strings.Cut(rest, "/")
	second, _, _ := strings.Cut(rest, "/")
	plurals := []string{first}
	if first == group {
		plurals = []string{second, first}
	}
	for _, plural := range plurals {
		if d := set.Lookup(group, plural); d != nil && strings.HasPrefix(key, d.StoragePrefix) {
			return d
		}
	}
	return nil
}

// namespaceOf returns the namespace of the object at a key, if it is in one.
func namespaceOf(key string) string {
	i := strings.LastIndexByte(key, '/')
	if i < 0 {
		return ""
	}
	return key[strings.LastIndexByte(key[:i], '/')+1 : i]
}

// staleRetries is how often something is started over because the Definition it
// was started with is no longer in force.
const staleRetries = 10

// with calls do with the Definition of the object of a group at a key.
func (l *Lifecycle) with(ctx context.Context, group, key string, do func(*resource.Definition) error) error {
	for attempt := 0; ; attempt++ {
		d := findKey(l.Catalog.Set(), group, key)
		if d == nil || attempt > 0 {
			if err := l.Refresh(ctx); err != nil {
				return err
			}
			d = findKey(l.Catalog.Set(), group, key)
		}
		if d == nil {
			return &unknownError{what: key}
		}
		if err := do(d); !errors.Is(err, registry.ErrStale) || attempt == staleRetries {
			return err
		}
	}
}

// An unknownError says that a kind is not served, perhaps not yet.
type unknownError struct{ what string }

func (e *unknownError) Error() string {
	return fmt.Sprintf("%s is of a kind that is not served", e.what)
}

func isUnknown(err error) bool {
	var e *unknownError
	return errors.As(err, &e)
}

// unknown is what cannot be judged before more kinds are served.
type unknown struct {
	mu     sync.Mutex
	tasks  map[task]bool
	turned int // how often the kinds have changed
}

// park keeps a task that ended with err if that says that a kind is unknown, and
// returns any other err. A task is done again as long as kinds change under it.
func (u *unknown) park(t task, began int, err error, q *queue) error {
	if !isUnknown(err) {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.turned != began {
		q.add(t)
		return nil
	}
	if u.tasks == nil {
		u.tasks = map[task]bool{}
	}
	u.tasks[t] = true
	return nil
}

// turn returns what was kept, to be done now that the kinds have changed.
func (u *unknown) turn() (tasks []task) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.turned++
	for t := range u.tasks {
		tasks = append(tasks, t)
	}
	clear(u.tasks)
	return tasks
}

// begin says how often the kinds have changed.
func (u *unknown) begin() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.turned
}
