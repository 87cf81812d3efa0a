package oracle

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/controller/policytype"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/crd/compile"
)

// widgetCRD is a CustomResourceDefinition with all kinds of types in its schema.
const widgetCRD = `{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
	"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
		"replicas":{"type":"integer"},"ratio":{"type":"number"},"when":{"type":"string","format":"date-time"},"port":{"x-kubernetes-int-or-string":true},
		"parts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"in":{"type":"string"}}}},
		"named":{"type":"object","additionalProperties":{"type":"object","properties":{"size":{"type":"integer"}}}},
		"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"template":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}},
		"odd-name":{"type":"boolean"}}}}}}},
		{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// Kubernetes' type checker has the same warnings for random expressions in policies for random
// built-in and custom kinds.
func TestPolicyTypes(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal([]byte(widgetCRD), &crd); err != nil {
		t.Fatal(err)
	}
	widgets, err := compile.Definition(&crd)
	if err != nil {
		t.Fatal(err)
	}
	set := resource.NewSet(append(builtin.Definitions(), widgets))
	theirs := &validating.TypeChecker{SchemaResolver: models{set}, RestMapper: mapperOf(set)}
	rng := rand.New(rand.NewPCG(5, 6))
	warned := 0
	ofCustom := 0
	for range volume(80) {
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{}
		for range 1 + rng.IntN(2) {
			r := admissionregistrationv1.NamedRuleWithOperations{}
			r.APIGroups = anyOf(rng, []string{""}, []string{"apps"}, []string{"apps", "batch"}, []string{"", "autoscaling"}, []string{"*"})
			about := rng.IntN(3) == 0
			r.APIVersions = anyOf(rng, []string{"v1"}, []string{"v1"}, []string{"v2", "v1"}, []string{"*"})
			r.Resources = anyOf(rng, []string{"deployments", "jobs"}, []string{"pods"}, []string{"pod", "services"}, []string{"horizontalpodautoscalers", "configmaps"}, []string{"deployments/scale", "deployments"}, []string{"*"},
				[]string{"events"}, []string{"pods", "services", "configmaps", "secrets", "nodes", "namespaces", "endpoints", "limitranges", "podtemplates", "replicationcontrollers", "serviceaccounts", "resourcequotas"})
			if about {
				r.APIGroups, r.Resources = anyOf(rng, []string{"example.com"}, []string{"", "example.com"}), anyOf(rng, []string{"widgets"}, []string{"widget"}, []string{"widgets", "pods"})
			}
			p.Spec.MatchConstraints.ResourceRules = append(p.Spec.MatchConstraints.ResourceRules, r)
		}
		if rng.IntN(2) == 0 {
			p.Spec.ParamKind = anyOf(rng, &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}, &admissionregistrationv1.ParamKind{APIVersion: "example.com/v1", Kind: "None"}, &admissionregistrationv1.ParamKind{APIVersion: "example.com/v1", Kind: "Widget"})
		}
		expression := func() string {
			if rng.IntN(3) == 0 {
				return anyOf(rng, "object.spec.ratio > 1", "object.spec.ratio > 1.0", "object.spec.when == 'x'", "object.spec.when < timestamp('2020-01-01T00:00:00Z')", "object.spec.port == 1", "type(object.spec.port) == int ? object.spec.port > 1 : object.spec.port == 'a'",
					"object.spec.parts.all(p, p.name != '' && p.__in__ == 'a')", "object.spec.parts.all(p, p.nam != '')", "object.spec.named['a'].size > 1", "object.spec.named.all(k, object.spec.named[k].sise > 1)", "object.spec.free.anything == 1", "object.spec.template.metadata.name == 'a'",
					"object.spec.template.kind + object.spec.template.spec == 'a'", "object.spec.odd__dash__name", "object.spec.odd == 1", "object.metadata.name + object.kind == 1", "has(object.spec.free) && object.spec.free", "params.spec.replicas == 'a'", "params.spec.ratio", "object.status.x")
			}
			return anyOf(rng, "object.spec.replicas > 1", "object.spec.replicas == 'a'", "object.spec.template.spec.containers.all(c, c.image != '')", "object.spec.template.spec.containers.all(c, c.imag != '')",
				"object.metadata.name == 'x'", "object.metadata.labels['a'] == 'b'", "object.metadata.nope == 1", "object.data.x == 'y'", "oldObject.spec.nodeName == object.spec.nodeName", "params.data['x'] == 'y'", "params.dada == 1",
				"variables.a == 1", "variables.b == 'x'", "variables.c", "variables.a.foo == 1", "request.operation == 1", "request.nope", "namespaceObject.metadata.name == 'x'", "authorizer.group('').resource('pods').check('get').allowed()",
				"authorizer.requestResource.check('get').allowed()", "object.spec.strategy.rollingUpdate.maxSurge == 1", "object.spec.containers[0].resources.limits['cpu'] == '1'", "object.status.conditions.exists(c, c.type == 'x' && c.status == 1)",
				"object.spec.ports.all(p, p.targetPort == 'x')", "object.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z')", "object.metadata.creationTimestamp == 'x'", "object.spec.", "object == oldObject", "object.apiVersion + object.kind == 1")
		}
		for _, name := range []string{"a", "b", "c"}[:rng.IntN(4)] {
			p.Spec.Variables = append(p.Spec.Variables, admissionregistrationv1.Variable{Name: name, Expression: expression()})
		}
		for range 1 + rng.IntN(4) {
			v := admissionregistrationv1.Validation{Expression: expression()}
			if rng.IntN(3) == 0 {
				v.MessageExpression = expression()
			}
			p.Spec.Validations = append(p.Spec.Validations, v)
		}
		got, err := policytype.Check(set, p)
		if err != nil {
			t.Fatal(err)
		}
		var want, have []string
		for _, w := range theirs.Check(p) {
			want = append(want, w.FieldRef+": "+unnumbered(w.Warning))
			if strings.Contains(w.Warning, "Kind=Widget") {
				ofCustom++
			}
		}
		for _, w := range got {
			w := w.(map[string]any)
			have = append(have, fmt.Sprint(w["fieldRef"], ": ", unnumbered(w["warning"].(string))))
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Fatalf("-Kubernetes +anykind\n%s\n%+v", d, p.Spec)
		}
		warned += len(want)
	}
	if warned < volume(60) || ofCustom < volume(20) {
		t.Errorf("%d warnings, %d of them of the custom kind, are too few to show anything", warned, ofCustom)
	}
}

// numbered matches names of types with a number, which is arbitrary.
var numbered = regexp.MustCompile(`\b([A-Z][A-Za-z]+)[0-9]+\b`)

func unnumbered(s string) string { return numbered.ReplaceAllString(s, "$1") }

// models resolves the schemas of kinds by their models.
type models struct{ *resource.Set }

func (m models) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	for d := range m.All() {
		if d.Group != kind.Group || d.Kind != kind.Kind || d.Version(kind.Version) == nil {
			continue
		}
		model := d.Version(kind.Version).Schema.Model()
		return resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
			s, ok := model.Schemas[ref[strings.LastIndexByte(ref, '/')+1:]]
			return s, ok
		}, model.Name)
	}
	return nil, resolver.ErrSchemaNotFound
}

func mapperOf(set *resource.Set) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for d := range set.All() {
		for _, v := range d.Versions {
			if v.Served {
				gv := schema.GroupVersion{Group: d.Group, Version: v.Name}
				mapper.AddSpecific(gv.WithKind(d.Kind), gv.WithResource(d.Plural), gv.WithResource(d.Singular), meta.RESTScopeRoot)
			}
		}
	}
	return mapper
}
