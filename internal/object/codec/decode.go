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

// Decode decodes an object in JSON, YAML or CBOR. duplicates are errors about duplicate fields,
// in the words of strict decoding. The last one of duplicate fields counts.
//
// JSON null, YAML null and an empty YAML document are the nil Tree.
func Decode(m Media, data []byte) (t object.Tree, duplicates []string, err error) {
	if m == YAML && sameAsJSON(data) {
		// JSON that is sent as YAML need not wait for the YAML parser, except with duplicate
		// fields, for which YAML has other errors.
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

// toJSON converts a document to JSON.
func toJSON(m Media, data []byte) (doc []byte, duplicates []string, err error) {
	switch m {
	case YAML:
		return FromYAML(data)
	case CBOR:
		doc, err = fromCBOR(data, appendWithFloats)
		return doc, nil, err
	default:
		return data, nil, nil
	}
}

// FromYAML converts the first document of data to JSON, and reports duplicate fields. The library limits nesting and the
// expansion of aliases.
func FromYAML(data []byte) (doc []byte, duplicates []string, err error) {
	doc, strict := yaml.YAMLToJSONStrict(data)
	if strict == nil {
		return doc, nil, nil
	}
	if doc, err = yaml.YAMLToJSON(data); err != nil {
		return nil, nil, YAMLError{err}
	}
	return doc, []string{strict.Error()}, nil
}

// YAMLError is the error of a document that is not YAML, or that has no form in JSON.
type YAMLError struct{ error }

// Warnings returns the errors about duplicates as warnings, one for each field.
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

// Expect has the requirements for the object in a request.
type Expect struct {
	Kind schema.GroupVersionKind
	// New returns an empty object of the kind's Go type, if there is one. Such an object need not
	// have an apiVersion and a kind.
	New func() runtime.Object
	// Versions are other versions of the kind, which get an error of their own.
	Versions []string
	// Alike are versions with the same schema. An object in one of them is accepted as one of
	// Kind.
	Alike []string
	// Offer has the media types of the server.
	Offer Offer
	// Strict is false if the client asks to ignore duplicate and unknown fields. It affects only
	// the words of some errors.
	Strict bool
}

// DecodeObject decodes the object in a request body. Its errors are Statuses. For an object
// without a Go type it checks only that there is a kind; the value is checked with the rest of
// the object. If the version of such an object is wrong, it returns the object with the error.
func DecodeObject(m Media, data []byte, x Expect) (t object.Tree, duplicates []string, err error) {
	if m == Protobuf {
		if x.New == nil {
			return nil, nil, x.Offer.unsupported()
		}
		t, err = decodeProtobuf(data, x)
		return t, nil, err
	}
	if m == CBOR && x.New != nil {
		return x.decodeCBOR(data)
	}
	doc, duplicates, err := toJSON(m, data)
	switch {
	case err != nil && m == CBOR:
		return nil, nil, x.wrongCBOR(data, err)
	case err != nil:
		return nil, nil, unrecognized(x, err, data)
	}
	t, more, err := decodeJSON(doc)
	got, ierr := interpret(doc, t, err == nil)
	if (err != nil || len(more) > 0) && ierr == nil && x.New != nil {
		t, more, err = decodeInto(x.New(), doc)
	}
	switch kind := got.or(x.Kind); {
	case ierr != nil:
		return nil, nil, unrecognized(x, ierr, data)
	case x.New != nil && kind.Version == "":
		return nil, nil, Unhandled(kind, x.Kind.Kind, fmt.Errorf("Object 'apiVersion' is missing in '%s'", data))
	case x.New != nil && !x.isVersion(kind):
		return nil, nil, Unhandled(kind, x.Kind.Kind, unregistered(kind))
	case err != nil:
		return nil, nil, Unhandled(kind, x.Kind.Kind, err)
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

// decodeInto decodes an object through its Go type. Unknown fields are skipped whatever their
// content, such as a number out of range, and are among the problems, in the words of strict
// decoding. Each of several duplicate fields must fit the type, and duplicate objects are merged.
func decodeInto(obj runtime.Object, doc []byte) (t object.Tree, problems []string, err error) {
	strict, err := kjson.UnmarshalStrict(doc, obj)
	if err != nil {
		return nil, nil, err
	}
	t, err = object.TreeOf(obj)
	return t, texts(strict), beyondFloat(err)
}

// beyondFloat returns the error for a number inside untyped JSON that is too large for a float64, wherever the number is.
// Kubernetes decodes such JSON by itself, when it converts the object.
func beyondFloat(err error) error {
	if err == nil {
		return nil
	}
	if _, itself, ok := strings.Cut(err.Error(), "error decoding number from json: "); ok {
		return errors.New(itself)
	}
	if _, number, ok := strings.Cut(err.Error(), `strconv.ParseFloat: parsing "`); ok {
		number, _, _ = strings.Cut(number, `"`)
		return fmt.Errorf("json: cannot unmarshal number %s into Go value of type float64", number)
	}
	return err
}

// texts returns the texts of errors.
func texts(errs []error) (all []string) {
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// Problems returns the duplicate and unknown fields of a document in its order, in the words of strict decoding; nil if they
// have no order, as in YAML, or without a Go type.
func (x Expect) Problems(m Media, doc []byte) []string {
	if m != JSON || x.New == nil {
		return nil
	}
	strict, _ := kjson.UnmarshalStrict(doc, x.New())
	return texts(strict)
}

// A typeMeta is the apiVersion and kind of an object.
type typeMeta struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// interpret returns the apiVersion and kind of an object. If the document does not decode, the
// error is that of a server which decodes only these two fields.
func interpret(doc []byte, t object.Tree, decoded bool) (typeMeta, error) {
	m := exactly(t)
	if !decoded || !plainType(t) {
		// The error contains the type, even if it has no name.
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

// exactly returns the fields apiVersion and kind, "" if they are not strings.
func exactly(t object.Tree) typeMeta {
	apiVersion, _ := t["apiVersion"].(string)
	kind, _ := t["kind"].(string)
	return typeMeta{apiVersion, kind}
}

// plainType reports whether apiVersion and kind are strings, null or missing, and no field has one of these
// names in another case. Kubernetes decodes them with encoding/json, for which "Kind" is "kind".
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

// or fills in missing parts.
func (m typeMeta) or(want schema.GroupVersionKind) schema.GroupVersionKind {
	gv, _ := schema.ParseGroupVersion(m.APIVersion)
	if gv.Empty() || gv.Version == "" && gv.Group == want.Group {
		gv = want.GroupVersion()
	}
	if m.Kind == "" {
		m.Kind = want.Kind
	}
	return gv.WithKind(m.Kind)
}

// typed completes and checks an object with a Go type.
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

// name checks the apiVersion and kind of an object, and sets those of x.Kind.
func (x Expect) name(t object.Tree, m typeMeta) error {
	if got := m.or(x.Kind); !x.takes(got) {
		return unregistered(got)
	}
	t["apiVersion"], t["kind"] = x.Kind.GroupVersion().String(), x.Kind.Kind
	return nil
}

// isVersion reports whether an object is of the kind, in any of its versions.
func (x Expect) isVersion(got schema.GroupVersionKind) bool {
	return x.takes(got) || got.GroupKind() == x.Kind.GroupKind() && slices.Contains(x.Versions, got.Version)
}

// takes reports whether an object of a kind is accepted.
func (x Expect) takes(got schema.GroupVersionKind) bool {
	return got == x.Kind || got.GroupKind() == x.Kind.GroupKind() && slices.Contains(x.Alike, got.Version)
}

// unregistered returns the error for a kind that does not exist.
func unregistered(got schema.GroupVersionKind) error {
	return fmt.Errorf("no kind %q is registered for version %q in scheme %q", got.Kind, got.GroupVersion(), scheme)
}

// Name sets the apiVersion and kind of an object with a Go type that was derived from another
// one, as DecodeObject does. Its errors are not Statuses.
func (x Expect) Name(t object.Tree) error {
	m, err := reinterpret(t)
	if err != nil {
		return err
	}
	gv, _ := schema.ParseGroupVersion(m.APIVersion)
	switch got := m.or(x.Kind); {
	case got.Version == "":
		return fmt.Errorf("Object 'apiVersion' is missing in '%s'", object.AppendJSON(nil, t))
	case gv.Version == "" && got.Kind != x.Kind.Kind:
		return fmt.Errorf("no kind %q is registered for the internal version of group %q in scheme %q", m.Kind, x.Kind.Group, scheme)
	}
	return x.name(t, m)
}

// reinterpret is interpret for a derived object.
func reinterpret(t object.Tree) (typeMeta, error) {
	var doc []byte
	if !plainType(t) {
		doc = object.AppendJSON(nil, t)
	}
	return interpret(doc, t, true)
}

// CheckNamed checks that a patched object without a Go type has an apiVersion and a kind. It does
// not check their values. Its errors are not Statuses.
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

// scheme is the name of the scheme in the errors of kube-apiserver.
const scheme = "pkg/runtime/scheme.go:111"

// errNullVersion is the error for a null apiVersion in an object without a Go type.
var errNullVersion = errors.New(".apiVersion accessor error: <nil> is of the type <nil>, expected string")

// untyped checks an object without a Go type. doc is the body as JSON.
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

// otherVersion returns the error for a body in another version than the path.
func (x Expect) otherVersion(got string) error {
	if gv, err := schema.ParseGroupVersion(got); err == nil {
		got = gv.String() // the empty version, for a lone slash
	}
	return status.BadRequest("the API version in the data (%s) does not match the expected API version (%s)", got, x.Kind.GroupVersion())
}

// unrecognized returns the error for a body that is not an object.
func unrecognized(x Expect, err error, data []byte) error {
	return status.BadRequest("the object provided is unrecognized (must be of type %s): %v (%s)", x.Kind.Kind, err, summary(data))
}

// summary returns the beginning of a body: JSON verbatim, other bytes as hex.
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

// Unhandled returns the error for an object that does not decode as a kind.
func Unhandled(got schema.GroupVersionKind, kind string, err error) error {
	return &status.Undecodable{Kind: got, Expected: kind, Err: err}
}

// StrictError returns the error of strict decoding for duplicate fields, as Decode reports them,
// and unknown ones.
func StrictError(gvk schema.GroupVersionKind, problems []string) error {
	return Unhandled(gvk, gvk.Kind, errors.New("strict decoding error: "+strings.Join(problems, ", ")))
}
