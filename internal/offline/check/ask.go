package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
)

// An Answer is the response to a request.
type Answer struct {
	Code     int
	Body     []byte
	Warnings []string
}

// Ask sends a request to a handler.
func Ask(ctx context.Context, server http.Handler, method, path, contentType string, body []byte) (Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	r.Header.Set("User-Agent", "anykind")
	r.Header.Set("Accept", "application/json")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := &recorder{header: http.Header{}}
	server.ServeHTTP(w, r)
	a := Answer{Code: cmp.Or(w.code, http.StatusOK), Body: w.body.Bytes()}
	for _, h := range w.header.Values("Warning") {
		a.Warnings = append(a.Warnings, Unquote(h))
	}
	return a, ctx.Err()
}

// Unquote returns the text of a Warning header.
func Unquote(header string) string {
	_, text, _ := strings.Cut(header, `"`)
	text = strings.TrimSuffix(text, `"`)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text)
}

// A recorder records a response.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
}
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// status decodes the Status of an error response.
func (a *Answer) status() metav1.Status {
	var s metav1.Status
	if json.Unmarshal(a.Body, &s) != nil || s.Kind != "Status" {
		s.Message = strings.TrimSpace(string(a.Body))
	}
	return s
}

// A kind is a served kind: its definition and a version.
type kind struct {
	definition *resource.Definition
	version    *resource.Version
}

// kinds are the served kinds, by name.
type kinds map[kindName]*resource.Definition

// learn reads the served kinds.
func (c *checker) learn() {
	k := kindsOf(c.server)
	c.kinds.Store(&k)
}

func kindsOf(server *app.Offline) kinds {
	k := kinds{}
	for d := range server.Definitions().All() {
		if d.Allows("create") {
			k[kindName{Group: d.Group, Kind: d.Kind}] = d
		}
	}
	return k
}

// errNoKind reports a missing definition of a kind.
var errNoKind = errors.New("no definition")

// find returns the kind of an object.
func (c *checker) find(d *Document) (kind, error) {
	gvk := schema.FromAPIVersionAndKind(object.APIVersion(d.tree), object.Kind(d.tree))
	if c.gone[gvk.GroupKind()] {
		return kind{}, &noKindError{gvk}
	}
	if definition := (*c.kinds.Load())[gvk.GroupKind()]; definition != nil {
		if v := definition.Version(gvk.Version); v != nil && v.Served {
			return kind{definition, v}, nil
		}
	}
	return kind{}, fmt.Errorf("%w", &noKindError{gvk})
}

// A noKindError is errNoKind with the message of kubectl.
type noKindError struct{ schema.GroupVersionKind }

func (e *noKindError) Error() string {
	return fmt.Sprintf("no matches for kind %q in version %q", e.Kind, e.GroupVersion())
}
func (e *noKindError) Unwrap() error { return errNoKind }

// identify returns the identity of a document's object.
func (c *checker) identify(k kind, d *Document) identity {
	namespace := ""
	if k.definition.Namespaced {
		namespace = c.namespaceOf(d)
	}
	return d.identity(namespace)
}

// namespaceOf returns the namespace of an object of a namespaced kind.
func (c *checker) namespaceOf(d *Document) string {
	return cmp.Or(object.Namespace(d.tree), c.o.Namespace, metav1.NamespaceDefault)
}

// path returns the path of an object in a version, or of the collection if it has no name.
func path(d *resource.Definition, version string, id identity, query url.Values) string {
	p := "/apis/" + d.Group + "/" + version
	if d.Group == "" {
		p = "/api/" + version
	}
	if d.Namespaced {
		p += "/namespaces/" + url.PathEscape(id.namespace)
	}
	p += "/" + d.Plural
	if id.name != "" {
		p += "/" + url.PathEscape(id.name)
	}
	if len(query) > 0 {
		p += "?" + query.Encode()
	}
	return p
}

// A Question is a request for the verdict on an object.
type Question struct {
	Method, Path, ContentType string
	Body                      []byte
}

