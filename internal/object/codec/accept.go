package codec

import (
	"context"
	"mime"
	"net/http"
	"path"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/object/status"
)

// As is the form of objects that a client asks for.
type As int

const (
	Whole As = iota
	Table
	PartialMetadata
	PartialMetadataList
)

// Shape is the shape of an answer.
type Shape int

const (
	One Shape = iota
	List
	Watch
)

// A Format is the form and the media type of an answer.
type Format struct {
	Media Media
	As    As
	// Version of meta.k8s.io, v1 or v1beta1, of the wrapper. Empty if As is Whole.
	Version string
	Pretty  bool
}

// ContentType is the Content-Type of the answer.
func (f Format) ContentType() string { return f.Media.String() }

// StreamContentType is the Content-Type of a watch.
func (f Format) StreamContentType() string {
	if f.Media == JSON {
		return f.Media.String()
	}
	return mediaTypes[f.Media].stream
}

// An Offer has the optional media types of a server. All others are always supported.
type Offer struct {
	CBOR bool
}

type offerKey struct{}

// Context returns a context for the requests of a server with this Offer.
func (o Offer) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, offerKey{}, o)
}

// OfferTo returns the Offer of the server that received the request.
func OfferTo(r *http.Request) Offer {
	o, _ := r.Context().Value(offerKey{}).(Offer)
	return o
}

func (o Offer) has(m Media) bool { return m != CBOR || o.CBOR }

// names returns the media types in Kubernetes' 406 errors.
func (o Offer) names() (out []string) {
	for m, t := range mediaTypes {
		if o.has(Media(m)) {
			out = append(out, t.name)
		}
	}
	return out
}

// streams returns those for watches.
func (o Offer) streams() (out []string) {
	for m, t := range mediaTypes {
		if o.has(Media(m)) && t.stream != "" {
			out = append(out, t.stream)
		}
	}
	return out
}

// RouteOne returns a 406 unless the client accepts one of the produced media types by its full
// name or by */*. Kubernetes routes requests for its own kinds and pages like this, before it
// considers parameters of a media type.
func RouteOne(r *http.Request, produced ...string) error {
	accept := r.Header.Get("Accept")
	if accept == "" {
		return nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		name, _, _ := strings.Cut(clause, ";")
		if name = strings.TrimSpace(name); name == "*/*" || slices.Contains(produced, name) {
			return nil
		}
	}
	return status.NoSuchForm(produced...)
}

// Route is RouteOne for objects that are answered in shape.
func (o Offer) Route(r *http.Request, shape Shape) error {
	if shape == One {
		return RouteOne(r, o.names()...)
	}
	return RouteOne(r, append(o.names(), o.streams()...)...)
}

func (o Offer) unsupported() error { return status.UnsupportedMediaType(o.names()...) }

// Accept chooses the Format of the answer to a request for objects of the view's kind: the first
// clause of the Accept header, by quality, that the server supports. The error is a 406. Fits
// reports whether the answer supports the Format.
func (v *View) Accept(r *http.Request, shape Shape) error {
	f, ok := negotiate(r, func(c Clause, m Media) (Format, bool) {
		f, ok := clauseFormat(c, m)
		return f, ok && (m != Protobuf || f.As != Whole || v.New != nil) && !(v.NoTable && f.As == Table)
	})
	if !ok {
		return status.NotAcceptable(OfferTo(r).names()...)
	}
	if shape == Watch {
		f.Pretty = false
	}
	v.Format, v.offer = f, OfferTo(r)
	return nil
}

// Fits returns an error if an answer in shape cannot have the form that the client asks for.
func (v *View) Fits(shape Shape) error {
	switch as := v.Format.As; {
	case shape == Watch && mediaTypes[v.Format.Media].stream == "":
		return status.NotAcceptable(v.offer.streams()...)
	case shape == List && as == PartialMetadata:
		return wrongWrapper("PartialObjectMetadata", "is a list (*"+v.goType(List)+")")
	case shape != List && as == PartialMetadataList:
		return wrongWrapper("PartialObjectMetadataList", "is not a list (*"+v.goType(One)+")")
	}
	return nil
}

// goType returns the Go type that Kubernetes names in errors.
func (v *View) goType(shape Shape) string {
	name := "unstructured.Unstructured"
	if v.New != nil {
		t := reflect.TypeOf(v.New()).Elem()
		name = path.Base(path.Dir(t.PkgPath())) + "." + t.Name()
	}
	if shape == List {
		name += "List"
	}
	return name
}

func wrongWrapper(asked, found string) error {
	e := status.NotAcceptable()
	e.ErrStatus.Message = "you requested " + asked + ", but the requested object " + found
	return e
}

// AcceptStatus chooses the Format of a Status. A client that accepts no supported media type gets
// indented JSON, and ok is false.
func AcceptStatus(r *http.Request) (f Format, ok bool) {
	f, ok = negotiate(r, func(c Clause, m Media) (Format, bool) {
		f, ok := clauseFormat(c, m)
		return f, ok && f.As == Whole && c.Params["sv"] == ""
	})
	if !ok {
		f = Format{Pretty: true}
	}
	return f, ok
}

