package judge

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/test/compare/wire"
)

const scope = "s00001x00z"

func answer(code int, body string) *wire.Answer {
	return &wire.Answer{Code: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
}

// object returns an object with a uid, a revision, and additional fields.
func object(uid, revision, more string) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","metadata":{"name":%q,"uid":%q,"resourceVersion":%q}%s}`, scope, uid, revision, more)
}

const (
	uidA = "11111111-2222-3333-4444-555555555555"
	uidB = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
)

// differences normalizes and compares the responses of two servers in order, and returns the places of
// the differences in the last one.
func differences(theirs, ours []*wire.Answer, sent ...string) []string {
	t, o := NewServer(scope), NewServer(scope)
	for _, s := range []*Server{t, o} {
		for _, body := range sent {
			s.Sent(wire.Step{Path: "/p?force=true", Body: []byte(body)})
		}
	}
	var out []string
	for i := range theirs {
		out = nil
		for _, d := range Compare(t.Normal(theirs[i]), o.Normal(ours[i])) {
			out = append(out, d.Place)
		}
	}
	return out
}

// Values that servers choose are no difference; all other values are.
func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name         string
		theirs, ours []*wire.Answer
		sent         string
		want         string
	}{
		{"the same object", []*wire.Answer{answer(200, object(uidA, "7", ""))}, []*wire.Answer{answer(200, object(uidB, "123", ""))}, "", ""},
		{"changed by both", []*wire.Answer{answer(200, object(uidA, "7", "")), answer(200, object(uidA, "9", ""))},
			[]*wire.Answer{answer(200, object(uidB, "123", "")), answer(200, object(uidB, "124", ""))}, "", ""},
		{"changed by one only", []*wire.Answer{answer(200, object(uidA, "7", "")), answer(200, object(uidA, "7", ""))},
			[]*wire.Answer{answer(200, object(uidB, "123", "")), answer(200, object(uidB, "124", ""))}, "", "body.metadata.resourceVersion"},
		{"another object", []*wire.Answer{answer(200, object(uidA, "7", "")), answer(200, object(uidB, "8", ""))},
			[]*wire.Answer{answer(200, object(uidB, "7", "")), answer(200, object(uidB, "8", ""))}, "", "body.metadata.resourceVersion body.metadata.uid"},
		{"a field more", []*wire.Answer{answer(200, object(uidA, "7", `,"data":{"a":"b"}`))}, []*wire.Answer{answer(200, object(uidB, "7", ""))}, "", "body.data"},
		{"null is not nothing", []*wire.Answer{answer(200, `{"a":null}`)}, []*wire.Answer{answer(200, `{}`)}, "", "body.a"},
		{"1.0 is not 1", []*wire.Answer{answer(200, `{"a":1.0}`)}, []*wire.Answer{answer(200, `{"a":1}`)}, "", "body.a"},
		{"what follows from another code", []*wire.Answer{answer(404, `{"kind":"Status","reason":"NotFound"}`)}, []*wire.Answer{answer(200, `{"a":1}`)}, "", "code"},
		{"causes in another order", []*wire.Answer{status2("a", "b")}, []*wire.Answer{status2("b", "a")}, "", ""},
		{"a message in another order", []*wire.Answer{answer(422, `{"kind":"Status","message":"T \"x\" is invalid: [a[0]: no, b: no]"}`)},
			[]*wire.Answer{answer(422, `{"kind":"Status","message":"T \"x\" is invalid: [b: no, a[0]: no]"}`)}, "", ""},
		{"a message of another mistake", []*wire.Answer{answer(422, `{"kind":"Status","message":"T \"x\" is invalid: [a[0]: no, b: no]"}`)},
			[]*wire.Answer{answer(422, `{"kind":"Status","message":"T \"x\" is invalid: [c: no, a[0]: no]"}`)}, "", "message"},
		{"a type that was made up", []*wire.Answer{answer(422, `{"kind":"Status","message":"no size of 'selfType123'"}`)},
			[]*wire.Answer{answer(422, `{"kind":"Status","message":"no size of 'selfType0'"}`)}, "", ""},
		{"another cause", []*wire.Answer{status2("a", "c")}, []*wire.Answer{status2("a", "b")}, "", "cause cause"},
		{"a patch that one rejects as a whole", []*wire.Answer{rejected("no")}, []*wire.Answer{status2("a", "b")}, "", "cause"},
		{"a patch that the other one rejects as a whole", []*wire.Answer{status2("a", "b")}, []*wire.Answer{rejected("no")}, "", "cause"},
		{"a patch that both reject as a whole", []*wire.Answer{rejected("no")}, []*wire.Answer{rejected("never")}, "", "words of a cause"},
		{"names that are made up", []*wire.Answer{answer(201, `{"metadata":{"name":"web-x2b4c"}}`)}, []*wire.Answer{answer(201, `{"metadata":{"name":"web-zzzzz"}}`)}, `{"generateName":"web-"}`, ""},
		{"names that are not", []*wire.Answer{answer(201, `{"metadata":{"name":"web-x2b4c"}}`)}, []*wire.Answer{answer(201, `{"metadata":{"name":"web-zzzzz"}}`)}, ``, "body.metadata.name"},
		{"an address", []*wire.Answer{answer(200, `{"clusterIP":"10.0.0.1"}`)}, []*wire.Answer{answer(200, `{"clusterIP":"10.9.9.9"}`)}, "", ""},
		{"an address that was asked for", []*wire.Answer{answer(200, `{"clusterIP":"10.0.0.1"}`)}, []*wire.Answer{answer(200, `{"clusterIP":"10.9.9.9"}`)}, `"10.0.0.1"`, "body.clusterIP"},
		{"one without an address", []*wire.Answer{answer(200, `{"clusterIP":"None"}`)}, []*wire.Answer{answer(200, `{"clusterIP":"10.9.9.9"}`)}, "", "body.clusterIP"},
		{"a time that was sent", []*wire.Answer{answer(200, `{"t":"2001-01-01T00:00:00Z"}`)}, []*wire.Answer{answer(200, `{"t":"2001-01-01T00:00:01Z"}`)}, "", "body.t"},
		{"revisions in messages", []*wire.Answer{answer(200, object(uidA, "71", "")), answer(409, `{"kind":"Status","message":"the ResourceVersion in the precondition (71)"}`)},
			[]*wire.Answer{answer(200, object(uidB, "99", "")), answer(409, `{"kind":"Status","message":"the ResourceVersion in the precondition (99)"}`)}, "", ""},
		{"other numbers in messages", []*wire.Answer{answer(200, object(uidA, "71", "")), answer(409, `{"kind":"Status","message":"no more than 71 bytes"}`)},
			[]*wire.Answer{answer(200, object(uidB, "63", "")), answer(409, `{"kind":"Status","message":"no more than 63 bytes"}`)}, "", "message"},
		{"an object in a message", []*wire.Answer{answer(409, `{"kind":"Status","message":"Invalid value: \"{\\\"b\\\":1,\\\"a\\\":2}\": x"}`)},
			[]*wire.Answer{answer(409, `{"kind":"Status","message":"Invalid value: \"{\\\"a\\\":2,\\\"b\\\":1}\": x"}`)}, "", ""},
		{"an object in single quotes", []*wire.Answer{answer(422, `{"kind":"Status","message":"Object 'Kind' is missing in '{\"b\":\"it's\",\"a\":2}'"}`)},
			[]*wire.Answer{answer(422, `{"kind":"Status","message":"Object 'Kind' is missing in '{\"a\":2,\"b\":\"it's\"}'"}`)}, "", ""},
		{"another object in single quotes", []*wire.Answer{answer(422, `{"kind":"Status","message":"Object 'Kind' is missing in '{\"b\":1,\"a\":2}'"}`)},
			[]*wire.Answer{answer(422, `{"kind":"Status","message":"Object 'Kind' is missing in '{\"a\":1,\"b\":1}'"}`)}, "", "message"},
		{"resources in another order", []*wire.Answer{answer(200, `{"kind":"APIResourceList","resources":[{"name":"a"},{"name":"b"}]}`)},
			[]*wire.Answer{answer(200, `{"kind":"APIResourceList","resources":[{"name":"b"},{"name":"a"}]}`)}, "", ""},
		{"items in another order", []*wire.Answer{answer(200, `{"items":[{"name":"a"},{"name":"b"}]}`)},
			[]*wire.Answer{answer(200, `{"items":[{"name":"b"},{"name":"a"}]}`)}, "", "body.items[].name body.items[].name"},
		{"no answer", []*wire.Answer{{Failed: "stream reset"}}, []*wire.Answer{answer(200, `{}`)}, "", "answer"},
		{"ages", []*wire.Answer{answer(200, `{"rows":[{"cells":["a","3s"]}]}`)}, []*wire.Answer{answer(200, `{"rows":[{"cells":["a","1m2s"]}]}`)}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(differences(tt.theirs, tt.ours, tt.sent), " "); got != tt.want {
				t.Errorf("differ in %q, want %q", got, tt.want)
			}
		})
	}
}

