package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/network/cluster"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

const (
	shortestPause = time.Second
	longestPause  = 30 * time.Second
	// unwatched is the pause between lists of a kind that cannot be watched.
	unwatched = 30 * time.Second
)

var errEnded = errors.New("the watch ended")

// Follow implements controller.Aggregated. It retries every failure; a new list finds the changes in
// between.
func (o *Servers) Follow(ctx context.Context, d *resource.Definition) iter.Seq[kv.Event] {
	return func(yield func(kv.Event) bool) {
		f := &follower{others: o, prefix: d.StoragePrefix, watches: slices.Contains(d.Verbs, "watch"), known: map[string]known{}, yield: yield}
		for pause := shortestPause; ctx.Err() == nil && !f.done; {
			listed, err := f.once(ctx)
			if listed {
				pause = shortestPause
			}
			wait := pause
			switch {
			case err == nil:
				wait = unwatched
			case ctx.Err() == nil && !errors.Is(err, errEnded) && !errors.Is(err, io.EOF):
				o.log.Warn("the watch of another API server was interrupted", "resource", d.GroupResource(), "err", err)
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			pause = min(2*pause, longestPause)
		}
	}
}

// A follower follows the objects of one kind.
type follower struct {
	others  *Servers
	prefix  string
	watches bool
	known   map[string]known // all existing objects
	yield   func(kv.Event) bool
	done    bool // The consumer has stopped.
}

// once lists all objects, then watches them. listed reports whether the list succeeded.
func (f *follower) once(ctx context.Context) (listed bool, err error) {
	here := map[string]bool{}
	revision, err := f.others.pages(ctx, f.prefix, func(page kv.Page) {
		for i := range page.Records {
			r := &page.Records[i]
			here[r.Key] = true
			f.put(r)
		}
	})
	if err != nil {
		return false, err
	}
	for key := range f.known {
		if !here[key] {
			f.gone(key, 0)
		}
	}
	if !f.watches {
		return true, nil
	}
	return true, f.watch(ctx, revision)
}

// put sends an event for an object that is new or changed.
func (f *follower) put(r *kv.Record) {
	var t struct{ Metadata known }
	if json.Unmarshal(r.Value, &t) != nil {
		return
	}
	was, now := f.known[r.Key], t.Metadata
	if was == now {
		return
	}
	if was.UID != now.UID {
		f.gone(r.Key, r.Revision) // Another object has its name.
		was = known{}
	}
	f.known[r.Key] = now
	f.tell(kv.Event{Key: r.Key, Value: r.Value, Prev: was.object(), Revision: r.Revision})
}

func (f *follower) gone(key string, revision int64) {
	was, ok := f.known[key]
	delete(f.known, key)
	if ok {
		f.tell(kv.Event{Key: key, Prev: was.object(), Revision: revision})
	}
}

func (f *follower) tell(e kv.Event) { f.done = f.done || !f.yield(e) }

// known identifies an object and its last seen version.
type known struct {
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
}

// object returns the metadata as an object, or nil if there is none.
func (k known) object() []byte {
	if k.UID == "" {
		return nil
	}
	out, err := json.Marshal(map[string]known{"metadata": k})
	if err != nil {
		panic("remote: " + err.Error()) // It has only strings.
	}
	return out
}

// watch sends the events after a resource version.
func (f *follower) watch(ctx context.Context, revision string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := parse(f.prefix)
	if err != nil {
		return err
	}
	stream, err := f.others.send(ctx, demand{
		place: p, method: http.MethodGet, path: p.objects(), accept: metadata,
		query: url.Values{"watch": {"true"}, "resourceVersion": {revision}, "allowWatchBookmarks": {"true"}},
	})
	if err != nil {
		return err
	}
	defer stream.Close()
	for events := cluster.NewEvents(stream); !f.done; {
		e, err := events.Next()
		if err != nil {
			return err
		}
		if e.Type == watch.Bookmark {
			continue
		}
		if e.Type == watch.Error {
			return errEnded
		}
		r, err := recordOf(p, e.Object)
		if err != nil {
			return err
		}
		if e.Type == watch.Deleted {
			f.gone(r.Key, r.Revision)
		} else {
			f.put(&r)
		}
	}
	return nil
}
