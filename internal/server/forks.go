package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// Paths of forks: the collection, and the root of the paths of each fork.
const (
	forksPath = "/forks"
	forksRoot = forksPath + "/"
)

const (
	maxForkSpec = 64 << 10 // bytes of the body of a request
	maxForks    = 2000     // of a server
	forkVersion = "fork.anykind.dev/v1"
)

// A ForkSpec describes a new fork.
type ForkSpec struct {
	Name string `json:"name"`
	// AsOf is the time of the state that the fork begins with, and ResourceVersion its revision. Without both,
	// it is the present one.
	AsOf            *metav1.Time `json:"asOf,omitempty"`
	ResourceVersion string       `json:"resourceVersion,omitempty"`
	// Webhooks is None or DryRun: admission webhooks are left out, or called with dryRun.
	Webhooks string `json:"webhooks,omitempty"`
	// Lifetime is the time after which the fork is deleted; 0 is never.
	Lifetime metav1.Duration `json:"lifetime,omitzero"`
	// Replay repeats in the fork the later changes of the server.
	Replay *ForkReplay `json:"replay,omitempty"`
}

// A ForkReplay describes a replay of later changes.
type ForkReplay struct {
	// Speed is the number of seconds that pass in one second; 0 is as fast as possible.
	Speed float64 `json:"speed,omitempty"`
	// Without are users whose changes are left out.
	Without []string `json:"without,omitempty"`
}

// A ForkProgress is the progress of a replay.
type ForkProgress struct {
	// ResourceVersion and Time are those of the last change.
	ResourceVersion int64            `json:"resourceVersion,string,omitempty"`
	Time            metav1.MicroTime `json:"time,omitzero"`
	Done            bool             `json:"done"`
	Error           string           `json:"error,omitempty"`
}

// Values of ForkSpec.Webhooks.
const (
	WebhooksNone   = "None"
	WebhooksDryRun = "DryRun"
)

// A Fork is a running copy of a server, as it is shown to clients.
type Fork struct {
	metav1.TypeMeta `json:",inline"`
	ForkSpec
	// Path is the prefix of all paths of the fork.
	Path    string       `json:"path"`
	Created metav1.Time  `json:"created"`
	By      string       `json:"by"`
	Expires *metav1.Time `json:"expires,omitempty"`
	// Replayed is the progress of a replay.
	Replayed *ForkProgress `json:"replayed,omitempty"`
}

// A Copy is a server over a copy of the store.
type Copy interface {
	// Serve serves a request, and returns false if the copy is stopped.
	Serve(w http.ResponseWriter, r *http.Request) bool
	// Revision is that of the state that the copy began with.
	Revision() int64
	// Replayed returns the progress of its replay; nil for none.
	Replayed() *ForkProgress
	Stop(context.Context) error
}

// Forks are the copies of a server. They are served below its paths.
type Forks struct {
	start func(ctx context.Context, spec *ForkSpec, path string) (Copy, error)
	log   *slog.Logger

	mu     sync.Mutex
	all    map[string]*fork
	closed bool
}

// A fork is being started while it has no copy.
type fork struct {
	Fork
	copy    Copy
	expires *time.Timer // nil for never
}

// NewForks returns no forks. start starts one, whose paths begin with path.
func NewForks(start func(ctx context.Context, spec *ForkSpec, path string) (Copy, error), log *slog.Logger) *Forks {
	return &Forks{start: start, log: log, all: map[string]*fork{}}
}

