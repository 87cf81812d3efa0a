package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/object"
)

// A client records when it gets each line. Writes to it may take time.
type client struct {
	*httptest.ResponseRecorder
	began time.Time
	slow  time.Duration
	lines []line
}

// A line is one event of a watch and its time.
type line struct {
	at       time.Duration
	what     string
	name     string
	revision int64
	last     bool // the bookmark at the end of the initial events
}

func (c *client) Write(data []byte) (int, error) {
	time.Sleep(c.slow)
	for text := range strings.Lines(string(data)) {
		var e struct {
			Type   string
			Object object.Tree
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			panic(err)
		}
		revision, _ := strconv.ParseInt(object.ResourceVersion(e.Object), 10, 64)
		annotations, _ := object.Metadata(e.Object)["annotations"].(object.Tree)
		c.lines = append(c.lines, line{time.Since(c.began), e.Type, object.Name(e.Object), revision, annotations["k8s.io/initial-events-end"] == "true"})
	}
	return len(data), nil
}

// follow watches until the watch ends, and returns its events and its duration.
func (s *server) follow(path string, slow time.Duration) ([]line, time.Duration) {
	s.t.Helper()
	c := &client{ResponseRecorder: httptest.NewRecorder(), began: time.Now(), slow: slow}
	s.handler.ServeHTTP(c, httptest.NewRequestWithContext(s.t.Context(), "GET", path, nil))
	if c.Code != 200 {
		s.t.Fatalf("%s: %d", path, c.Code)
	}
	return c.lines, time.Since(c.began)
}

// told returns the types and names of lines.
func told(lines []line) string {
	var out []string
	for _, l := range lines {
		out = append(out, strings.TrimSpace(l.what+" "+l.name))
	}
	return strings.Join(out, ", ")
}

func number(revision string) int64 {
	n, _ := strconv.ParseInt(revision, 10, 64)
	return n
}

// "Bookmarks about every minute": also without any event, and once more shortly before the end,
// so that the client resumes from there.
func TestBookmarks(t *testing.T) { synctest.Test(t, testBookmarks) }

func testBookmarks(t *testing.T) {
	s := newServer(t)
	first := s.make("a")
	go func() {
		time.Sleep(90 * time.Second)
		s.post(hubs, object1("Hub", "elsewhere")).is(201)
		time.Sleep(40 * time.Second)
		s.make("b")
	}()
	lines, took := s.follow(leads+"?watch=1&allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion="+first, 0)
	if told(lines) != "BOOKMARK, BOOKMARK, ADDED b, BOOKMARK" || took != 150*time.Second {
		t.Fatalf("told %s in %v", told(lines), took)
	}
	for i, want := range []line{
		{60 * time.Second, "BOOKMARK", "", number(first), false},
		{120 * time.Second, "BOOKMARK", "", number(first) + 1, false},
		{130 * time.Second, "ADDED", "b", number(first) + 2, false},
		{148 * time.Second, "BOOKMARK", "", number(first) + 2, false},
	} {
		if lines[i] != want {
			t.Errorf("%+v, want %+v", lines[i], want)
		}
	}
	if lines, _ := s.follow(leads+"?watch=1&timeoutSeconds=150&resourceVersion="+first, 0); told(lines) != "ADDED b" {
		t.Errorf("without having asked for bookmarks: %s", told(lines))
	}
}

// A busy watch ends in time, and gets its bookmarks: neither waits for a moment without events.
func TestBusyWatch(t *testing.T) { synctest.Test(t, testBusyWatch) }

func testBusyWatch(t *testing.T) {
	s := newServer(t)
	s.make("a")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			s.merge(leads+"/a", fmt.Sprintf(`{"spec":{"n":%d}}`, i)).is(200)
			time.Sleep(time.Second / 2)
		}
	}()
	defer func() { cancel(); <-done }()
	lines, took := s.follow(leads+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=150", time.Second)
	var marks []time.Duration
	seen := int64(0)
	for _, l := range lines {
		if l.revision < seen || l.what != "BOOKMARK" && l.revision == seen {
			t.Errorf("%+v after revision %d", l, seen)
		}
		seen = l.revision
		if l.what == "BOOKMARK" {
			marks = append(marks, l.at)
		}
	}
	if !lines[1].last {
		t.Errorf("the initial events are not followed by their end: %s", told(lines[:3]))
	}
	if len(marks) < 4 || marks[1] > 65*time.Second || marks[2] > 130*time.Second || took > 152*time.Second {
		t.Errorf("bookmarks after %v, the end after %v", marks, took)
	}
}

// "timeoutSeconds": a watch lasts as long as the client asks for, or half an hour to an hour.
func TestWatchTime(t *testing.T) { synctest.Test(t, testWatchTime) }

