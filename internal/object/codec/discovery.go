package codec

import (
	"net/http"

	"github.com/anykind/anykind/internal/object/status"
)

// AcceptDocument chooses the Format of an answer that is not an object and has no wrapper. The
// error is a 406.
func AcceptDocument(r *http.Request) (Format, error) {
	f, ok := negotiate(r, func(c Clause, m Media) (Format, bool) {
		f, ok := clauseFormat(c, m)
		return f, ok && f.As == Whole && c.Params["sv"] == ""
	})
	if !ok {
		return Format{}, status.NotAcceptable(OfferTo(r).names()...)
	}
	return f, nil
}

// AcceptAs chooses the Format of an answer that clients request by group, version and kind. It
// returns false if the client does not request it.
func AcceptAs(r *http.Request, group, version, kind string) (Format, bool) {
	f, _, ok := AcceptProfile(r, group, version, kind)
	return f, ok
}

// AcceptProfile is AcceptAs, and returns the profile in the clause that the client is answered by.
func AcceptProfile(r *http.Request, group, version, kind string) (f Format, profile string, ok bool) {
	if r.Header.Get("Accept") == "" {
		return Format{}, "", false
	}
	f, ok = negotiate(r, func(c Clause, m Media) (Format, bool) {
		asked := c.Params["g"] == group && c.Params["v"] == version && c.Params["as"] == kind && c.Params["sv"] == ""
		if asked {
			profile = c.Params["profile"]
		}
		return Format{Media: m, Pretty: c.Params["pretty"] == "1"}, asked
	})
	return f, profile, ok
}

// AcceptsPage reports whether the client prefers HTML, as browsers do. A wildcard does not count.
func AcceptsPage(r *http.Request) bool {
	clauses := ParseAccept(r.Header.Get("Accept"))
	return len(clauses) > 0 && clauses[0].Type == "text" && clauses[0].Subtype == "html"
}