// status2 returns a Status with two invalid fields.
func status2(a, b string) *wire.Answer {
	return answer(422, fmt.Sprintf(`{"kind":"Status","reason":"Invalid","message":"[%s: no, %s: no]","details":{"causes":[{"field":%[1]q,"reason":"R","message":"no"},{"field":%[2]q,"reason":"R","message":"no"}]}}`, a, b))
}

// rejected returns a Status about a patch as a whole.
func rejected(words string) *wire.Answer {
	return answer(422, fmt.Sprintf(`{"kind":"Status","reason":"Invalid","message":"patch: %s","details":{"causes":[{"field":"patch","reason":"R","message":%[1]q}]}}`, words))
}

// Times from servers are equal; their formats are not.
func TestTimes(t *testing.T) {
	s := NewServer(scope)
	if got := s.text("2001-01-01T00:00:00Z"); got != "2001-01-01T00:00:00Z" {
		t.Errorf("a time of a client is %q", got)
	}
	now := time.Now()
	for layout, want := range map[string]string{"2006-01-02T15:04:05Z": "TIME-0", "2006-01-02T15:04:05.000000Z": "TIME-6"} {
		if got := s.text(now.UTC().Format(layout)); got != want {
			t.Errorf("now as %s is %q, want %q", layout, got, want)
		}
	}
}

