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
	if r.Header.Get("Accept") == "" {
		return Format{}, false
	}
	return negotiate(r, func(c Clause, m Media) (Format, bool) {
		asked := c.Params["g"] == group && c.Params["v"] == version && c.Params["as"] == kind
		return Format{Media: m, Pretty: c.Params["pretty"] == "1"}, asked && c.Params["sv"] == ""
	})
}

// AcceptsPage reports whether the client prefers HTML, as browsers do. A wildcard does not count.
func AcceptsPage(r *http.Request) bool {
	clauses := ParseAccept(r.Header.Get("Accept"))
	return len(clauses) > 0 && clauses[0].Type == "text" && clauses[0].Subtype == "html"
}
