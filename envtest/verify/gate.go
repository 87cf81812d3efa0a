package verify

import (
	"bytes"
	"cmp"
	"context"
	"hash/crc32"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/envtest"
	"github.com/anykind/anykind/internal/object/request"
)

// A gate holds each request of the program, except discovery and writes of Events, and each event of its watches, until the
// scheduler lets it pass. It is an envtest.Effect for all requests of the program.
type gate struct {
	mu      sync.Mutex
	waiting []*call
	passed  map[*call]bool // requests that the server handles, but for watches
	streams []*stream
	round   int           // number of times that the scheduler looked
	arrived chan struct{} // has an element if something came since the scheduler looked
}

func newGate() *gate { return &gate{arrived: make(chan struct{}, 1), passed: map[*call]bool{}} }

// A call is a held request.
type call struct {
	info    request.Info
	request *http.Request
	round   int // of its arrival
	arrived time.Time
	key     string // the same in each run
	verdict chan verdict
	respond chan struct{} // closed when the response may be sent; nil for at once
	status  int           // of the response; 0 without one
	gone    bool          // the program no longer waits for the response. Guarded by gate.mu.
}

// A verdict is the decision about a call.
type verdict int

const (
	pass    verdict = iota // handle the request
	lose                   // handle it and close the connection without a response
	die                    // handle it and send nothing until the program is dead
	hangUp                 // close the connection
	fail                   // respond with 500
	clash                  // respond with 409
	noBegin                // reject a watch that begins with a list
	tooOld                 // reject a watch of a revision that is compacted
)

func (g *gate) effect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := request.InfoOf(r)
		if isBeside(info) {
			next.ServeHTTP(w, r)
			return
		}
		c := g.hold(r, info)
		defer g.handled(c)
		var v verdict
		select {
		case v = <-c.verdict:
		case <-r.Context().Done():
			g.leave(c)
			panic(http.ErrAbortHandler)
		}
		c.answer(g, v, next, w)
	})
}

// answer handles the call as decided.
func (c *call) answer(g *gate, v verdict, next http.Handler, w http.ResponseWriter) {
	switch v {
	case die:
		next.ServeHTTP(&discard{c: c, header: http.Header{}}, c.request)
		g.handled(c)
		<-c.request.Context().Done()
		panic(http.ErrAbortHandler)
	case lose:
		next = envtest.LoseAnswer()(next)
	case hangUp:
		next = envtest.HangUp()(next)
	case fail:
		next = envtest.Refuse(apierrors.NewInternalError(errInjected))(next)
	case clash:
		next = envtest.Conflict()(next)
	case tooOld:
		next = envtest.Expired()(next)
	case noBegin:
		next = envtest.Refuse(apierrors.NewBadRequest("sendInitialEvents is not supported"))(next)
	}
	if v == pass && c.info.IsWatch() {
		ctx, cancel := context.WithCancel(c.request.Context())
		defer cancel()
		s := g.open(c, w, cancel)
		defer g.closed(s)
		next.ServeHTTP(s, c.request.WithContext(ctx))
		return
	}
	next.ServeHTTP(&recorder{w, c, g}, c.request)
}

// isBeside reports whether a request concerns no object of a state: it writes an Event, or reads discovery. It passes at once,
// because clients hold a mutex meanwhile: a bubble would stop for good if another goroutine waited for that mutex.
func isBeside(i request.Info) bool {
	return isEvent(i) && slices.Contains([]string{"create", "update", "patch"}, i.Verb) || !i.IsResource
}

func isEvent(i request.Info) bool {
	return i.Resource == "events" && (i.Group == "" || i.Group == "events.k8s.io")
}

// hold adds a request to the waiting ones.
func (g *gate) hold(r *http.Request, info request.Info) *call {
	asJSON(r)
	c := &call{info: info, request: r, arrived: time.Now(), verdict: make(chan verdict, 1)}
	query := r.URL.Query()
	query.Del("timeoutSeconds") // random in informers
	query.Del("timeout")
	c.key = strings.Join([]string{c.info.Verb, r.URL.Path, query.Encode()}, " ")
	c.fixTimeout()
	g.mu.Lock()
	defer g.mu.Unlock()
	c.round = g.round
	g.waiting = append(g.waiting, c)
	g.signal()
	return c
}

// shortestWatch is the least timeoutSeconds of an informer. The greatest one is less than its double.
const shortestWatch = 300

