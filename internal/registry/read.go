package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// futureWait limits the wait of a read for a future revision.
const futureWait = 3 * time.Second

// Get returns one object, at least as new as resourceVersion; "" is the newest state.
func (r *Registry) Get(ctx context.Context, target Target, resourceVersion string) (*watchcache.Object, error) {
	if err := target.checkName(); err != nil {
		return nil, err
	}
	if from := target.Version.Reader; from != nil {
		return compute(ctx, &target, from)
	}
	if err := r.reachFor(ctx, target.Definition, resourceVersion); err != nil {
		return nil, err
	}
	o, err := r.cache.Resource(target.Definition.StoragePrefix).Get(ctx, target.key())
	if err != nil {
		return nil, StorageError(err)
	}
	if o == nil {
		return nil, target.notFound()
	}
	return o, nil
}

// current returns the newest state of an object for a write, or nil.
func (r *Registry) current(ctx context.Context, target *Target) (*watchcache.Object, error) {
	if err := target.checkName(); err != nil {
		return nil, err
	}
	if err := r.fresh(ctx); err != nil {
		return nil, StorageError(err)
	}
	o, err := r.cache.Resource(target.Definition.StoragePrefix).Get(ctx, target.key())
	if err != nil {
		return nil, StorageError(err)
	}
	return o, nil
}

// fresh waits until the cache has all acknowledged writes. If the request has already read the
// revision of the store, it waits for that revision.
func (r *Registry) fresh(ctx context.Context) error {
	if q := request.From(ctx); q != nil {
		if revision, ok := q.TakeSeen(); ok {
			return r.cache.Wait(ctx, revision)
		}
	}
	_, err := r.cache.Fresh(ctx)
	return err
}

// reachFor is reach for one object of d.
func (r *Registry) reachFor(ctx context.Context, d *resource.Definition, resourceVersion string) error {
	if !d.Uncached {
		return r.reach(ctx, resourceVersion)
	}
	if _, err := parseAsked(resourceVersion); err != nil {
		return status.BadRequest("invalid resource version: %v", err)
	}
	return r.reachNow(ctx, resourceVersion)
}

// reachNow is reach for reads that Kubernetes sends to its store: it does not wait for a future
// revision.
func (r *Registry) reachNow(ctx context.Context, resourceVersion string) error {
	revision, err := parseAsked(resourceVersion)
	if err != nil || resourceVersion == "0" {
		return err
	}
	if revision == 0 || revision > r.cache.Revision() {
		if err := r.fresh(ctx); err != nil {
			return StorageError(err)
		}
	}
	if newest := r.cache.Revision(); revision > newest {
		return status.FutureRevision(revision, newest, 0)
	}
	return nil
}

// reach waits until the cache has a resourceVersion.
func (r *Registry) reach(ctx context.Context, resourceVersion string) error {
	switch resourceVersion {
	case "0":
		return nil
	case "":
		return StorageError(r.fresh(ctx))
	}
	revision, err := parseAsked(resourceVersion)
	if err != nil {
		return err
	}
	return r.await(ctx, revision)
}

// await waits until the cache has a revision.
func (r *Registry) await(ctx context.Context, revision int64) error {
	if revision <= r.cache.Revision() {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, futureWait)
	defer cancel()
	err := r.cache.Wait(wait, revision)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return status.FutureRevision(revision, r.cache.Revision(), 1)
	}
	return StorageError(err)
}

// parseAsked parses the resourceVersion of a read. As in Kubernetes, its error is a 500 for get and
// watch; list turns it into a 400.
func parseAsked(resourceVersion string) (int64, error) {
	revision, err := ParseRevision(resourceVersion)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion: Invalid value: %q: %w", resourceVersion, err)
	}
	return revision, nil
}

// ListOptions select objects, a state of the store, and a page.
type ListOptions struct {
	Selection       Selection
	Shard           string // a shard selector that restricts the selection, or ""
	ResourceVersion string
	Match           metav1.ResourceVersionMatch
	Limit           int64
	Continue        string
	// Allow returns an error if the client may not read the state at a revision. It may be nil.
	Allow func(ctx context.Context, revision int64) error
}

// A List is a page, or all, of the objects of one state of the store.
type List struct {
	Items    Items
	Revision int64
	// Continue is the token of the next page, or "".
	Continue string
	// Remaining is the number of objects after this page, if known.
	Remaining *int64
	// Shard is the shard selector in normal form; "" for a list of all shards.
	Shard string

	corrupt corruptErrors // of the selected objects; then the list fails
}

