package builtin

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

// read parses an object.
func read(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// definition returns the kind of PLURAL or PLURAL.GROUP.
func definition(t testing.TB, name string) *resource.Definition {
	t.Helper()
	plural, group, _ := strings.Cut(name, ".")
	all := Definitions()
	i := slices.IndexFunc(all, func(d *resource.Definition) bool {
		return d.Plural == plural && (group == "" || d.Group == group)
	})
	if i < 0 {
		t.Fatalf("no built-in %s", name)
	}
	return all[i]
}

// write runs the hooks of a write up to validation.
func write(t testing.TB, d *resource.Definition, obj, old map[string]any) (map[string]any, field.ErrorList) {
	t.Helper()
	v := d.Versions[0]
	obj, _, err := v.Schema.Complete(obj)
	if err != nil {
		t.Fatal(err)
	}
	if errs := allocate(t, d, obj, old); len(errs) > 0 {
		return obj, errs
	}
	if v.Revert != nil {
		v.Revert(t.Context(), &resource.Change{Object: obj, Old: old})
	}
	if d.Prepare != nil {
		d.Prepare(t.Context(), &resource.Change{Object: obj, Old: old})
	}
	var errs field.ErrorList
	if d.Validate != nil {
		errs = d.Validate(t.Context(), &resource.Change{Object: obj, Old: old})
	}
	obj, _ = v.Schema.(resource.DroppingSchema).DropUnstored(obj)
	if d.Canonicalize != nil {
		d.Canonicalize(obj)
	}
	return obj, errs
}

// allocate allocates as a dry run does, whose choices are deterministic.
func allocate(t testing.TB, d *resource.Definition, obj, old map[string]any) (errs field.ErrorList) {
	t.Helper()
	if d.Allocate == nil {
		return nil
	}
	err := d.Allocate(t.Context(), &resource.Change{Object: obj, Old: old, DryRun: true})
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) {
		return nil
	}
	details := refused.Status().Details
	if details == nil || refused.Status().Reason != metav1.StatusReasonInvalid {
		t.Fatal(err)
	}
	for _, c := range details.Causes {
		errs = append(errs, &field.Error{Type: causeType, Field: c.Field, Detail: c.Message})
	}
	return errs
}

// causeType is the type of errors that are shown by their detail only.
const causeType = field.ErrorTypeInternal

func messages(errs field.ErrorList) (out []string) {
	for _, err := range errs {
		if err.Type == causeType {
			out = append(out, err.Field+": "+err.Detail)
			continue
		}
		out = append(out, err.Error())
	}
	return out
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// Four namespaces are created at the start, and three cannot be deleted.
func TestNamesOfNamespaces(t *testing.T) {
	same(t, "system namespaces", SystemNamespaces(), []string{"default", "kube-system", "kube-public", "kube-node-lease"})
	same(t, "immortal namespaces", ImmortalNamespaces(), []string{"default", "kube-system", "kube-public"})
}

// OpenAPI models have the properties that Go types lack.
func TestModels(t *testing.T) {
	for _, d := range Definitions() {
		if !d.Allows("list") {
			continue
		}
		m := d.Versions[0].Schema.Model()
		if m.Schemas[m.Name] == nil || m.Schemas[m.List] == nil {
			t.Errorf("%s: no model %s or %s", d.Plural, m.Name, m.List)
		}
	}
	m := definition(t, "namespaces").Versions[0].Schema.Model()
	conditions := m.Schemas["io.k8s.api.core.v1.NamespaceStatus"].Properties["conditions"]
	same(t, "conditions", map[string]any(conditions.Extensions), map[string]any{
		"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"type"},
		"x-kubernetes-patch-merge-key": "type", "x-kubernetes-patch-strategy": "merge",
	})
	event := definition(t, "events").Versions[0].Schema.Model()
	same(t, "required of events", event.Schemas[event.Name].Required, []string{"metadata", "involvedObject"})
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		plural, name string
		ok           bool
	}{
		{"namespaces", "a-b", true}, {"namespaces", "a.b", false}, {"namespaces", "A", false},
		{"events", "a_b.XYZ", true}, {"events", "a/b", false}, {"events", "..", false},
	} {
		if got := definition(t, tt.plural).ValidateName(tt.name, false); (len(got) == 0) != tt.ok {
			t.Errorf("%s %s: %q", tt.plural, tt.name, got)
		}
	}
}

// No APIService can have a higher group priority than the group of APIServices.
func TestFirstGroup(t *testing.T) {
	const highest = 20000
	apiServices := definition(t, "apiservices.apiregistration.k8s.io")
	if apiServices.GroupPriority <= highest {
		t.Errorf("its priority is %d, and an APIService may have %d", apiServices.GroupPriority, highest)
	}
}

