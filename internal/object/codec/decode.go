package codec

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
)

// Decode reads an object in JSON, YAML or CBOR. duplicates are complaints about
// fields that are there more than once, of which the last counts, in the words
// for a client that wants strict decoding.
//
// JSON and YAML null, and what YAML makes of an empty document, are the nil Tree.
func Decode(m Media, data []byte) (t object.Tree, duplicates []string, err error) {
	if m == YAML && sameAsJSON(data) {
		// Who sends JSON need not wait for YAML, unless a field is there twice,
		// for which YAML has words of its own.
		if t, twice, err := decodeJSON(data); err == nil && len(twice) == 0 {
			return t, nil, nil
		}
	}
	if data, duplicates, err = toJSON(m, data); err != nil {
		return nil, nil, err
	}
	t, more, err := decodeJSON(data)
	if err != nil {
		return nil, nil, err
	}
	return t, append(duplicates, more...), nil
}

// toJSON makes JSON of a document that has no fields but those of the object.
func toJSON(m Media, data []byte) (doc []byte, duplicates []string, err error) {
	switch m {
	case YAML:
		return fromYAML(data)
	case CBOR:
		doc, err = FromCBOR(data)
		return doc, nil, err
	default:
		return data, nil, nil
	}
}

// fromYAML makes JSON of the first document of data. The library behind it
// bounds how deep a document is and how much its aliases may blow it up.
func fromYAML(data []byte) (doc []byte, duplicates []string, err error) {
	doc, strict := yaml.YAMLToJSONStrict(data)
	if strict == nil {
		return doc, nil, nil
	}
	if doc, err = yaml.YAMLToJSON(data); err != nil {
		return nil, nil, YAMLError{err}
	}
	return doc, []string{strict.Error()}, nil
}

// YAMLError is the error of a document that is no YAML, or that has no form in JSON.
type YAMLError struct{ error }