// List returns the selected objects of target's namespace, or of all
// namespaces, in the order of their names.
func (r *Registry) List(ctx context.Context, target Target, o ListOptions) (*List, error) {
	if from := target.Version.Reader; from != nil {
		return r.computeAll(ctx, &target, from, &o.Selection)
	}
	if err := o.Selection.narrow(o.Shard, nil); err != nil {
		return nil, err
	}
	prefix := target.Definition.NamespacePrefix(target.Namespace)
	snapshot, after, err := r.snapshot(ctx, target, prefix, o)
	if err != nil {
		return nil, err
	}
	if o.Allow != nil {
		if err := o.Allow(ctx, snapshot.Revision()); err != nil {
			return nil, err
		}
	}
	ctx = r.Hold(ctx, target.Definition)
	l := &List{Revision: snapshot.Revision()}
	if o.Selection.shard != nil {
		l.Shard = o.Selection.shard.selector
	}
	scope, _ := o.Selection.scope(&target)
	if o.Selection.All() {
		l.Items.all = snapshot.Scan(scope, after)
	}
	for item, err := range r.selected(ctx, &o.Selection, &target, snapshot, scope, after) {
		switch {
		case err == nil:
		case l.corrupt.add(err):
			continue
		default:
			return nil, l.corrupt.of(target.Definition.GroupResource(), err)
		}
		l.Items.add(item)
		if int64(l.Items.Len()) == o.Limit {
			l.limit(prefix, item.Key, snapshot.Len(scope, item.Key), &o.Selection)
			break
		}
		if l.Items.Len()%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if err := l.corrupt.of(target.Definition.GroupResource(), nil); err != nil {
		return nil, err
	}
	return l, nil
}

// limit ends a page with the object at the key last, with more objects after it. As in Kubernetes,
// there is a next page even if the selection matches none of them: the list does not look ahead.
func (l *List) limit(prefix, last string, others int, s *Selection) {
	if others == 0 {
		return
	}
	l.Continue = encodeContinue(l.Revision, prefix, last)
	if s.All() {
		n := int64(others)
		l.Remaining = &n
	}
}

// snapshot returns the state of the store for a list, and the key after which the list continues.
func (r *Registry) snapshot(ctx context.Context, target Target, prefix string, o ListOptions) (*watchcache.Snapshot, string, error) {
	cached := r.cache.Resource(target.Definition.StoragePrefix)
	if o.Continue != "" {
		return r.resume(ctx, cached, prefix, o)
	}
	revision, err := parseAsked(o.ResourceVersion)
	if err != nil {
		return nil, "", status.BadRequest("invalid resource version: %v", err)
	}
	_, one := o.Selection.scope(&target)
	pages := o.Match == "" && o.Limit > 0 && revision > 0 // then the revision is exact, except for a single object
	exact := o.Match == metav1.ResourceVersionMatchExact
	reach := r.reach
	if target.Definition.Uncached || one && (exact || pages) {
		reach = r.reachNow
	}
	if err := reach(ctx, o.ResourceVersion); err != nil {
		return nil, "", err
	}
	if !exact && (!pages || one) {
		revision = kv.Latest
	}
	s, err := cached.Snapshot(ctx, revision)
	return s, "", StorageError(err)
}

// resume returns the state of a continue token. If it is compacted and the token allows it, resume
// returns the newest state.
func (r *Registry) resume(ctx context.Context, cached *watchcache.Resource, prefix string, o ListOptions) (*watchcache.Snapshot, string, error) {
	revision, after, err := decodeContinue(o.Continue, prefix)
	if err != nil {
		return nil, "", err
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return nil, "", status.BadRequest("specifying resource version is not allowed when using continue")
	}
	if revision < 0 {
		if _, err := r.cache.Fresh(ctx); err != nil {
			return nil, "", StorageError(err)
		}
		s, err := cached.Snapshot(ctx, kv.Latest)
		return s, after, StorageError(err)
	}
	if err := r.await(ctx, revision); err != nil { // the token may come from another server
		return nil, "", err
	}
	s, err := cached.Snapshot(ctx, revision)
	var compacted *kv.CompactedError
	if errors.As(err, &compacted) {
		return nil, "", expiredContinue(prefix, after)
	}
	return s, after, StorageError(err)
}