// negotiate returns the first Format that fit returns for a clause and a Media.
func negotiate(r *http.Request, fit func(Clause, Media) (Format, bool)) (Format, bool) {
	header := r.Header.Get("Accept")
	if header == "" {
		return Format{Pretty: pretty(r)}, true
	}
	offer := OfferTo(r)
	for _, c := range ParseAccept(header) {
		for m := range mediaTypes {
			if !offer.has(Media(m)) || !c.Matches(mediaTypes[m].major, mediaTypes[m].minor) {
				continue
			}
			if f, ok := fit(c, Media(m)); ok {
				f.Pretty = f.Pretty || pretty(r)
				return f, true
			}
		}
	}
	return Format{}, false
}

func clauseFormat(c Clause, m Media) (Format, bool) {
	f := Format{Media: m, Pretty: c.Params["pretty"] == "1"}
	if s := c.Params["stream"]; s != "" && (s != "watch" || mediaTypes[m].stream == "") {
		return f, false
	}
	if v := c.Params["sv"]; v != "" && v != "v1" {
		return f, false
	}
	as, asked := c.Params["as"]
	group, grouped := c.Params["g"]
	version, versioned := c.Params["v"]
	if !asked && !grouped && !versioned {
		return f, true
	}
	if group != "meta.k8s.io" || version != "v1" && version != "v1beta1" {
		return f, false
	}
	f.Version = version
	switch as {
	case "Table":
		f.As = Table
		return f, m == JSON || m == YAML // cells have no fixed type
	case "PartialObjectMetadata":
		f.As = PartialMetadata
	case "PartialObjectMetadataList":
		f.As = PartialMetadataList
	default:
		return f, false
	}
	return f, true
}

// pretty reports whether the answer is indented: if the query says so, or by default for
// interactive programs.
func pretty(r *http.Request) bool {
	if r.URL != nil && strings.Contains(r.URL.RawQuery, "pretty") {
		if p := r.URL.Query().Get("pretty"); p != "" {
			yes, _ := strconv.ParseBool(p)
			return yes
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// ContentType returns the Media of the request body. The error is a 415.
func (o Offer) ContentType(header string) (Media, error) {
	if header == "" {
		return JSON, nil
	}
	if name, _, err := mime.ParseMediaType(header); err == nil {
		for m := range mediaTypes {
			if mediaTypes[m].name == name && o.has(Media(m)) {
				return Media(m), nil
			}
		}
	}
	return 0, o.unsupported()
}

// A Clause is one alternative of an Accept header.
type Clause struct {
	Type, Subtype string
	Quality       float64
	Params        map[string]string // without q
}

// Matches reports whether the clause accepts a media type, by name or by wildcard.
func (c Clause) Matches(major, minor string) bool {
	switch {
	case c.Type == "*":
		return c.Subtype == "*"
	case c.Type == major:
		return c.Subtype == minor || c.Subtype == "*"
	}
	return false
}

// ParseAccept parses an Accept header into its clauses, most preferred first. Invalid clauses are
// dropped. A quality of 0 does not exclude a type: it only comes last.
func ParseAccept(header string) []Clause {
	var clauses []Clause
	for part := range strings.SplitSeq(header, ",") {
		if c, ok := parseClause(part); ok {
			clauses = append(clauses, c)
		}
	}
	sort.Sort(byWish(clauses))
	return clauses
}

func parseClause(s string) (Clause, bool) {
	media, params, _ := strings.Cut(strings.Trim(s, " "), ";")
	major, minor, _ := strings.Cut(media, "/")
	c := Clause{Type: strings.Trim(major, " "), Subtype: strings.Trim(minor, " "), Quality: 1}
	switch {
	case minor == "" && c.Type == "*":
		c.Subtype = "*"
	case minor == "":
		return c, false
	case strings.Contains(strings.TrimSuffix(minor, "/"), "/"):
		return c, false
	case strings.HasSuffix(minor, "/"):
		c.Subtype = strings.Trim(strings.TrimSuffix(minor, "/"), " ")
	}
	if params == "" {
		return c, true
	}
	c.Params = map[string]string{}
	for param := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(param, "=")
		if first, second, _ := strings.Cut(value, "="); second != "" || value == "" {
			continue
		} else {
			value = first
		}
		if key = strings.Trim(key, " "); key == "q" {
			c.Quality, _ = strconv.ParseFloat(value, 32)
			continue
		}
		c.Params[key] = strings.Trim(value, " ")
	}
	return c, true
}

// byWish sorts clauses as Kubernetes does. A higher quality comes first, and so does a name
// before a wildcard. If these two conflict, the order in the header decides. So this is not a
// strict weak ordering, and another sort algorithm would return another order.
type byWish []Clause

func (s byWish) Len() int      { return len(s) }
func (s byWish) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s byWish) Less(i, j int) bool {
	a, b := &s[i], &s[j]
	return a.Quality > b.Quality || a.Type != "*" && b.Type == "*" || a.Subtype != "*" && b.Subtype == "*"
}