// elsewhere returns the fork of the path of a request, and the path in it.
func (f *Forks) elsewhere(path string) (c Copy, rest string, ok bool) {
	name, rest, ok := strings.Cut(strings.TrimPrefix(path, forksRoot), "/")
	if !ok {
		return nil, "", false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if found := f.all[name]; found != nil && found.copy != nil {
		return found.copy, "/" + rest, true
	}
	return nil, "", false
}

// serve serves the requests of forks, and returns false for others.
func (f *Forks) serve(w http.ResponseWriter, r *http.Request) bool {
	if f == nil || !strings.HasPrefix(r.URL.Path, forksRoot) {
		return false
	}
	c, path, ok := f.elsewhere(r.URL.Path)
	if !ok {
		return false
	}
	inside := *r
	u := *r.URL
	u.Path = path
	if u.RawPath != "" {
		u.RawPath = u.RawPath[len(r.URL.Path)-len(path):] // names of forks have no escapes
	}
	inside.URL = &u
	return c.Serve(w, &inside)
}

// ServeHTTP serves the list of forks, and each of them as an object.
func (f *Forks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, forksPath), "/")
	if missing, _, below := strings.Cut(name, "/"); below {
		request.Fail(w, r, errNoFork(missing))
		return
	}
	var answer any
	var err error
	code := http.StatusOK
	switch {
	case r.Method == http.MethodGet && name == "":
		answer = f.list()
	case r.Method == http.MethodGet:
		answer, err = f.get(name)
	case r.Method == http.MethodPost && name == "":
		code = http.StatusCreated
		answer, err = f.create(w, r)
	case r.Method == http.MethodDelete && name != "":
		if err = f.Delete(r.Context(), name); err == nil {
			request.AnswerStatus(w, r, metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{Name: name, Kind: forkResource.Resource}})
			return
		}
	case name == "":
		request.Allows(w, r, http.MethodGet, http.MethodPost)
		return
	default:
		request.Allows(w, r, http.MethodGet, http.MethodDelete)
		return
	}
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// A forkList is the answer to a list.
type forkList struct {
	metav1.TypeMeta `json:",inline"`
	Items           []Fork `json:"items"`
}

func (f *Forks) list() forkList {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := forkList{TypeMeta: metav1.TypeMeta{Kind: "ForkList", APIVersion: forkVersion}, Items: []Fork{}}
	for _, found := range f.all {
		if found.copy != nil {
			list.Items = append(list.Items, found.shown())
		}
	}
	sort.SliceStable(list.Items, func(i, k int) bool { return list.Items[i].Name < list.Items[k].Name })
	return list
}

var forkResource = schema.GroupResource{Group: "fork.anykind.dev", Resource: "forks"}

func (f *Forks) get(name string) (Fork, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if found := f.all[name]; found != nil && found.copy != nil {
		return found.shown(), nil
	}
	return Fork{}, errNoFork(name)
}

// shown returns the fork for a client, with the progress of its replay.
func (f *fork) shown() Fork {
	shown := f.Fork
	shown.Replayed = f.copy.Replayed()
	return shown
}

func errNoFork(name string) error { return status.NotFound(forkResource, name) }

func (f *Forks) create(w http.ResponseWriter, r *http.Request) (Fork, error) {
	spec, err := readFork(w, r)
	if err != nil {
		return Fork{}, err
	}
	made, _, err := f.Make(r.Context(), spec, request.From(r.Context()).User.Name)
	return made, err
}

// Make makes a fork for a user.
func (f *Forks) Make(ctx context.Context, spec *ForkSpec, by string) (Fork, Copy, error) {
	if err := spec.complete(); err != nil {
		return Fork{}, nil, err
	}
	made := &fork{Fork: Fork{
		TypeMeta: metav1.TypeMeta{Kind: "Fork", APIVersion: forkVersion},
		ForkSpec: *spec, Path: forksRoot + spec.Name, Created: metav1.Now(), By: by,
	}}
	if err := f.reserve(made); err != nil {
		return Fork{}, nil, err
	}
	c, err := f.start(ctx, spec, made.Path)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		delete(f.all, spec.Name)
		return Fork{}, nil, err
	case f.closed:
		return Fork{}, nil, errors.Join(errStopping, c.Stop(context.Background()))
	}
	made.copy, made.ResourceVersion = c, strconv.FormatInt(c.Revision(), 10)
	if life := spec.Lifetime.Duration; life > 0 {
		at := metav1.NewTime(made.Created.Add(life))
		made.Expires = &at
		made.expires = time.AfterFunc(life, func() {
			if err := f.removeIf(context.Background(), spec.Name, made); err != nil {
				f.log.Warn("a fork could not be deleted after its lifetime", "fork", spec.Name, "error", err)
			}
		})
	}
	return made.shown(), c, nil
}