func TestHeaders(t *testing.T) {
	answers := func(header http.Header) *Normal {
		return NewServer(scope).Normal(&wire.Answer{Code: 200, Header: header})
	}
	theirs := answers(http.Header{"Date": {"x"}, "Audit-Id": {"1"}, "Warning": {"299 - a", "299 - b"}, "Etag": {"1"}, "Cache-Control": {"no-cache, private"}})
	ours := answers(http.Header{"Date": {"y"}, "Warning": {"299 - b", "299 - a"}, "Etag": {"2"}, "Cache-Control": {"no-store"}})
	var places []string
	for _, d := range Compare(theirs, ours) {
		places = append(places, d.Place)
	}
	if got := strings.Join(places, " "); got != "header Cache-Control" {
		t.Errorf("differ in %q", got)
	}
}

// A signature has no values that differ between sequences.
func TestSignature(t *testing.T) {
	signature := func(name string) Signature {
		theirs := answer(404, fmt.Sprintf(`{"kind":"Status","reason":"NotFound","message":"things \"%s\" not found"}`, name))
		ours := answer(200, `{}`)
		d := Compare(NewServer(scope).Normal(theirs), NewServer(scope).Normal(ours))
		if len(d) != 1 {
			t.Fatalf("found %v", d)
		}
		return d[0].Signature(wire.Step{Kind: "get", Resource: "things"})
	}
	want := Signature{"get", "things", "code", `404 NotFound: things "" not found`, "200"}
	if got := signature("a"); got != want || signature("b2") != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Numbers have one shape, and so do 0 and -0. A minus has its own.
func TestShapeOfNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`value: -0`: `value: N`, `{"a":-0}: x`: `{"":N}: x`, `[1,-0]`: `[N,N]`, `value: 0`: `value: N`,
		`value: -1`: `value: -N`, `value: -0.5`: `value: -N.N`, `pod-0`: `pod-N`,
	} {
		if got := Shape(text); got != want {
			t.Errorf("%s has the shape %s, want %s", text, got, want)
		}
	}
}

