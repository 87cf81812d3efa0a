// Package search finds objects of every kind by their text, for consoles that search while their user types.
//
// An Index is values in, values out: it knows texts of documents, and neither requests nor rights. A Searcher has an
// Index while clients search, and serves the page. A document is one state of an object. Dictionaries have each
// distinct text once, with the documents that have it. Most objects repeat the texts of others, so the dictionaries
// are much smaller than the objects. A query scans the chunks of the dictionaries that may have the trigrams of the word:
// about 0.1 ms a megabyte. An index of the parts of texts would be several times larger than the texts.
//
// The first search builds the index in the background: first the names and labels of all objects, from the
// watch cache, and then the texts, one object at a time. Meanwhile, searches use the part that exists. From then on
// the index follows the feed. A changed object is added as another document, and a result is dropped if its revision
// is not the present one. When most documents may be of earlier states, a new index replaces the old one. Some
// minutes after the last search, the index is dropped, and its goroutine ends.
//
// A search loads every kind into the watch cache, as a list of it does. The objects of aggregated API servers
// are not searched: this server has neither them nor their changes. The data of Secrets is never
// indexed. Their annotations may have a copy of it, and are not indexed either.
package search

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Options of a Searcher.
type Options struct {
	Cache      *watchcache.Cache
	Catalog    *resource.Catalog
	Authorizer authz.Authorizer
	Objects    Viewer
	// Idle is the time after the last search for which the index is kept; 0 is DefaultIdle.
	Idle time.Duration
	Log  *slog.Logger
}

// A Viewer returns an object in a version.
type Viewer interface {
	View(context.Context, *resource.Definition, *resource.Version, *watchcache.Object) (object.Encoded, error)
}

// DefaultIdle is the default of Options.Idle.
const DefaultIdle = 5 * time.Minute

const (
	maxQuery     = 256 // bytes
	defaultLimit = 50
	maxLimit     = 200
)

// A Searcher serves searches. It has no goroutine and no index while there are none.
type Searcher struct {
	options Options
	running sync.WaitGroup

	mu      sync.Mutex
	session *session // nil while there are no searches
	idle    *time.Timer
	closed  bool
}

// New returns a Searcher.
func New(o Options) *Searcher {
	if o.Idle == 0 {
		o.Idle = DefaultIdle
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Searcher{options: o}
}

// Close ends the use of the store.
func (s *Searcher) Close(context.Context) error {
	s.mu.Lock()
	s.closed = true
	if s.session != nil {
		s.drop()
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// use returns the session. It begins one if there is none.
func (s *Searcher) use() (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, status.Unavailable("the server is shutting down")
	}
	if s.session == nil {
		s.session = newSession(&s.options)
		s.running.Go(s.session.run)
		s.idle = time.AfterFunc(s.options.Idle, s.expire)
	}
	s.session.used = time.Now()
	s.idle.Reset(s.options.Idle)
	return s.session, nil
}

// expire drops the session, unless a search has used it just now.
func (s *Searcher) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil && time.Since(s.session.used) >= s.options.Idle {
		s.drop()
	}
}

// drop ends the session. It needs s.mu.
func (s *Searcher) drop() {
	s.idle.Stop()
	s.session.end()
	s.session, s.idle = nil, nil
}

// ServeHTTP answers with the objects that have all words of the query.
func (s *Searcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !request.Allows(w, r, http.MethodGet) {
		return
	}
	words, limit, err := parse(r.URL.Query())
	var found *Results
	if err == nil {
		found, err = s.Search(r.Context(), words, limit)
	}
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(found)
}

// parse returns the words and the limit of a request.
func parse(query url.Values) (words []string, limit int, err error) {
	q := query.Get("q")
	words = Words(q)
	if len(q) > maxQuery || len(words) == 0 || len(words) > maxWords || !utf8.ValidString(q) {
		return nil, 0, status.BadRequest("q: Invalid value: must be 1 to %d words of at most %d bytes together, in UTF-8", maxWords, maxQuery)
	}
	limit, err = request.Limit(query, defaultLimit, maxLimit)
	return words, limit, err
}

// Search returns the objects with all words that the user of a request may list.
func (s *Searcher) Search(ctx context.Context, words []string, limit int) (*Results, error) {
	in, err := s.use()
	if err != nil {
		return nil, err
	}
	revision, err := s.options.Cache.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	x, complete := in.current(ctx, revision)
	r := &Results{Kind: "SearchResults", APIVersion: "search.anykind.dev/v1", Items: []*Item{}, Indexing: !complete}
	a := &answer{Options: &s.options, Results: r, ctx: ctx, words: words, limit: limit, set: s.options.Catalog.Set(), sources: map[*Kind]*source{}}
	x.Find(words, a.may, a.add)
	return r, ctx.Err()
}