var errStopping = status.Unavailable("the server is shutting down")

// reserve takes the name of a fork.
func (f *Forks) reserve(made *fork) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return errStopping
	case f.all[made.Name] != nil:
		return status.AlreadyExists(forkResource, made.Name)
	case len(f.all) >= maxForks:
		return status.Limited(fmt.Sprintf("the server has %d forks, which is the limit: delete some", maxForks))
	}
	f.all[made.Name] = made
	return nil
}

// readFork reads the body of a request for a new fork.
func readFork(w http.ResponseWriter, r *http.Request) (*ForkSpec, error) {
	var spec ForkSpec
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForkSpec))
	if err == nil {
		err = json.Unmarshal(body, &spec)
	}
	if err != nil {
		return nil, status.BadRequest(`the body is no object such as {"name":"x"}: %v`, err)
	}
	return &spec, nil
}

// complete validates a spec, and sets its defaults.
func (s *ForkSpec) complete() error {
	s.Webhooks = cmp.Or(s.Webhooks, WebhooksDryRun)
	switch {
	case s.Name == "":
		return status.BadRequest("name: Required value: the name of the fork")
	case len(validation.IsDNS1123Label(s.Name)) > 0:
		return status.BadRequest("name: Invalid value: %q: %s", s.Name, validation.IsDNS1123Label(s.Name)[0])
	case s.Webhooks != WebhooksNone && s.Webhooks != WebhooksDryRun:
		return status.BadRequest("webhooks: Unsupported value: %q: supported values: %q, %q", s.Webhooks, WebhooksDryRun, WebhooksNone)
	case s.AsOf != nil && s.ResourceVersion != "":
		return status.BadRequest("asOf: Forbidden: together with resourceVersion")
	case s.Replay != nil && !(s.Replay.Speed >= 0):
		return status.BadRequest("replay.speed: Invalid value: %v: must not be negative", s.Replay.Speed)
	case s.Lifetime.Duration < 0:
		return status.BadRequest("lifetime: Invalid value: %q: must not be negative", s.Lifetime.Duration)
	case s.ResourceVersion == "":
		return nil
	}
	if n, err := strconv.ParseInt(s.ResourceVersion, 10, 64); err != nil || n <= 0 {
		return status.BadRequest("resourceVersion: Invalid value: %q: must be the resourceVersion of an object or a list", s.ResourceVersion)
	}
	return nil
}

// Delete stops and removes a fork.
func (f *Forks) Delete(ctx context.Context, name string) error { return f.removeIf(ctx, name, nil) }

// removeIf deletes a fork if it is the expected one; nil expects any.
func (f *Forks) removeIf(ctx context.Context, name string, expected *fork) error {
	f.mu.Lock()
	found := f.all[name]
	if found == nil || found.copy == nil || expected != nil && found != expected {
		f.mu.Unlock()
		return errNoFork(name)
	}
	delete(f.all, name)
	f.mu.Unlock()
	return found.end(ctx)
}

// end stops the copy, if there is one.
func (f *fork) end(ctx context.Context) error {
	if f.expires != nil {
		f.expires.Stop()
	}
	if f.copy == nil {
		return nil
	}
	return f.copy.Stop(ctx)
}

// Stop stops all forks.
func (f *Forks) Stop(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	all := f.all
	f.all = map[string]*fork{}
	f.mu.Unlock()
	var errs []error
	for _, found := range all {
		errs = append(errs, found.end(ctx))
	}
	return errors.Join(errs...)
}