// fixTimeout makes a watch of an informer end at the same time in each run. An informer draws timeoutSeconds, and the draw depends
// on the order of goroutines, so a hash of the request replaces it.
func (c *call) fixTimeout() {
	query := c.request.URL.Query()
	if n, err := strconv.Atoi(query.Get("timeoutSeconds")); err != nil || n < shortestWatch || n >= 2*shortestWatch || !c.info.IsWatch() {
		return
	}
	query.Set("timeoutSeconds", strconv.Itoa(shortestWatch+int(crc32.ChecksumIEEE([]byte(c.key))%shortestWatch)))
	c.request.URL.RawQuery = query.Encode()
}

// asJSON makes the request accept JSON alone, if the client understands it, and not compressed: events of watches are read
// here.
func asJSON(r *http.Request) {
	r.Header.Del("Accept-Encoding")
	var kept []string
	for _, accepted := range strings.Split(r.Header.Get("Accept"), ",") {
		switch accepted = strings.TrimSpace(accepted); {
		case strings.HasPrefix(accepted, "application/json"):
			kept = append(kept, accepted)
		case accepted == "*/*":
			kept = append(kept, "application/json")
		}
	}
	if len(kept) > 0 {
		r.Header.Set("Accept", strings.Join(kept, ","))
	}
}

func (g *gate) forget(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(c)
}

// remove is forget with g.mu held.
func (g *gate) remove(c *call) {
	g.waiting = slices.DeleteFunc(g.waiting, func(o *call) bool { return o == c })
}

// leave notes that the program no longer waits for a response.
func (g *gate) leave(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(c)
	c.gone = true
}

// left reports whether the program no longer waits for a response.
func (g *gate) left(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return c.gone
}

// asked reports whether a request waits.
func (g *gate) asked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting) > 0
}

// listen empties arrived. The scheduler looks at all that has come, and then waits.
func (g *gate) listen() {
	select {
	case <-g.arrived:
	default:
	}
}

// signal wakes the scheduler.
func (g *gate) signal() {
	select {
	case g.arrived <- struct{}{}:
	default:
	}
}

func (g *gate) open(c *call, w http.ResponseWriter, cancel context.CancelFunc) *stream {
	s := &stream{
		gate: g, call: c, out: w, cancel: cancel,
		initial: c.request.URL.Query().Get("sendInitialEvents") == "true",
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.passed, c)
	g.streams = append(g.streams, s)
	return s
}

func (g *gate) closed(s *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.over = true
	g.streams = slices.DeleteFunc(g.streams, func(o *stream) bool { return o == s })
}

// watched reports whether there is a watch of each of the resources.
func (g *gate) watched(resources map[string]bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	missing := maps.Clone(resources)
	for _, s := range g.streams {
		delete(missing, s.resource())
	}
	return len(missing) == 0
}

// endWatches ends all watches, one after the other, and returns their resources.
func (g *gate) endWatches(c clock) (resources map[string]bool) {
	g.mu.Lock()
	streams := slices.Clone(g.streams)
	g.mu.Unlock()
	slices.SortStableFunc(streams, func(a, b *stream) int { return cmp.Compare(a.call.key, b.call.key) })
	resources = map[string]bool{}
	for _, s := range streams {
		resources[s.resource()] = true
		g.end(s)
		c.wait(g)
	}
	return resources
}

// pending returns the streams with events and the waiting calls. Those that wait since an earlier round come
// first; the order within a round depends on the requests alone. In a bubble, no goroutine may run.
func (g *gate) pending() (calls []*call, streams []*stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.round++
	calls = slices.Clone(g.waiting)
	for _, s := range g.streams {
		if len(s.events) > 0 && !s.ended {
			streams = append(streams, s)
		}
	}
	slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.key, b.key)) })
	slices.SortStableFunc(streams, func(a, b *stream) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.call.key, b.call.key))
	})
	return calls, streams
}

// decide lets a call go on.
func (g *gate) decide(c *call, v verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(c)
	if !c.gone && !slices.Contains(connections, c.info.Subresource) {
		g.passed[c] = true
	}
	c.verdict <- v
}

// end ends a watch. Its remaining events are lost.
func (g *gate) end(s *stream) {
	g.closed(s)
	s.cancel()
}

// drop ends all requests and watches: those of a program that is dead. A server notices that a connection is closed some
// time after the end of a process.
func (g *gate) drop() {
	g.mu.Lock()
	calls, streams := slices.Clone(g.waiting), slices.Clone(g.streams)
	g.mu.Unlock()
	for _, c := range calls {
		g.decide(c, hangUp)
	}
	for _, s := range streams {
		g.end(s)
	}
}

