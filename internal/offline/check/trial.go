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
	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/object/resource"
)

// Findings of a Trial.
const (
	// RefusedWrite: the next write of the object is rejected.
	RefusedWrite = "refused on the next write"
	// RefusedChange: a create would be rejected, but ratcheting accepts updates while the invalid
	// part and its surroundings stay unchanged.
	RefusedChange = "refused once this changes"
	// Loses: the object loses a field.
	Loses = "lose"
	// ChangesField: a field is changed or added.
	ChangesField = "change"
)

// mostGroups is the number of distinct groups. Further ones are counted together.
const mostGroups = 100

// A Group is the objects with the same finding.
type Group struct {
	// The finding, with its Field or the Message of a rejection.
	What    string `json:"what"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message,omitempty"`
	Objects int    `json:"objects"`
	// Names are the first names.
	Names []string `json:"names"`
}

// An Outcome is the effect of a new definition on stored objects.
type Outcome struct {
	Definition string `json:"definition"`
	Objects    int    `json:"objects"`
	// RefusedWrites and RefusedChange count objects with any reason.
	RefusedWrites int     `json:"refusedWrites"`
	RefusedChange int     `json:"refusedOnChange"`
	Groups        []Group `json:"groups"`
}

// A Trial has a server with a new definition, for tests of objects that are stored under the old
// one.
type Trial struct {
	Outcome
	// Names limits the names of a Group.
	Names int

	server *app.Offline
	kind   kind
	groups map[string]int
}

// TrialOptions configure TryAll.
type TrialOptions struct {
	Names     int    // limit of the names of a Group
	Namespace string // of the objects; empty is all namespaces
	// Progress is called with the number of tried objects, and of all as far as it is known. It may be nil.
	Progress func(done, all int)
}

// TryAll validates all stored objects of a kind against its new definition.
func TryAll(ctx context.Context, stored Stored, d *v1.CustomResourceDefinition, o TrialOptions) (Outcome, error) {
	version, err := stored.Version(ctx, d)
	if err != nil {
		return Outcome{}, err
	}
	trial, err := NewTrial(ctx, d, version)
	if err != nil {
		return Outcome{}, fmt.Errorf("%s: %w", d.Name, err)
	}
	defer trial.Stop(ctx)
	trial.Names = o.Names
	err = stored.Each(ctx, d, func(t object.Tree, all int) error {
		if o.Namespace != "" && object.Namespace(t) != o.Namespace {
			return nil
		}
		if o.Progress != nil {
			o.Progress(trial.Objects, all)
		}
		return trial.Try(ctx, t)
	})
	return trial.Result(), err
}

// NewTrial starts a Trial. The caller stops it. A definition that a server would reject is an error.
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

// Stop stops the Trial.
func (t *Trial) Stop(ctx context.Context) { _ = t.server.Stop(context.WithoutCancel(ctx)) }

// define serves the definition, without conversions: version becomes the storage version.
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

// touched is an annotation that makes a write change the object.
const touched = "anykind.dev/try"

// Try tests a stored object.
func (t *Trial) Try(ctx context.Context, stored object.Tree) error {
	id := identity{namespace: object.Namespace(stored), name: object.Name(stored)}
	name := strings.TrimPrefix(id.namespace+"/"+id.name, "/")
	t.Objects++
	stored["apiVersion"] = t.kind.definition.APIVersion(t.kind.version.Name)
	asStored(stored, t.kind.definition, id.namespace)
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

// indexes matches list indexes in a path.
var indexes = regexp.MustCompile(`\[\d+\]`)

// compare records the changed fields.
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

// write tests an update and a create of an object.
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
	if err == nil && post.Code >= http.StatusBadRequest && post.Code != http.StatusConflict { // the name is taken
		t.RefusedChange++
		t.refused(RefusedChange, &post, name)
	}
	return err
}

// refused records a rejection.
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

// note counts an object with a finding.
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

// Result returns the findings, the worst first.
func (t *Trial) Result() Outcome {
	ranks := []string{RefusedWrite, Loses, ChangesField, RefusedChange}
	order.Stable(t.Groups, func(a, b Group) int {
		if n := slices.Index(ranks, a.What) - slices.Index(ranks, b.What); n != 0 {
			return n
		}
		return b.Objects - a.Objects
	})
	return t.Outcome
}

// StoragePrefix returns the prefix of the store keys of a definition's objects.
func StoragePrefix(d *v1.CustomResourceDefinition) string {
	return resource.CustomPrefix(d.Spec.Group, d.Spec.Names.Plural)
}