// ask requests the verdict on an object and records it in r.
func (c *checker) ask(ctx context.Context, d *Document, r *Result, dryRun bool) error {
	defer d.place(r)
	if d.broken != nil {
		r.Verdict, r.Message = Unknown, d.broken.Error()
		r.Problems = []Problem{{Message: strings.TrimPrefix(strings.TrimPrefix(r.Message, "error converting YAML to JSON: "), "yaml: ")}}
		return nil
	}
	k, err := c.find(d)
	if err != nil {
		if c.o.PassUnknown {
			r.Verdict = Passed
			return nil
		}
		r.Verdict, r.Message = Unknown, err.Error()
		r.Problems = []Problem{{Field: "kind", Message: err.Error()}}
		return nil
	}
	id := c.identify(k, d)
	r.Namespace = id.namespace
	query := url.Values{"fieldManager": {"anykind"}, "fieldValidation": {cmp.Or(c.o.Validation, metav1.FieldValidationStrict)}}
	if dryRun {
		query.Set("dryRun", metav1.DryRunAll)
	}
	q := Question{Method: http.MethodPost, ContentType: d.media.String(), Body: d.body}
	if old := c.before(d, id); old != nil && id.name != "" {
		r.Update, r.old = true, old
		q.Method = http.MethodPut
		if q.ContentType, q.Body, err = c.update(ctx, k, id, d); err != nil {
			return err
		}
	}
	target := id
	if q.Method == http.MethodPost {
		target.name = ""
	}
	q.Path = path(k.definition, k.version.Name, target, query)
	a, err := Ask(ctx, c.server, q.Method, q.Path, q.ContentType, q.Body)
	if err != nil {
		return err
	}
	if c.o.Observe != nil {
		c.o.Observe(q, a)
	}
	r.note(a)
	if k.version.Creater != nil {
		r.answer = nil // a virtual kind: the response depends on users and rights
	}
	if !r.isStrict() {
		return nil
	}
	// A strict error hides all other errors, so a second request finds those.
	query.Set("fieldValidation", metav1.FieldValidationIgnore)
	query.Set("dryRun", metav1.DryRunAll)
	a, err = Ask(ctx, c.server, q.Method, path(k.definition, k.version.Name, target, query), q.ContentType, q.Body)
	var besides Result
	besides.note(a)
	r.Problems = append(r.Problems, besides.Problems...)
	return err
}

// before returns the stored object that a document updates, or nil.
func (c *checker) before(d *Document, id identity) object.Tree {
	if d.before != nil {
		return d.before
	}
	if old := c.old[id]; old != nil {
		return old.tree
	}
	return nil
}

// update returns the request body that replaces the stored object.
func (c *checker) update(ctx context.Context, k kind, id identity, d *Document) (contentType string, body []byte, err error) {
	if len(d.duplicates) > 0 && cmp.Or(c.o.Validation, metav1.FieldValidationStrict) == metav1.FieldValidationStrict {
		return d.media.String(), d.body, nil // duplicate fields are an error, and exist only in the original text
	}
	a, err := Ask(ctx, c.server, http.MethodGet, path(k.definition, k.version.Name, id, nil), "", nil)
	if err != nil {
		return "", nil, err
	}
	t := object.CloneTree(d.tree)
	if old := a.tree(); old != nil {
		object.SetMetaString(t, "resourceVersion", object.ResourceVersion(old))
		if object.UID(old) == anyUID {
			object.SetMetaString(t, "uid", "")
		}
	}
	return codec.JSON.String(), object.AppendJSON(nil, t), nil
}

// tree returns the object of a successful response, or nil.
func (a *Answer) tree() object.Tree {
	if a.Code >= http.StatusBadRequest {
		return nil
	}
	t, _, _ := codec.Decode(codec.JSON, a.Body)
	return t
}

// noField is the field of a cause for the whole object.
const noField = "<nil>"

// note records a response.
func (r *Result) note(a Answer) {
	for _, w := range a.Warnings {
		r.Warnings = append(r.Warnings, Problem{Field: quotedField(w), Message: w})
	}
	if a.Code < http.StatusBadRequest {
		r.Verdict, r.answer = Accepted, a.Body
		return
	}
	r.answer = nil
	s := a.status()
	r.Verdict, r.Code, r.Reason, r.Message = Refused, a.Code, string(s.Reason), s.Message
	if s.Details != nil && s.Reason == metav1.StatusReasonInvalid {
		for _, c := range s.Details.Causes {
			r.Problems = append(r.Problems, Problem{Field: strings.TrimPrefix(c.Field, noField), Type: string(c.Type), Message: c.Message})
		}
	}
	if len(r.Problems) == 0 {
		r.Problems = strictProblems(s.Message)
	}
	if len(r.Problems) == 0 {
		r.Problems = []Problem{{Field: goField(s.Message), Message: s.Message}}
	}
}
