package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
)

// What a Trial finds in an object.
const (
	// RefusedWrite: its next write is refused, whatever changes.
	RefusedWrite = "refused on the next write"
	// RefusedChange: it cannot be created anew, but ratcheting lets it be written as long as what is
	// wrong, or what is around that, does not change.
	RefusedChange = "refused once this changes"
	// Loses a field.
	Loses = "lose"
	// Changes a field, or gets one.
	ChangesField = "change"
)

// mostGroups is how many kinds of trouble are told apart. More are counted together.
const mostGroups = 100

// A Group is the objects to which the same happens.
type Group struct {
	// What happens, and the Field that it happens to, or the Message of the refusal.
	What    string `json:"what"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message,omitempty"`
	Objects int    `json:"objects"`
	// Names of the first ones.
	Names []string `json:"names"`
}

// An Outcome is what a definition does to stored objects.
type Outcome struct {
	Definition string `json:"definition"`
	Objects    int    `json:"objects"`
	// RefusedWrites and RefusedChange count objects, whatever the reason is.
	RefusedWrites int     `json:"refusedWrites"`
	RefusedChange int     `json:"refusedOnChange"`
	Groups        []Group `json:"groups"`
}

// A Trial has a server with a new definition, and tries objects that are stored under the old one.
type Trial struct {
	Outcome
	// Names is how many names a Group has at most.
	Names int

	server *app.Offline
	kind   kind
	groups map[string]int
}

// NewTrial starts a Trial, which is to be stopped. It refuses a definition that a server would refuse.
func NewTrial(ctx context.Context, d *v1.CustomResourceDefinition, version string) (*Trial, error) {
	server, err := app.NewOffline(ctx, app.OfflineOptions{})
	if err != nil {
		return nil, err
	}
	t := &Trial{server: server, groups: map[string]int{}, Outcome: Outcome{Definition: d.Name, Groups: []Group{}}}
	if err := t.define(ctx, d, version); err != nil {
		t.Stop(ctx)
		return nil, err
	}
	return t, nil
}

// Stop ends the Trial.
func (t *Trial) Stop(ctx context.Context) { _ = t.server.Stop(context.WithoutCancel(ctx)) }

// define has the definition served, with objects stored in one version: what is stored is given in
// that, and nothing is to be converted.
func (t *Trial) define(ctx context.Context, d *v1.CustomResourceDefinition, version string) error {
	d = d.DeepCopy()
	d.Status, d.UID, d.ResourceVersion, d.ManagedFields = v1.CustomResourceDefinitionStatus{}, "", "", nil
	d.Spec.Conversion = nil
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		v.Storage = v.Name == version
		v.Served = v.Served || v.Storage
	}
	d.APIVersion, d.Kind = v1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	crds := t.server.Definitions().Lookup(v1.GroupName, "customresourcedefinitions")
	a, err := Ask(ctx, t.server, http.MethodPost, path(crds, "v1", identity{}, nil), codec.JSON.String(), body)
	if err != nil {
		return err
	}
	if a.Code >= http.StatusBadRequest {
		return fmt.Errorf("the new definition is invalid: %s", a.status().Message)
	}
	definition := t.server.Definitions().Lookup(d.Spec.Group, d.Spec.Names.Plural)
	if definition == nil || definition.Version(version) == nil {
		return fmt.Errorf("%s has no version %s", d.Name, version)
	}
	t.kind = kind{definition, definition.Version(version)}
	return nil
}

// touched is set in what is tried, so that it is a write that changes something.
const touched = "anykind.dev/try"

// Try tries an object that is stored.
func (t *Trial) Try(ctx context.Context, stored object.Tree) error {
	id := identity{namespace: object.Namespace(stored), name: object.Name(stored)}
	name := strings.TrimPrefix(id.namespace+"/"+id.name, "/")
	t.Objects++
	stored["apiVersion"] = t.kind.definition.APIVersion(t.kind.version.Name)
	asStored(stored, id.namespace)
	key := t.kind.definition.Key(id.namespace, id.name)
	if err := t.server.Put(ctx, key, object.AppendJSON(nil, stored)); err != nil {
		return err
	}
	defer func() { _ = t.server.Put(context.WithoutCancel(ctx), key, nil) }()
	at := path(t.kind.definition, t.kind.version.Name, id, nil)
	got, err := Ask(ctx, t.server, http.MethodGet, at, "", nil)
	if err != nil {
		return err
	}
	shown := got.tree()
	if shown == nil {
		t.RefusedWrites++
		t.note(RefusedWrite, "", got.status().Message, name)
		return nil
	}
	t.compare(stored, shown, name)
	return t.write(ctx, id, shown, name)
}

