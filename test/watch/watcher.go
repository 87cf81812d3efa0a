package watch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/anykind/anykind/test/process"
)

// accepts are the media types of watchers.
var accepts = []string{
	"application/json",
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
	"application/json;as=Table;g=meta.k8s.io;v=v1",
}

// A watcher watches one selection, story after story, over connections that break.
type watcher struct {
	random *rand.Rand
	api    process.API
	ready  func(context.Context) error
	ledger *ledger
	of     selection
	accept string
	start  int64         // a revision before all writes
	steady bool          // it has a single story, so that one watcher has seen all events
	final  chan int64    // gets the revision that it must see before it ends
	end    int64         // that revision, once known
	begun  chan struct{} // closed when the first story has begun

	stories  []*story
	sessions int
}

// run watches until the end. Its error is a violation.
func (w *watcher) run(ctx context.Context) error {
	defer w.api.Client.CloseIdleConnections()
	for first := true; ; first = false {
		if err := w.ready(ctx); err != nil {
			return err
		}
		s := &story{of: w.of, begins: beginning(w.random.IntN(5)), floor: w.ledger.reached(w.of.kind)}
		if w.steady {
			s.begins = fromRevision
		}
		ended, err := w.tell(ctx, s, first)
		if len(s.items)+len(s.events) > 0 {
			w.stories = append(w.stories, s)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
		if ended {
			s.whole = true
			return nil
		}
	}
}

// tell follows one story, and reports whether it is complete.
func (w *watcher) tell(ctx context.Context, s *story, first bool) (bool, error) {
	query := url.Values{}
	switch s.begins {
	case fromList:
		if err := w.list(ctx, s); err != nil {
			return false, ignoreLost(err)
		}
		if w.over(s.revision) {
			return true, nil
		}
		query.Set("resourceVersion", strconv.FormatInt(s.revision, 10))
	case fromRevision:
		s.revision = w.start
		if now := w.ledger.reached(w.of.kind); !w.steady && now > w.start {
			s.revision = now - w.random.Int64N(min(now-w.start, 5000))
		}
		query.Set("resourceVersion", strconv.FormatInt(s.revision, 10))
	case fromAny:
		s.floor = 0
		query.Set("resourceVersion", "0")
	case streamed:
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", "NotOlderThan")
		query.Set("allowWatchBookmarks", "true")
		if w.random.IntN(2) == 0 {
			query.Set("resourceVersion", strconv.FormatInt(s.floor, 10))
		}
	}
	if first {
		close(w.begun)
	}
	for {
		ended, err := w.session(ctx, s, query)
		if ended || err != nil {
			return ended, err
		}
		from, ok := s.resumable()
		if !ok || !w.steady && w.random.IntN(16) == 0 {
			return false, nil // from scratch
		}
		if err := w.ready(ctx); err != nil {
			return false, err
		}
		query = url.Values{"resourceVersion": {strconv.FormatInt(from, 10)}}
		if w.random.IntN(4) == 0 {
			query.Set("sendInitialEvents", "false")
			query.Set("resourceVersionMatch", "NotOlderThan")
		}
	}
}

// resumable returns the revision at which a story can resume. A story with initial events cannot
// resume before all of them are known to have arrived.
func (s *story) resumable() (int64, bool) {
	from := s.revision
	known := s.begins == fromList || s.begins == fromRevision
	for _, o := range s.events {
		known = known || o.last || s.begins != streamed && o.what != added
		from = max(from, o.revision)
	}
	return from, known
}

// selectors adds the selection to a query.
func (w *watcher) selectors(query url.Values) {
	if w.of.labels != "" {
		query.Set("labelSelector", w.of.labels)
	}
	if fields := w.of.fields(); fields != "" {
		query.Set("fieldSelector", fields)
	}
}

// session follows a story over one connection.
func (w *watcher) session(ctx context.Context, s *story, query url.Values) (ended bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.sessions++
	w.selectors(query)
	query.Set("watch", "true")
	if w.random.IntN(2) == 0 {
		query.Set("allowWatchBookmarks", "true")
	}
	if unmarked := s.begins == fromNow || s.begins == fromAny; unmarked || w.random.IntN(3) > 0 {
		query.Set("timeoutSeconds", strconv.Itoa(1+w.random.IntN(4)))
	}
	remaining := 1 << 30 // events before the connection is broken
	if w.random.IntN(2) == 0 {
		remaining = w.random.IntN(500)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.api.URL+kinds[w.of.kind].collection(w.of.namespace)+"?"+query.Encode(), nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", w.accept)
	response, err := w.api.Client.Do(r)
	if err != nil {
		return false, lost(ctx)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(response.Body)
		if response.StatusCode >= http.StatusInternalServerError {
			return false, nil // the server is about to stop
		}
		return false, fmt.Errorf("the watch of %v was refused: %s %s", query, response.Status, said)
	}
	lines := bufio.NewReader(response.Body)
	for ; ; remaining-- {
		line, err := lines.ReadBytes('\n')
		if err != nil || remaining == 0 {
			return false, lost(ctx) // a truncated line is no event
		}
		o, err := w.read(line)
		if err == errTrouble {
			return false, lost(ctx)
		}
		if err != nil {
			return false, fmt.Errorf("the watch of %v sent %.500s: %w", query, line, err)
		}
		s.events = append(s.events, o)
		if w.over(o.revision) {
			if _, known := s.resumable(); known {
				return true, nil
			}
		}
	}
}

// over reports whether a revision is at or after the end.
func (w *watcher) over(revision int64) bool {
	select {
	case w.end = <-w.final:
	default:
	}
	return w.end > 0 && revision >= w.end
}

// lost returns nil for a broken connection, which is not a violation, unless the test is over.
func lost(ctx context.Context) error { return ctx.Err() }

func ignoreLost(err error) error {
	if process.Unanswered(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// An event is one line of a watch. Its object has metadata, or is a Table with
// rows that do.
type event struct {
	Type   string `json:"type"`
	Object struct {
		object
		Code int `json:"code"`
		Rows []struct {
			Object object `json:"object"`
		} `json:"rows"`
	} `json:"object"`
}

// errTrouble means that the server ended a watch because of its own failure.
var errTrouble = errors.New("the server is in trouble")

func (w *watcher) read(line []byte) (o observation, err error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return o, err
	}
	if e.Type == "ERROR" && e.Object.Code >= http.StatusInternalServerError {
		return o, errTrouble
	}
	m := e.Object.Metadata
	if len(e.Object.Rows) == 1 {
		m = e.Object.Rows[0].Object.Metadata
	}
	known := slices.Contains([]string{added, modified, gone, bookmark}, e.Type)
	now, err := m.state()
	if err != nil || !known {
		return o, errors.Join(errors.New("which is no event"), err)
	}
	return observation{
		what: e.Type, revision: now.revision, key: key{w.of.kind, m.Namespace, m.Name}, state: now,
		last: m.Annotations["k8s.io/initial-events-end"] == "true",
	}, nil
}

// list begins a story with a list, whole or in chunks.
func (w *watcher) list(ctx context.Context, s *story) error {
	query := url.Values{}
	w.selectors(query)
	if w.random.IntN(2) == 0 {
		query.Set("limit", strconv.Itoa(1+w.random.IntN(20)))
	}
	for {
		var part struct {
			Metadata struct{ ResourceVersion, Continue string }
			Items    []object
		}
		path := kinds[w.of.kind].collection(w.of.namespace)
		if err := w.api.Do(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &part); err != nil {
			s.items = nil
			return err
		}
		revision, err := strconv.ParseInt(part.Metadata.ResourceVersion, 10, 64)
		if err != nil || s.revision != 0 && s.revision != revision {
			return fmt.Errorf("a part of the list at %d has resourceVersion %q", s.revision, part.Metadata.ResourceVersion)
		}
		s.revision = revision
		for _, item := range part.Items {
			now, err := item.Metadata.state()
			if err != nil {
				return err
			}
			s.items = append(s.items, observation{
				what: added, revision: now.revision, key: key{w.of.kind, item.Metadata.Namespace, item.Metadata.Name}, state: now,
			})
		}
		if part.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", part.Metadata.Continue)
	}
}
