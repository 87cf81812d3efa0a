package rest

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// Limits of a list of changes of all kinds.
const (
	defaultChanges = 100
	maxChanges     = 1000
	// maxQuestions limits the calls of the authorizers: they may be webhooks.
	maxQuestions = 10_000
)

// AllChanges answers with the newest changes of all kinds that the user may list, as a ChangeList, oldest first.
// Objects have the preferred version of their kind.
func (h *Handler) AllChanges(w http.ResponseWriter, r *http.Request) {
	if !request.Allows(w, r, http.MethodGet) {
		return
	}
	h.turns.other()
	close := func() {}
	if takesGzip(r) && h.options.Gates.On(gate.APIResponseCompression) {
		c := &compressor{ResponseWriter: w, zipper: zipper{turns: h.turns}}
		w, close = c, c.close
	}
	if err := h.allChanges(w, r); err != nil {
		request.Fail(w, r, err)
	}
	close() // not after a panic: the client must not mistake the part that it has for the whole
}

func (h *Handler) allChanges(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	o, err := allChangesOf(r.URL.Query())
	if err != nil {
		return err
	}
	newest, until, err := h.registry.Span(ctx, o.untilTime)
	switch {
	case err != nil:
		return err
	case o.until > newest:
		return status.BadRequest("until: Invalid value: %d: the newest revision is %d", o.until, newest)
	case o.until > 0:
		until = o.until
	}
	if err := h.options.Refresh(ctx); err != nil {
		return err
	}
	s := selection{
		Handler: h, options: o, rights: h.options.Rights(ctx), set: h.catalog.Set(), kinds: map[*resource.Definition]*listed{}, recent: h.registry.Recent(),
	}
	chosen, earlier, err := s.choose(ctx, until)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", codec.Format{}.ContentType())
	out := changesWriter{handler: h, to: w}
	out.begin(until, earlier)
	if err := s.write(ctx, &out, chosen); err != nil {
		if out.sent {
			panic(http.ErrAbortHandler)
		}
		return err
	}
	return nil
}

// allChangesOptions select changes of all kinds.
type allChangesOptions struct {
	changeOptions
	until     int64 // only those up to this revision; 0 for all
	untilTime time.Time
	namespace string // only its objects; "" for all
	all       bool   // also Leases and Events
}

// allChangesOf reads the options of a request for changes of all kinds.
func allChangesOf(query url.Values) (o allChangesOptions, err error) {
	if o.changeOptions, err = changeOptionsOf(query); err != nil {
		return o, err
	}
	switch limit := query.Get("limit"); {
	case limit == "":
		o.limit = defaultChanges
	case o.limit < 1 || o.limit > maxChanges:
		return o, status.BadRequest("limit: Invalid value: %q: must be from 1 to %d", limit, maxChanges)
	}
	if until := query.Get("until"); until != "" {
		o.until, err = registry.ParseRevision(until)
		if err != nil {
			o.untilTime, err = parseTime(until)
		}
		if err != nil || o.until == 0 && o.untilTime.IsZero() {
			return o, status.BadRequest("until: Invalid value: %q: want a revision, or a time of RFC 3339 such as 2006-01-02T15:04:05Z", until)
		}
	}
	if o.namespace = query.Get("namespace"); o.namespace != "" {
		if problems := object.ValidatePathSegment(o.namespace, false); len(problems) > 0 {
			return o, status.BadRequest("namespace: Invalid value: %q: %s", o.namespace, problems[0])
		}
	}
	if all := query.Get("all"); all != "" {
		if o.all, err = strconv.ParseBool(all); err != nil {
			return o, status.BadRequest("all: Invalid value: %q: want true or false", all)
		}
	}
	return o, nil
}

// A selection chooses changes for one request.
type selection struct {
	*Handler
	options   allChangesOptions
	rights    PastRights
	set       *resource.Set
	kinds     map[*resource.Definition]*listed
	recent    int64
	questions int
}

// A listed is a kind with the rights of the user.
type listed struct {
	*resource.Definition
	version    *resource.Version
	place      resource.Place
	everywhere bool            // the user may list it in all namespaces
	within     map[string]bool // known rights in namespaces
	held       context.Context // of all conversions, see Registry.Hold
}