func TestColumns(t *testing.T) {
	const meta = `metadata: {name: x, namespace: default, creationTimestamp: "2026-01-02T03:04:05Z"}`
	created := view.Age("2026-01-02T03:04:05Z")
	for _, tt := range []struct {
		plural, object string
		want           []any // names and values, alternating
	}{
		{"namespaces", `{` + meta + `, status: {phase: Active}}`, []any{"Status", "Active", "Age", created}},
		{"namespaces", `{metadata: {}}`, []any{"Status", "", "Age", "<unknown>"}},
		{"configmaps", `{` + meta + `, data: {a: b}, binaryData: {c: ""}}`, []any{"Data", int64(2), "Age", created}},
		{"secrets", `{` + meta + `, type: Opaque, data: {a: ""}}`, []any{"Type", "Opaque", "Data", int64(1), "Age", created}},
		{"serviceaccounts", `{` + meta + `}`, []any{"Age", created}},
		{"leases", `{` + meta + `, spec: {holderIdentity: me}}`, []any{"Holder", "me", "Age", created}},
		{"leases", `{` + meta + `, spec: {}}`, []any{"Holder", "", "Age", created}},
		{
			"events", `{` + meta + `, type: Normal, reason: Created, message: " did it\n", involvedObject: {kind: Pod, name: p, fieldPath: "spec.containers{c}"},
				source: {component: kubelet, host: h}, firstTimestamp: "2026-01-02T03:04:05Z", lastTimestamp: "2026-01-02T04:04:05Z", count: 3}`,
			[]any{
				"Last Seen", view.Age("2026-01-02T04:04:05Z"), "Type", "Normal", "Reason", "Created", "Object", "pod/p",
				"Subobject", "spec.containers{c}", "Source", "kubelet, h", "Message", "did it", "First Seen", created, "Count", int64(3), "Name", "x",
			},
		},
		{
			"events", `{` + meta + `, eventTime: "2026-01-02T03:04:05.000006Z", involvedObject: {kind: Node},
				reportingComponent: k8s.io/x, reportingInstance: i, firstTimestamp: null, lastTimestamp: null,
				series: {count: 4, lastObservedTime: "2026-01-02T05:04:05.000006Z"}}`,
			[]any{
				"Last Seen", view.Age("2026-01-02T05:04:05.000006Z"), "Type", "", "Reason", "", "Object", "node",
				"Subobject", "", "Source", "k8s.io/x, i", "Message", "", "First Seen", view.Age("2026-01-02T03:04:05.000006Z"), "Count", int64(4), "Name", "x",
			},
		},
		{
			"events.events.k8s.io", `{` + meta + `, type: Normal, note: it, regarding: {kind: Pod, name: p}, deprecatedSource: {component: kubelet},
				eventTime: "2026-01-02T03:04:05.000006Z", deprecatedLastTimestamp: "2026-01-02T04:04:05Z", deprecatedCount: 3}`,
			[]any{
				"Last Seen", view.Age("2026-01-02T04:04:05Z"), "Type", "Normal", "Reason", "", "Object", "pod/p",
				"Subobject", "", "Source", "kubelet", "Message", "it", "First Seen", view.Age("2026-01-02T03:04:05.000006Z"), "Count", int64(3), "Name", "x",
			},
		},
		{
			"events", `{` + meta + `, involvedObject: {}, source: {}}`,
			[]any{
				"Last Seen", "<unknown>", "Type", "", "Reason", "", "Object", "", "Subobject", "", "Source", "", "Message", "",
				"First Seen", "<unknown>", "Count", int64(1), "Name", "x",
			},
		},
	} {
		obj := read(t, tt.object)
		var got []any
		for _, c := range definition(t, tt.plural).Versions[0].Columns() {
			got = append(got, c.Name, c.Cell(obj))
			if c.Description == "" || c.Type != "string" {
				t.Errorf("%s: column %+v", tt.plural, c)
			}
		}
		same(t, tt.plural+" "+tt.object, got, tt.want)
	}
}

func TestSelectableFields(t *testing.T) {
	for _, tt := range []struct {
		plural, object string
		want           map[string]string
	}{
		{"namespaces", `{status: {phase: Active}}`, map[string]string{"status.phase": "Active"}},
		{"secrets", `{type: Opaque}`, map[string]string{"type": "Opaque"}},
		{"events", `{reason: r, type: Normal, reportingComponent: c, involvedObject: {kind: k, namespace: ns, name: p, uid: u, apiVersion: v, resourceVersion: "1", fieldPath: f}}`, map[string]string{
			"reason": "r", "type": "Normal", "reportingComponent": "c", "source": "c",
			"involvedObject.kind": "k", "involvedObject.namespace": "ns", "involvedObject.name": "p", "involvedObject.uid": "u",
			"involvedObject.apiVersion": "v", "involvedObject.resourceVersion": "1", "involvedObject.fieldPath": "f",
		}},
		{"events.events.k8s.io", `{reason: r, type: Normal, reportingController: c, regarding: {kind: k, namespace: ns, name: p, uid: u, apiVersion: v, resourceVersion: "1", fieldPath: f}}`, map[string]string{
			"reason": "r", "type": "Normal", "reportingController": "c",
			"regarding.kind": "k", "regarding.namespace": "ns", "regarding.name": "p", "regarding.uid": "u",
			"regarding.apiVersion": "v", "regarding.resourceVersion": "1", "regarding.fieldPath": "f",
		}},
	} {
		got := map[string]string{}
		for name, value := range definition(t, tt.plural).Versions[0].SelectableFields {
			got[name] = value(read(t, tt.object))
		}
		same(t, tt.plural, got, tt.want)
	}
}
