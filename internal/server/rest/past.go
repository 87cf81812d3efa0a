package rest

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// read returns the object of a get: the present one, or that of an earlier state.
func (h *Handler) read(r *call, resourceVersion string) (*watchcache.Object, error) {
	if r.URL.RawQuery == "" {
		return h.registry.Get(r.Context(), r.target, resourceVersion)
	}
	o := metav1.ListOptions{ResourceVersion: resourceVersion}
	if err := h.asOf(r, &o, metav1.ResourceVersionMatchExact); err != nil {
		return nil, err
	}
	match := string(o.ResourceVersionMatch)
	if match == "" && request.MayHave(r.Request, "resourceVersionMatch") {
		match = r.URL.Query().Get("resourceVersionMatch")
	}
	revision, err := registry.ParseRevision(o.ResourceVersion)
	if err != nil || revision == 0 || match != string(metav1.ResourceVersionMatchExact) {
		return h.registry.Get(r.Context(), r.target, o.ResourceVersion)
	}
	if err := h.allowedThen(r.Context(), revision); err != nil {
		return nil, err
	}
	return h.registry.GetAt(r.Context(), r.target, revision)
}

// asOf sets the resourceVersion of a read to that of the time in its query, if there is one, with a match. A
// continue token has a revision of its own.
func (h *Handler) asOf(r *call, o *metav1.ListOptions, match metav1.ResourceVersionMatch) error {
	const name = "asOf"
	if !request.MayHave(r.Request, name) {
		return nil
	}
	query := r.URL.Query()
	if !query.Has(name) {
		return nil
	}
	if o.ResourceVersion != "" {
		return status.BadRequest("asOf and resourceVersion are mutually exclusive: each names a state")
	}
	t, err := parseTime(query.Get(name))
	if err != nil {
		return status.BadRequest("asOf: Invalid value: %q: want a time of RFC 3339, such as 2006-01-02T15:04:05Z", query.Get(name))
	}
	revision, err := h.registry.RevisionAt(r.Context(), r.target, t)
	if err != nil || o.Continue != "" {
		return err
	}
	o.ResourceVersion, o.ResourceVersionMatch = strconv.FormatInt(revision, 10), match
	return nil
}

// parseTime parses a time of a query. The plus sign of its zone may have become a space.
func parseTime(s string) (time.Time, error) {
	return time.Parse(time.RFC3339, strings.ReplaceAll(s, " ", "+"))
}

// allowedThen returns an error if a revision is older than the recent ones, and the user had no right to
// make the request then.
func (h *Handler) allowedThen(ctx context.Context, revision int64) error {
	if h.options.Then == nil || revision >= h.registry.Recent() {
		return nil
	}
	return h.options.Then(ctx, revision)
}

// PastRights are the rights of one user to earlier states. A request asks about near revisions one after the other.
type PastRights interface {
	// Has reports whether the user has a right now. An Info without a namespace is for all of them.
	Has(ctx context.Context, asked *request.Info) (bool, error)
	// Had returns a Forbidden error if the roles of a revision do not allow it, and the right comes from roles.
	Had(ctx context.Context, asked *request.Info, revision int64) error
}

// A hidden decides about the changes and events of a request. Those of recent states need the rights of now only.
type hidden struct {
	rights PastRights // nil: none is hidden
	asked  *request.Info
	recent int64
}

func (h *Handler) hidden(r *call) hidden {
	if h.options.Then == nil {
		return hidden{}
	}
	return hidden{h.options.Rights(r.Context()), &r.info, h.registry.Recent()}
}

// err returns a Forbidden error for a revision at which the user had no right.
func (h *hidden) err(ctx context.Context, revision int64) error {
	if h.rights == nil || revision >= h.recent {
		return nil
	}
	return h.rights.Had(ctx, h.asked, revision)
}

// changeOptions select changes.
type changeOptions struct {
	since int64 // only later ones; 0 for all
	limit int   // only the newest ones; 0 for all
}

// changeOptionsOf reads the options of a request for changes.
func changeOptionsOf(query url.Values) (o changeOptions, err error) {
	for _, other := range []string{"asOf", "resourceVersion", "resourceVersionMatch", "continue", "labelSelector", "fieldSelector", "shardSelector"} {
		if query.Get(other) != "" {
			return o, status.BadRequest("history and %s are mutually exclusive: limit and since select changes", other)
		}
	}
	if since := query.Get("since"); since != "" {
		if o.since, err = registry.ParseRevision(since); err != nil {
			return o, status.BadRequest("since: Invalid value: %q: want a revision, such as the resourceVersion of an earlier answer", since)
		}
	}
	if limit := query.Get("limit"); limit != "" {
		if o.limit, err = strconv.Atoi(limit); err != nil || o.limit < 0 {
			return o, status.BadRequest("limit: Invalid value: %q: want a number of changes", limit)
		}
	}
	return o, nil
}