// handled notes that the server has executed a request.
func (g *gate) handled(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.passed, c)
}

// passing reports whether the server handles a request that passed.
func (g *gate) passing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.passed) > 0
}

// A stream is the response of a watch. The events wait in it.
type stream struct {
	gate    *gate
	call    *call
	out     http.ResponseWriter
	cancel  context.CancelFunc
	initial bool // the events until the end of the initial list come at once

	// Guarded by gate.mu.
	events  [][]byte
	round   int    // of the arrival of the first event
	rest    []byte // of an incomplete event
	ended   bool
	over    bool // nothing is sent any more
	started bool // the header is sent
}

// Header implements http.ResponseWriter.
func (s *stream) Header() http.Header { return s.out.Header() }

// WriteHeader implements http.ResponseWriter.
func (s *stream) WriteHeader(code int) {
	s.call.status = code
	s.out.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (s *stream) Unwrap() http.ResponseWriter { return s.out }

// Write implements http.ResponseWriter. It cuts the bytes into events.
func (s *stream) Write(p []byte) (int, error) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	data := append(s.rest, p...)
	for {
		event, rest, complete := bytes.Cut(data, []byte("\n"))
		if !complete {
			break
		}
		if len(s.events) == 0 {
			s.round = s.gate.round
		}
		s.events = append(s.events, append(bytes.Clone(event), '\n'))
		data = rest
	}
	s.rest = bytes.Clone(data)
	s.gate.signal()
	return len(p), nil
}

// Flush implements http.Flusher. It sends the header only.
func (s *stream) Flush() {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if !s.started {
		s.started = true
		_ = http.NewResponseController(s.out).Flush()
	}
}

// waiting returns the events that wait.
func (s *stream) waiting() [][]byte {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.events
}

// deliver sends the first n events.
func (s *stream) deliver(n int) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if s.over {
		return
	}
	for _, e := range s.events[:n] {
		_, _ = s.out.Write(e)
	}
	s.events, s.started, s.round = s.events[n:], true, s.gate.round
	_ = http.NewResponseController(s.out).Flush()
}

// expired is the event by which a server ends a watch of a revision that it no longer has.
const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
	`"message":"too old resource version","reason":"Expired","code":410}}` + "\n"

// expire drops the events and ends the watch: the client has to list again.
func (s *stream) expire() {
	s.gate.mu.Lock()
	s.events, s.ended = [][]byte{[]byte(expired)}, true
	s.gate.mu.Unlock()
	s.deliver(1)
	s.cancel()
}

// A recorder records the status of a response, and delays it.
type recorder struct {
	http.ResponseWriter
	call *call
	gate *gate
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	r.begin(code)
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	if r.call.status == 0 {
		r.begin(http.StatusOK)
	}
	return r.ResponseWriter.Write(p)
}

func (r *recorder) begin(code int) {
	r.call.status = code
	if r.call.respond == nil {
		return
	}
	r.gate.handled(r.call)
	select {
	case <-r.call.respond:
	case <-r.call.request.Context().Done(): // the program is dead, or the run ended before
	}
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// discard records the status of a response that nothing receives.
type discard struct {
	c      *call
	header http.Header
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(code int)        { d.c.status = code }
func (d *discard) Flush()                      {}

// isWrite reports whether a fault can be at this request. Leases and events are no part of a state.
func (c *call) isWrite() bool {
	i := c.info
	switch {
	case i.Verb == "get" || i.Verb == "list" || i.Verb == "watch":
		return false
	case isEvent(i) || i.Resource == "leases" && i.Group == "coordination.k8s.io":
		return false
	case slices.Contains(connections, i.Subresource):
		return false
	case i.Group == "authorization.k8s.io" || i.Group == "authentication.k8s.io":
		return false
	}
	return c.request.URL.Query().Get("dryRun") == ""
}

// connections are subresources with long requests that change no object.
var connections = []string{"attach", "exec", "log", "portforward", "proxy"}

// String names the request: the verb, the resource and the object.
func (c *call) String() string {
	resource := c.info.Resource
	if c.info.Subresource != "" {
		resource += "/" + c.info.Subresource
	}
	name := strings.Trim(c.info.Namespace+"/"+c.info.Name, "/")
	return strings.TrimSpace(strings.Join([]string{c.info.Verb, resource, name}, " "))
}

// resource returns the name of the watched resource in a Fault.
func (s *stream) resource() string { return s.call.resource() }

func (c *call) resource() string {
	if g := c.info.Group; g != "" {
		return c.info.Resource + "." + g
	}
	return c.info.Resource
}
