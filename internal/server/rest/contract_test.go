package rest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/object"
)

// The table "List and watch" of docs/reliability.md, cell by cell, as a client sees it. Other
// tests check single cells more closely; the index in that page names them.

// A cell is a request and its answer according to the table. In the query, FIRST is a revision
// with a and b, NOW that of the last write, c, and FUTURE one that does not exist yet. TOKEN
// continues a list of one object at FIRST.
type cell struct {
	query string
	code  int
	want  string // the names in the answer, or the message
}

func (c cell) of(r *strings.Replacer) cell {
	return cell{r.Replace(c.query), c.code, r.Replace(c.want)}
}

// contract returns a server with the objects of the table, and a Replacer for the revisions.
func contract(t *testing.T) (*server, *strings.Replacer) {
	s := newServer(t)
	first := s.make("a", "b")
	token := fmt.Sprint(listMeta(s.get(leads + "?limit=1"))["continue"])
	now := s.make("c")
	return s, strings.NewReplacer("FIRST", first, "NOW", now, "FUTURE", "999", "TOKEN", token)
}

func TestContractGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, revisions := contract(t)
		for _, c := range []cell{
			{"", 200, "c"},                       // most recent
			{"?resourceVersion=0", 200, "c"},     // any
			{"?resourceVersion=FIRST", 200, "c"}, // not older than N
			{"?resourceVersion=NOW", 200, "c"},
			{"?resourceVersion=FUTURE", 504, "Timeout: Too large resource version: FUTURE, current: NOW"},
			{"?resourceVersion=x", 500, `resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`},
		} {
			c = c.of(revisions)
			a := s.get(leads + "/c" + c.query)
			if c.code != 200 {
				a.message(c.code, c.want)
				continue
			}
			if name := object.Name(a.is(200).tree()); name != c.want {
				t.Errorf("%s: %s, want %s", c.query, name, c.want)
			}
		}
	})
}

func TestContractList(t *testing.T) {
	const (
		needsRevision = `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`
		notContinued  = `resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided`
		unsupported   = `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""`
		exactZero     = `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`
		future        = "Timeout: Too large resource version: FUTURE, current: NOW"
		continued     = "specifying resource version is not allowed when using continue"
	)
	synctest.Test(t, func(t *testing.T) {
		s, revisions := contract(t)
		for _, c := range []cell{
			// No resourceVersion: most recent.
			{"", 200, "a b c"},
			{"?limit=2", 200, "a b"},
			{"?resourceVersionMatch=Exact", 422, needsRevision},
			{"?resourceVersionMatch=NotOlderThan", 422, needsRevision},
			// "0": any.
			{"?resourceVersion=0", 200, "a b c"},
			{"?resourceVersion=0&limit=2", 200, "a b"},
			{"?resourceVersion=0&resourceVersionMatch=NotOlderThan", 200, "a b c"},
			{"?resourceVersion=0&resourceVersionMatch=Exact", 422, exactZero},
			// N without a match: not older; with limit: exact.
			{"?resourceVersion=FIRST", 200, "a b c"},
			{"?resourceVersion=NOW", 200, "a b c"},
			{"?resourceVersion=FUTURE", 504, future},
			{"?resourceVersion=FIRST&limit=9", 200, "a b"},
			{"?resourceVersion=FUTURE&limit=9", 504, future},
			// N with a match.
			{"?resourceVersion=FIRST&resourceVersionMatch=NotOlderThan", 200, "a b c"},
			{"?resourceVersion=FIRST&resourceVersionMatch=NotOlderThan&limit=9", 200, "a b c"},
			{"?resourceVersion=FIRST&resourceVersionMatch=Exact", 200, "a b"},
			{"?resourceVersion=FIRST&resourceVersionMatch=Exact&limit=1", 200, "a"},
			{"?resourceVersion=NOW&resourceVersionMatch=Exact", 200, "a b c"},
			{"?resourceVersion=FIRST&resourceVersionMatch=Newest", 422, unsupported},
			// List and continue: the token's snapshot, whatever other parameters there are.
			{"?continue=TOKEN", 200, "b"},
			{"?continue=TOKEN&resourceVersion=0", 200, "b"},
			{"?continue=TOKEN&resourceVersion=FIRST", 400, continued},
			{"?continue=TOKEN&resourceVersion=FIRST&resourceVersionMatch=Exact", 422, `ListOptions.meta.k8s.io "" is invalid: ` + notContinued},
			{"?continue=TOKEN&resourceVersionMatch=Exact", 422,
				strings.Replace(needsRevision, "resourceVersionMatch: ", "[resourceVersionMatch: ", 1) + ", " + notContinued + "]"},
			{"?sendInitialEvents=true", 422, `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list`},
		} {
			c = c.of(revisions)
			a := s.get(leads + c.query)
			if c.code != 200 {
				a.message(c.code, c.want)
				continue
			}
			if names := a.is(200).names(); names != c.want {
				t.Errorf("%s: %s, want %s", c.query, names, c.want)
			}
		}
	})
}

func TestContractWatch(t *testing.T) {
	const (
		match  = "&resourceVersionMatch=NotOlderThan"
		begin  = "&sendInitialEvents=true" + match
		marked = begin + "&allowWatchBookmarks=true"
	)
	s, revisions := contract(t)
	for _, c := range []cell{
		// Synthetic ADDED, then on; "0": the same.
		{"?watch=1", 200, "ADDED a, ADDED b, ADDED c, ADDED last"},
		{"?watch=1&resourceVersion=0", 200, "ADDED a, ADDED b, ADDED c, ADDED last"},
		// N: strictly after N.
		{"?watch=1&resourceVersion=FIRST", 200, "ADDED c, ADDED last"},
		{"?watch=1&resourceVersion=NOW", 200, "ADDED last"},
		// Initial events end with an annotated bookmark.
		{"?watch=1" + marked, 200, "ADDED a, ADDED b, ADDED c, BOOKMARK true, ADDED last"},
		{"?watch=1&resourceVersion=FIRST" + marked, 200, "ADDED a, ADDED b, ADDED c, BOOKMARK true, ADDED last"},
		{"?watch=1&resourceVersion=FIRST" + begin, 200, "ADDED a, ADDED b, ADDED c, ADDED last"},
		{"?watch=1&resourceVersion=FIRST&sendInitialEvents=false" + match, 200, "ADDED c, ADDED last"},
		{"?watch=1&sendInitialEvents=true", 422, `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`},
		{"?watch=1&resourceVersion=FIRST" + match, 422, `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided`},
	} {
		c = c.of(revisions)
		if c.code != 200 {
			s.get(leads+c.query).message(c.code, c.want)
			continue
		}
		next := s.watch(leads + c.query)
		s.make("last")
		var events []string
		for e := next(); ; e = next() {
			events = append(events, e)
			if e == "" || e == "ADDED last" {
				break
			}
		}
		if got := strings.Join(events, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
		s.delete(leads+"/last", "").is(200)
	}
}