// indexes are those of lists in a path.
var indexes = regexp.MustCompile(`\[\d+\]`)

// compare notes which fields are not as they were.
func (t *Trial) compare(stored, shown object.Tree, name string) {
	seen := map[string]bool{}
	for _, c := range Changes(plain(stored), plain(shown)) {
		what := ChangesField
		if c.Now == nil {
			what = Loses
		}
		field := indexes.ReplaceAllString(c.Path, "[]")
		if !seen[what+field] {
			t.note(what, field, "", name)
		}
		seen[what+field] = true
	}
}

// write tries to write an object again, and to create it anew.
func (t *Trial) write(ctx context.Context, id identity, shown object.Tree, name string) error {
	dryRun := url.Values{"dryRun": {metav1.DryRunAll}, "fieldValidation": {metav1.FieldValidationIgnore}}
	metadata := object.Metadata(shown)
	annotations, _ := metadata["annotations"].(map[string]any)
	again := map[string]any{touched: "true"}
	for k, v := range annotations {
		again[k] = v
	}
	metadata["annotations"] = again
	put, err := Ask(ctx, t.server, http.MethodPut, path(t.kind.definition, t.kind.version.Name, id, dryRun), codec.JSON.String(), object.AppendJSON(nil, shown))
	if err != nil {
		return err
	}
	if put.Code >= http.StatusBadRequest {
		t.RefusedWrites++
		t.refused(RefusedWrite, &put, name)
		return nil
	}
	delete(metadata, "annotations")
	delete(metadata, "resourceVersion")
	all := id
	all.name = ""
	post, err := Ask(ctx, t.server, http.MethodPost, path(t.kind.definition, t.kind.version.Name, all, dryRun), codec.JSON.String(), object.AppendJSON(nil, shown))
	if err == nil && post.Code >= http.StatusBadRequest && post.Code != http.StatusConflict { // for it is there
		t.RefusedChange++
		t.refused(RefusedChange, &post, name)
	}
	return err
}

// refused notes why an object is refused.
func (t *Trial) refused(what string, a *Answer, name string) {
	s := a.status()
	if s.Details == nil || len(s.Details.Causes) == 0 {
		t.note(what, "", s.Message, name)
		return
	}
	seen := map[string]bool{}
	for _, c := range s.Details.Causes {
		field := indexes.ReplaceAllString(strings.TrimPrefix(c.Field, noField), "[]")
		if key := field + c.Message; !seen[key] && !strings.HasPrefix(c.Message, "Invalid value: null: some validation rules were not checked") {
			seen[key] = true
			t.note(what, field, c.Message, name)
		}
	}
}

// note counts an object to which something happens.
func (t *Trial) note(what, field, message, name string) {
	key := what + "\n" + field + "\n" + message
	i, ok := t.groups[key]
	if !ok && len(t.Groups) >= mostGroups {
		field, message = "", "something else"
		key = what + "\n\n" + message
		i, ok = t.groups[key]
	}
	if !ok {
		i = len(t.Groups)
		t.groups[key] = i
		t.Groups = append(t.Groups, Group{What: what, Field: field, Message: message, Names: []string{}})
	}
	g := &t.Groups[i]
	if g.Objects++; len(g.Names) < t.Names {
		g.Names = append(g.Names, name)
	}
}

// Result is what was found, the worst first.
func (t *Trial) Result() Outcome {
	order := []string{RefusedWrite, Loses, ChangesField, RefusedChange}
	slices.SortStableFunc(t.Groups, func(a, b Group) int {
		if n := slices.Index(order, a.What) - slices.Index(order, b.What); n != 0 {
			return n
		}
		return b.Objects - a.Objects
	})
	return t.Outcome
}

// StoragePrefix begins the keys of the objects of a definition.
func StoragePrefix(d *v1.CustomResourceDefinition) string {
	return resource.CustomPrefix(d.Spec.Group, d.Spec.Names.Plural)
}
