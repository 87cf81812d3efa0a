package watch

import (
	"fmt"
	"strconv"
)

const (
	labelKey = "l"
	valueKey = "check.example.com/value"
	padKey   = "check.example.com/pad"
)

// An object has the relevant JSON fields of an object.
type object struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind,omitempty"`
	Metadata   metadata `json:"metadata"`
}

type metadata struct {
	Name            string            `json:"name,omitempty"`
	Namespace       string            `json:"namespace,omitempty"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// newObject returns an object to write.
func newObject(k key, label, value, pad string) object {
	o := object{APIVersion: kinds[k.kind].apiVersion, Kind: kinds[k.kind].name, Metadata: metadata{
		Name: k.name, Namespace: k.namespace, Annotations: map[string]string{valueKey: value, padKey: pad},
	}}
	if label != "" {
		o.Metadata.Labels = map[string]string{labelKey: label}
	}
	return o
}

// state returns the state in an object's metadata.
func (m *metadata) state() (state, error) {
	revision, err := strconv.ParseInt(m.ResourceVersion, 10, 64)
	if err != nil {
		return state{}, fmt.Errorf("%s/%s has resourceVersion %q", m.Namespace, m.Name, m.ResourceVersion)
	}
	return state{m.UID, m.Labels[labelKey], m.Annotations[valueKey], revision}, nil
}

// A selection selects the objects of a watcher. Empty fields select all.
type selection struct {
	kind      int
	namespace string
	name      string // by field selector
	notName   string
	inSpace   string // by field selector
	labels    string // the label selector
	selects   func(label string) bool
}

var labels = []string{"", "x", "y"}

// labelSelectors are the label selectors of watchers, with their meaning.
var labelSelectors = []struct {
	text    string
	selects func(label string) bool
}{
	{"", func(string) bool { return true }},
	{"", func(string) bool { return true }},
	{"l=x", func(l string) bool { return l == "x" }},
	{"l!=x", func(l string) bool { return l != "x" }},
	{"l in (x,y)", func(l string) bool { return l == "x" || l == "y" }},
	{"!l", func(l string) bool { return l == "" }},
	{"l,l notin (y)", func(l string) bool { return l == "x" }},
}

// sees reports whether a selection includes an object in a state.
func (s *selection) sees(k key, now state) bool {
	return k.kind == s.kind &&
		(s.namespace == "" || k.namespace == s.namespace) &&
		(s.inSpace == "" || k.namespace == s.inSpace) &&
		(s.name == "" || k.name == s.name) &&
		(s.notName == "" || k.name != s.notName) &&
		s.selects(now.label)
}

func (s *selection) String() string {
	return fmt.Sprintf("%s of %q, labels %q, fields %q", kinds[s.kind].plural, s.namespace, s.labels, s.fields())
}

// fields is the field selector.
func (s *selection) fields() string {
	text := ""
	add := func(term string) {
		if text != "" {
			text += ","
		}
		text += term
	}
	if s.name != "" {
		add("metadata.name=" + s.name)
	}
	if s.notName != "" {
		add("metadata.name!=" + s.notName)
	}
	if s.inSpace != "" {
		add("metadata.namespace=" + s.inSpace)
	}
	return text
}