func testWatchTime(t *testing.T) {
	s := newServer(t)
	s.make("a")
	for _, tt := range []struct {
		query       string
		least, most time.Duration
	}{
		{"&timeoutSeconds=7", 7 * time.Second, 7 * time.Second},
		{"&timeoutSeconds=7200", 2 * time.Hour, 2 * time.Hour},
		{"", 30 * time.Minute, time.Hour},
		{"&timeoutSeconds=0", 30 * time.Minute, time.Hour},
		{"&timeoutSeconds=-1", 0, 0},
	} {
		if _, took := s.follow(leads+"?watch=1"+tt.query, 0); took < tt.least || took > tt.most {
			t.Errorf("%q: %v, want %v to %v", tt.query, took, tt.least, tt.most)
		}
	}
}

// The rows of the table "List and watch" of the reliability promises, for watches. Each has the
// events for a and b, and later events.
func TestWatchRevisions(t *testing.T) { synctest.Test(t, testWatchRevisions) }

func testWatchRevisions(t *testing.T) {
	s := newServer(t)
	first := s.make("a")
	second := s.make("b")
	later := strconv.FormatInt(number(second)+2, 10)
	// The watch, during which c, d and e are created.
	for _, tt := range []struct {
		sentence, query, want string
	}{
		{"no resourceVersion: synthetic ADDED, then on", "", "ADDED a, ADDED b, ADDED c, ADDED d, ADDED e"},
		{`"0": same, from any`, "resourceVersion=0", "ADDED a, ADDED b, ADDED c, ADDED d, ADDED e"},
		{"N: strictly after N", "resourceVersion=" + first, "ADDED b, ADDED c, ADDED d, ADDED e"},
		{"N: strictly after N", "resourceVersion=" + second, "ADDED c, ADDED d, ADDED e"},
		{"N that is to come: strictly after N", "resourceVersion=" + later, "ADDED e"},
		{"with bookmarks, one ends the synthetic ADDED events", "allowWatchBookmarks=true", "ADDED a, ADDED b, BOOKMARK, ADDED c, ADDED d, ADDED e"},
		{"sendInitialEvents ends with a BOOKMARK", "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true", "ADDED a, ADDED b, BOOKMARK, ADDED c, ADDED d, ADDED e"},
		{"sendInitialEvents ends with a BOOKMARK", "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&resourceVersion=" + second, "ADDED a, ADDED b, BOOKMARK, ADDED c, ADDED d, ADDED e"},
		{"sendInitialEvents=false", "resourceVersionMatch=NotOlderThan&sendInitialEvents=false", "ADDED c, ADDED d, ADDED e"},
		{"sendInitialEvents=false", "resourceVersionMatch=NotOlderThan&sendInitialEvents=false&resourceVersion=" + first, "ADDED b, ADDED c, ADDED d, ADDED e"},
	} {
		s := newServer(t)
		s.make("a", "b")
		go func() {
			time.Sleep(500 * time.Millisecond)
			s.make("c", "d", "e")
		}()
		if lines, _ := s.follow(leads+"?watch=1&timeoutSeconds=1&"+tt.query, 0); told(lines) != tt.want {
			t.Errorf("%s: told %s, want %s", tt.sentence, told(lines), tt.want)
		}
	}
	for _, tt := range []struct {
		query, message string
		code           int
	}{
		{"sendInitialEvents=true", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan", 422},
		{"sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan", 422},
		{"resourceVersionMatch=NotOlderThan", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided", 422},
		{"continue=x", "resourceVersionMatch is forbidden when continue is provided", 422},
		{"resourceVersion=x", `resourceVersion: Invalid value: \"x\"`, 500},
		{"timeoutSeconds=x", `strconv.ParseInt: parsing \"x\": invalid syntax`, 400},
	} {
		s.get(leads+"?watch=1&"+tt.query).is(tt.code, tt.message)
	}
}

// "Future RV: wait 3 s, then Too large resource version with a retry hint": a watch that starts
// with a state of the future gets the error in its stream.
func TestWatchOfTheFuture(t *testing.T) { synctest.Test(t, testWatchOfTheFuture) }

func testWatchOfTheFuture(t *testing.T) {
	s := newServer(t)
	next := strconv.FormatInt(number(s.make("a"))+1, 10)
	query := "?watch=1&timeoutSeconds=5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=" + next
	began := time.Now()
	s.get(leads+query).is(200, `{"type":"ERROR"`, `"message":"Timeout: Too large resource version: `+next, `"retryAfterSeconds":1`, `"code":504`)
	if took := time.Since(began); took != 3*time.Second {
		t.Errorf("said so after %v", took)
	}
	go func() {
		time.Sleep(time.Second)
		s.make("b")
	}()
	if lines, _ := s.follow(leads+query, 0); told(lines) != "ADDED a, ADDED b" {
		t.Errorf("told %s", told(lines))
	}
}