// choose returns the newest changes up to a revision, oldest first, and the revision of the next older one; 0 if there is
// none. Each change in a history has a revision of its own.
func (s *selection) choose(ctx context.Context, until int64) (chosen []registry.LoggedChange, earlier int64, err error) {
	for c, err := range s.registry.Log(ctx, s.set, s.options.since, until) {
		if err != nil {
			return nil, 0, err
		}
		wanted, err := s.wants(ctx, &c)
		if err != nil {
			return nil, 0, err
		}
		if !wanted {
			continue
		}
		// It may have been forgotten, or a later one of its interval has its place.
		if _, kept, err := s.registry.Change(ctx, c.Logged); err != nil {
			return nil, 0, err
		} else if !kept {
			continue
		}
		if len(chosen) == s.options.limit {
			earlier = c.Revision
			break
		}
		chosen = append(chosen, c)
	}
	slices.Reverse(chosen)
	return chosen, earlier, nil
}

// wants reports whether the user wants a change, and has the right to it.
func (s *selection) wants(ctx context.Context, c *registry.LoggedChange) (bool, error) {
	if c.Definition == nil || s.options.namespace != "" && c.Namespace != s.options.namespace {
		return false, nil
	}
	k, err := s.kind(ctx, c.Definition)
	if k == nil || err != nil {
		return false, err
	}
	if may, err := s.lists(ctx, k, c.Namespace); !may || err != nil {
		return false, err
	}
	if c.Revision >= s.recent {
		return true, nil
	}
	err = s.rights.Had(ctx, k.asked(c.Namespace), c.Revision)
	if status.Is(err, metav1.StatusReasonForbidden) {
		return false, nil
	}
	return err == nil, err
}

// kind returns a kind; nil if its changes are left out.
func (s *selection) kind(ctx context.Context, d *resource.Definition) (*listed, error) {
	if k, known := s.kinds[d]; known {
		return k, nil
	}
	v := preferred(s.set, d)
	if v == nil || !d.Allows("list") || frequent(d) && !s.options.all {
		s.kinds[d] = nil
		return nil, nil
	}
	k := &listed{
		Definition: d, version: v, within: map[string]bool{}, held: s.registry.Hold(ctx, d),
		place: d.Place(v.Name, "", ""),
	}
	var err error
	if k.everywhere, err = s.ask(ctx, k.asked("")); err != nil {
		return nil, err
	}
	s.kinds[d] = k
	return k, nil
}

// lists reports whether the user may list a kind in a namespace.
func (s *selection) lists(ctx context.Context, k *listed, namespace string) (may bool, err error) {
	if k.everywhere || namespace == "" {
		return k.everywhere, nil
	}
	may, known := k.within[namespace]
	if !known {
		if may, err = s.ask(ctx, k.asked(namespace)); err == nil {
			k.within[namespace] = may
		}
	}
	return may, err
}

func (s *selection) ask(ctx context.Context, asked *request.Info) (bool, error) {
	if s.questions++; s.questions > maxQuestions {
		return false, status.BadRequest("namespace: Required value: the request needs more than %d authorization decisions", maxQuestions)
	}
	return s.rights.Has(ctx, asked)
}

// asked is the request for which the user needs the right.
func (k *listed) asked(namespace string) *request.Info {
	return &request.Info{IsResource: true, Verb: "list", Group: k.Group, Version: k.version.Name, Resource: k.Plural, Namespace: namespace}
}

// preferred returns the preferred version of a kind, nil if it is not served.
func preferred(set *resource.Set, d *resource.Definition) *resource.Version {
	group := set.Group(d.Group)
	if group == nil {
		return nil
	}
	for _, name := range group.Versions {
		if v := d.Version(name); v != nil && v.Served {
			return v
		}
	}
	return nil
}

// frequent reports whether objects of a kind change all the time in a running cluster.
func frequent(d *resource.Definition) bool {
	switch d.Group {
	case "":
		return d.Plural == "events"
	case "coordination.k8s.io":
		return d.Plural == "leases"
	default:
		return false
	}
}

// write writes the chosen changes, one at a time. Those that were forgotten meanwhile are left out.
func (s *selection) write(ctx context.Context, out *changesWriter, chosen []registry.LoggedChange) error {
	for _, l := range chosen {
		c, ok, err := s.registry.Change(ctx, l.Logged)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		k := s.kinds[l.Definition]
		at := k.place
		at.Namespace, at.Name = l.Namespace, l.Name
		out.definition, out.version, out.place = k.Definition, k.version, &at
		if err := out.add(k.held, c); err != nil {
			return err
		}
	}
	return out.end()
}
