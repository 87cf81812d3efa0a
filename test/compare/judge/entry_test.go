package judge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An entry may cover a class of differences, and covers no others.
func TestPattern(t *testing.T) {
	const words = "theirs   /500 <nil>: (unknown patch type: .*|expected a .*)/\nours     /422 Invalid: (.*)/"
	long := strings.Repeat("x", 200)
	code := func(theirs, ours string) Signature {
		return Signature{"patch", "things", "code", Shape(theirs), Shape(ours)}
	}
	for _, tt := range []struct {
		name, says string
		found      Signature
		want       bool
	}{
		{"the same words", words, code("500 <nil>: unknown patch type: a", "422 Invalid: unknown patch type: a"), true},
		{"other words of the class", words, code("500 <nil>: expected a list", "422 Invalid: expected a list"), true},
		{"the same words, cut off", words, code("500 <nil>: unknown patch type: "+long, "422 Invalid: unknown patch type: "+long), true},
		{"words that differ before they are cut off", words, code("500 <nil>: unknown patch type: "+long, "422 Invalid: unknown patch type: y"+long), false},
		{"words that one side goes on with", words, code("500 <nil>: unknown patch type: a", "422 Invalid: unknown patch type: ab"), false},
		{"words of no class", words, code("500 <nil>: something else", "422 Invalid: something else"), false},
		{"another code of theirs", words, code("400 <nil>: unknown patch type: a", "422 Invalid: unknown patch type: a"), false},
		{"another code of ours", words, code("500 <nil>: unknown patch type: a", "400 BadRequest: unknown patch type: a"), false},
		{"no error of ours", words, code("500 <nil>: unknown patch type: a", "200"), false},
		{"the class inside of more", words, code("x 500 <nil>: unknown patch type: a", "422 Invalid: unknown patch type: a"), false},
		{"another request", words, Signature{"put", "things", "code", "500 <nil>: expected a list", "422 Invalid: expected a list"}, false},
		{"another place", words, Signature{"patch", "things", "body", "500 <nil>: expected a list", "422 Invalid: expected a list"}, false},
		{"one of several places", words, Signature{"patch", "things", "message", "500 <nil>: expected a list", "422 Invalid: expected a list"}, true},
		{"all that theirs says after its prefix", "theirs   /500 x: (.*)/\nours     /(.*)/", code("500 x: a", "a"), true},
		{"something else", "theirs   /500 x: (.*)/\nours     /(.*)/", code("500 x: a", "b"), false},
		{"a pattern and a text", "theirs   /500 .*/\nours     200", code("500 <nil>: a", "200"), true},
		{"a pattern and another text", "theirs   /500 .*/\nours     200", code("500 <nil>: a", "201"), false},
		{"a text is no pattern", "theirs   500 .*\nours     200", code("500 <nil>: a", "200"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := parse("request  patch\nresource things\nplace    code, message\n" + tt.says + "\noften    1\nbecause  of it")
			if err != nil {
				t.Fatal(err)
			}
			if got := (Known{e}).Has(tt.found); got != tt.want {
				t.Errorf("%s\nknown: %v, want %v", tt.found, got, tt.want)
			}
		})
	}
}

func TestBadPattern(t *testing.T) {
	for name, says := range map[string]string{
		"no expression":       "theirs   /500 (/\nours     200",
		"anything":            "theirs   /.*/\nours     200",
		"one or anything":     "theirs   /500 a|.*/\nours     200",
		"a group of one side": "theirs   /500 (.*)/\nours     200",
	} {
		if _, err := parse("request  patch\nresource any\nplace    code\n" + says + "\noften    1\nbecause  of it"); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// An entry for any resource names specific messages.
func TestUnboundedPattern(t *testing.T) {
	for _, tt := range []struct {
		resource, theirs, ours string
		want                   bool
	}{
		{"any", "/422 Invalid: .*/", "200", false},
		{"any", "200", "/(?:404 NotFound|500 <nil>): .*/", false},
		{"any", "/422 Invalid: spec.*/", "200", true},
		{"any", "/422 Invalid: (.*)/", "/400 BadRequest: (.*)/", true},
		{"things", "/422 Invalid: .*/", "200", true},
	} {
		_, err := parse("request  patch\nresource " + tt.resource + "\nplace    code\ntheirs   " + tt.theirs + "\nours     " + tt.ours + "\noften    1\nbecause  of it")
		if got := err == nil; got != tt.want {
			t.Errorf("%s, %s and %s are taken: %v, want %v", tt.resource, tt.theirs, tt.ours, got, tt.want)
		}
	}
}

// The name of a group covers each request with its verb.
func TestGroups(t *testing.T) {
	for request, kinds := range map[string]string{
		"any patch": "merge-patch, status json-patch, body patch, define patch",
		"any apply": "apply, status apply, body patch",
		"any put":   "put, put with resourceVersion, status put",
		"any post":  "post, post with managedFields, body post",
		"any list":  "list, list with limit, list and resourceVersion 0",
	} {
		e := &Entry{Signature: Signature{Request: request}}
		for _, all := range []string{"merge-patch", "status json-patch", "body patch", "define patch", "apply", "status apply", "put", "put with resourceVersion",
			"status put", "post", "post with managedFields", "body post", "list", "list with limit", "list and resourceVersion 0", "get", "delete", "output"} {
			if got := e.asks(all); got != in(kinds, all) {
				t.Errorf("%s has %s: %v", request, all, got)
			}
		}
	}
}

// The length of a list is limited.
func TestTooManyEntries(t *testing.T) {
	var list strings.Builder
	for i := range mostKnown + 1 {
		fmt.Fprintf(&list, "request  patch\nresource things\nplace    code\ntheirs   %d\nours     200\noften    1\nbecause  of it\n\n", i)
	}
	path := filepath.Join(t.TempDir(), "known.txt")
	if err := os.WriteFile(path, []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKnown(path); err == nil {
		t.Error("a long list is taken")
	}
}

// The place of an entry may be a pattern.
func TestPlaces(t *testing.T) {
	e, err := parse("request  get\nresource services\nplace    /body\\..*clusterIP/\ntheirs   a\nours     b\noften    1\nbecause  of it")
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]bool{"body.spec.clusterIP": true, "body.items[].spec.clusterIP": true, "body.spec.clusterIPs": false, "event.body.spec.clusterIP": false} {
		if got := (Known{e}).Has(Signature{"get", "services", place, "a", "b"}); got != want {
			t.Errorf("%s is known: %v, want %v", place, got, want)
		}
	}
}

// A class is gone if none of its differences occurs, as a single difference is.
func TestClassIsGone(t *testing.T) {
	e, err := parse("request  patch\nresource things\nplace    code\ntheirs   /500 .*/\nours     /422 .*/\noften    5\nbecause  of it")
	if err != nil {
		t.Fatal(err)
	}
	known := Known{e}
	if len(known.Gone(map[string]int{"patch": 5})) != 1 {
		t.Error("not gone, though never seen")
	}
	known.Match(Signature{"patch", "things", "code", "500 a", "422 b"})
	if len(known.Gone(map[string]int{"patch": 5})) != 0 {
		t.Error("gone, though it was seen")
	}
}