func TestKnown(t *testing.T) {
	read := func(text string) (Known, error) {
		path := filepath.Join(t.TempDir(), "known.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadKnown(path)
	}
	known, err := read("# a comment\n\nrequest  get, list\nresource any\nplace    code\ntheirs   404 x\nours     200\noften    3\nbecause  of it\n")
	if err != nil {
		t.Fatal(err)
	}
	match := Signature{"list", "things", "code", "404 x", "200"}
	for _, other := range []Signature{{"put", "things", "code", "404 x", "200"}, {"list", "things", "code", "404 y", "200"}, {"list", "things", "code", "404 x", "201"}, {"list", "things", "body", "404 x", "200"}} {
		if known.Has(other) {
			t.Errorf("%+v is taken for known", other)
		}
	}
	if gone := known.Gone(map[string]int{"list": 2}); len(gone) > 0 {
		t.Error("gone, though hardly sent")
	}
	if gone := known.Gone(map[string]int{"list": 2, "get": 1}); len(gone) != 1 {
		t.Error("not gone, though sent often")
	}
	if known.Match(match) == nil || len(known.Gone(map[string]int{"list": 9})) > 0 {
		t.Error("not found, or gone though it was seen")
	}
	for _, bad := range []string{"request x", "bogus x", "request x\nplace y\noften 0\nbecause z", "request x\nplace y\noften 2"} {
		if _, err := read(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// A watch that fails has one difference in its error, not one in each field of a Status. A watch from a revision that one
// server has forgotten has a place of its own.
func TestEvents(t *testing.T) {
	fail := func(code int, reason string) map[string]any {
		return map[string]any{"type": "ERROR", "object": map[string]any{"kind": "Status", "code": code, "reason": reason, "message": "words"}}
	}
	failed, expired := fail(500, "InternalError"), fail(410, "Expired")
	added := map[string]any{"type": "ADDED", "object": map[string]any{"kind": "ConfigMap", "data": map[string]any{}}}
	for _, tt := range []struct {
		name         string
		theirs, ours []any
		want         string
	}{
		{"one fails", []any{failed}, []any{added}, `event: ERROR 500 InternalError: words | ADDED {"data":{},"kind":"ConfigMap"}`},
		{"one fails, one says nothing", []any{failed}, nil, `an event more: ERROR 500 InternalError: words | `},
		{"one has forgotten", []any{expired}, []any{added}, `forgotten: ERROR 410 Expired: words | ADDED {"data":{},"kind":"ConfigMap"}`},
		{"one forgets later", []any{added, expired}, []any{added}, `an event more: ERROR 410 Expired: words | `},
		{"both fail", []any{failed}, []any{failed}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			for _, d := range Compare(&Normal{Events: tt.theirs}, &Normal{Events: tt.ours}) {
				got += fmt.Sprintf("%s: %s | %s", d.Place, d.Theirs, d.Ours)
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// Each server compacts at a time of its own: one may have the revision of a request that the other has forgotten.
func TestExpired(t *testing.T) {
	gone := &Normal{Code: 410, Body: map[string]any{"kind": "Status", "reason": "Expired", "message": "words"}}
	for _, tt := range []struct {
		theirs, ours *Normal
		place        string
	}{
		{gone, &Normal{Code: 200}, Forgotten},
		{&Normal{Code: 200}, gone, Forgotten},
		{gone, &Normal{Code: 404}, "code"},
		{&Normal{Code: 410}, &Normal{Code: 200}, "code"},
	} {
		if got := Compare(tt.theirs, tt.ours); len(got) != 1 || got[0].Place != tt.place {
			t.Errorf("%d and %d: %v", tt.theirs.Code, tt.ours.Code, got)
		}
	}
}
