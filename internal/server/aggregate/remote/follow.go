package remote

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"

	"github.com/anykind/anykind/internal/network/cluster"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// Follow implements controller.Aggregated. It retries every failure; a new list finds the changes in
// between.
func (o *Servers) Follow(ctx context.Context, d *resource.Definition) iter.Seq[kv.Event] {
	return func(yield func(kv.Event) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		f := &follower{others: o, prefix: d.StoragePrefix, watches: slices.Contains(d.Verbs, "watch"), known: map[string]known{}, yield: yield, stop: stop}
		cluster.Reflect(ctx, f, o.log.With("resource", d.GroupResource()))
	}
}

// A follower follows the objects of one kind. It implements cluster.Collector.
type follower struct {
	others  *Servers
	prefix  string
	watches bool
	known   map[string]known // all existing objects
	yield   func(kv.Event) bool
	done    bool // the consumer has stopped
	stop    func()
}

// List implements cluster.Collector.
func (f *follower) List(ctx context.Context) (at string, err error) {
	here := map[string]bool{}
	at, err = f.others.pages(ctx, f.prefix, func(page kv.Page) {
		for i := range page.Records {
			r := &page.Records[i]
			here[r.Key] = true
			f.put(r)
		}
	})
	if err != nil {
		return "", err
	}
	for key := range f.known {
		if !here[key] {
			f.gone(key, 0)
		}
	}
	return at, nil
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

func (f *follower) tell(e kv.Event) {
	if !f.done && !f.yield(e) {
		f.done = true
		f.stop()
	}
}

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

// Watch implements cluster.Collector.
func (f *follower) Watch(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	if !f.watches {
		return nil, cluster.ErrUnwatched
	}
	p, err := parse(f.prefix)
	if err != nil {
		return nil, err
	}
	return f.others.send(ctx, demand{place: p, method: http.MethodGet, path: p.objects(), accept: metadata, query: query})
}

// Change implements cluster.Collector.
func (f *follower) Change(_ context.Context, deleted bool, data []byte) error {
	p, err := parse(f.prefix)
	if err != nil {
		return err
	}
	r, err := recordOf(p, data)
	if err != nil {
		return err
	}
	if deleted {
		f.gone(r.Key, r.Revision)
	} else {
		f.put(&r)
	}
	return nil
}