// Warnings words what Decode complains about as warnings, one for each field.
func Warnings(duplicates []string) []string {
	var out []string
	for _, d := range duplicates {
		rest, ok := strings.CutPrefix(d, "yaml: unmarshal errors:\n")
		if !ok {
			out = append(out, d)
			continue
		}
		for line := range strings.SplitSeq(rest, "\n") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// Expect is what the object in a request has to be.
type Expect struct {
	Kind schema.GroupVersionKind
	// New makes an object of the Go type of the kind, where it has one. Such an
	// object need not say what it is.
	New func() runtime.Object
	// Versions are other versions of the kind, of which a body may be by mistake.
	Versions []string
	// Alike are versions of the kind that say the same in the same way. An object in one
	// of them is taken for one in that of Kind.
	Alike []string
	// Offer is what the server speaks.
	Offer Offer
	// Strict says that the client did not ask for duplicate and unknown fields
	// to be ignored. Only the words of some errors depend on it.
	Strict bool
}

// DecodeObject reads the object in the body of a request. Its errors are the
// answers of a server that was sent something else. Of the kind of an object
// without a Go type it only says that there must be one; whether it is the right
// one is checked with the rest of the object. If such an object has another version, it comes
// with the error.
func DecodeObject(m Media, data []byte, x Expect) (t object.Tree, duplicates []string, err error) {
	if m == Protobuf {
		if x.New == nil {
			return nil, nil, x.Offer.unsupported()
		}
		t, err = decodeProtobuf(data, x)
		return t, nil, err
	}
	doc, duplicates, err := toJSON(m, data)
	if err != nil {
		return nil, nil, unrecognized(x, err, data)
	}
	t, more, err := decodeJSON(doc)
	got, ierr := interpret(doc, t, err == nil)
	if (err != nil || len(more) > 0) && ierr == nil && x.New != nil {
		t, more, err = decodeInto(x.New(), doc)
	}
	switch {
	case ierr != nil:
		return nil, nil, unrecognized(x, ierr, data)
	case err != nil:
		return nil, nil, Unhandled(got.or(x.Kind), x.Kind.Kind, err)
	case x.New != nil:
		t, err = x.typed(t, got)
	default:
		err = x.untyped(t, doc, data)
	}
	if err != nil {
		return nil, nil, err
	}
	if got := exactly(t).APIVersion; x.New == nil && got != x.Kind.GroupVersion().String() {
		err = x.otherVersion(got)
	}
	return t, append(duplicates, more...), err
}

// decodeInto reads an object as its Go type does, which skips fields that it does
// not have, whatever is in them: a number that is too large for any, too. They are
// among the problems, in the words of strict decoding. Each of the fields that are
// there twice must fit the type, and two objects become one.
func decodeInto(obj runtime.Object, doc []byte) (t object.Tree, problems []string, err error) {
	strict, err := kjson.UnmarshalStrict(doc, obj)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range strict {
		problems = append(problems, e.Error())
	}
	if doc, err = json.Marshal(obj); err != nil {
		return nil, nil, err
	}
	t, _, err = decodeJSON(doc)
	return t, problems, err
}

// A typeMeta is what an object says that it is.
type typeMeta struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// interpret returns what the object says that it is. The error of a document
// that is none is the one for a server that looked for nothing else in it.
func interpret(doc []byte, t object.Tree, decoded bool) (typeMeta, error) {
	m := exactly(t)
	if !decoded || !plainType(t) {
		// Named or not, the type is part of the words.
		var found struct {
			APIVersion string `json:"apiVersion,omitempty"`
			Kind       string `json:"kind,omitempty"`
		}
		if err := json.Unmarshal(doc, &found); err != nil {
			return m, fmt.Errorf("couldn't get version/kind; json parse error: %v", err)
		}
		m = found
	}
	_, err := schema.ParseGroupVersion(m.APIVersion)
	return m, err
}

// exactly returns the texts of the fields apiVersion and kind.
func exactly(t object.Tree) typeMeta {
	apiVersion, _ := t["apiVersion"].(string)
	kind, _ := t["kind"].(string)
	return typeMeta{apiVersion, kind}
}

// plainType reports whether apiVersion and kind are texts, or are not there, and no field has such a name in other
// letters. Kubernetes reads them with encoding/json, which takes "Kind" for "kind".
func plainType(t object.Tree) bool {
	for name, v := range t {
		switch {
		case name == "apiVersion", name == "kind":
			if _, ok := v.(string); !ok && v != nil {
				return false
			}
		case strings.EqualFold(name, "apiVersion"), strings.EqualFold(name, "kind"):
			return false
		}
	}
	return true
}

// or fills in what is missing.
func (m typeMeta) or(want schema.GroupVersionKind) schema.GroupVersionKind {
	gv, _ := schema.ParseGroupVersion(m.APIVersion)
	if gv.Empty() {
		gv = want.GroupVersion()
	}
	if m.Kind == "" {
		m.Kind = want.Kind
	}
	return gv.WithKind(m.Kind)
}

// typed completes and checks an object of a Go type.
func (x Expect) typed(t object.Tree, m typeMeta) (object.Tree, error) {
	if t == nil {
		t = object.Tree{}
	}
	if got := m.or(x.Kind); got.GroupKind() == x.Kind.GroupKind() && got != x.Kind && slices.Contains(x.Versions, got.Version) {
		return nil, x.otherVersion(m.APIVersion)
	}
	if err := x.name(t, m); err != nil {
		return nil, Unhandled(m.or(x.Kind), x.Kind.Kind, err)
	}
	return t, nil
}

// name has an object say what it is, if it says nothing else.
func (x Expect) name(t object.Tree, m typeMeta) error {
	if got := m.or(x.Kind); !x.takes(got) {
		return unregistered(got)
	}
	t["apiVersion"], t["kind"] = x.Kind.GroupVersion().String(), x.Kind.Kind
	return nil
}

// takes reports whether an object may be of a kind.
func (x Expect) takes(got schema.GroupVersionKind) bool {
	return got == x.Kind || got.GroupKind() == x.Kind.GroupKind() && slices.Contains(x.Alike, got.Version)
}

// unregistered says that there is no such kind where another one was expected.
func unregistered(got schema.GroupVersionKind) error {
	return fmt.Errorf("no kind %q is registered for version %q in scheme %q", got.Kind, got.GroupVersion(), "pkg/runtime/scheme.go:111")
}

// Name is what DecodeObject does with the kind of an object of a Go type, for an
// object that has been made of another. Its errors are of no Status.
func (x Expect) Name(t object.Tree) error {
	m, err := reinterpret(t)
	switch {
	case err != nil:
		return err
	case m.APIVersion == "" && m.Kind != "" && m.Kind != x.Kind.Kind:
		return fmt.Errorf("no kind %q is registered for the internal version of group %q in scheme %q", m.Kind, x.Kind.Group, "pkg/runtime/scheme.go:111")
	}
	return x.name(t, m)
}

// reinterpret is interpret for an object that has been made of another.
func reinterpret(t object.Tree) (typeMeta, error) {
	var doc []byte
	if !plainType(t) {
		doc = object.AppendJSON(nil, t)
	}
	return interpret(doc, t, true)
}

// CheckNamed checks that a patched object without a Go type has an apiVersion and a kind. It does not
// check their values. Its errors are of no Status.
func CheckNamed(t object.Tree) error {
	if _, err := reinterpret(t); err != nil {
		return err
	}
	if exactly(t).Kind == "" {
		return fmt.Errorf("Object 'Kind' is missing in '%s'", object.AppendJSON(nil, t))
	}
	if v, ok := t["apiVersion"]; ok && v == nil {
		return errNullVersion
	}
	return nil
}

// errNullVersion is the error of an object without a Go type whose apiVersion is null.
var errNullVersion = errors.New(".apiVersion accessor error: <nil> is of the type <nil>, expected string")

// untyped checks an object that only has a schema. doc is the JSON of its body.
func (x Expect) untyped(t object.Tree, doc, data []byte) error {
	const missing = "Object 'Kind' is missing in '%s'"
	m := exactly(t)
	if m.Kind == "" && x.Strict {
		return unrecognized(x, fmt.Errorf(missing, data), data)
	}
	if m.Kind == "" {
		return Unhandled(m.or(x.Kind), x.Kind.Kind, fmt.Errorf(missing, bytes.TrimSpace(doc)))
	}
	if v, ok := t["apiVersion"]; ok && v == nil {
		return Unhandled(schema.GroupVersionKind{Kind: m.Kind}, x.Kind.Kind, errNullVersion)
	}
	return nil
}

// otherVersion says that the body is of another version than the path.
func (x Expect) otherVersion(got string) error {
	if gv, err := schema.ParseGroupVersion(got); err == nil {
		got = gv.String() // nothing, for a lone slash
	}
	return status.BadRequest("the API version in the data (%s) does not match the expected API version (%s)", got, x.Kind.GroupVersion())
}

// unrecognized says that a body is no object at all.
func unrecognized(x Expect, err error, data []byte) error {
	return status.BadRequest("the object provided is unrecognized (must be of type %s): %v (%s)", x.Kind.Kind, err, summary(data))
}

// summary shows the beginning of a body: JSON as it is, other bytes as hex.
func summary(data []byte) string {
	const most = 30
	switch {
	case len(data) == 0:
		return "<empty>"
	case data[0] == '{' && len(data) > most:
		return string(data[:most]) + " ..."
	case data[0] == '{':
		return string(data)
	case len(data) > most:
		return hex.EncodeToString(data[:most]) + " ..."
	default:
		return hex.EncodeToString(data)
	}
}

// Unhandled says that an object cannot be an object of a kind.
func Unhandled(got schema.GroupVersionKind, kind string, err error) *status.Error {
	return status.BadRequest("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, kind, err)
}

// StrictError refuses an object for what strict decoding found in it: duplicate
// fields as Decode reports them, and unknown ones.
func StrictError(gvk schema.GroupVersionKind, problems []string) *status.Error {
	return Unhandled(gvk, gvk.Kind, errors.New("strict decoding error: "+strings.Join(problems, ", ")))
}
