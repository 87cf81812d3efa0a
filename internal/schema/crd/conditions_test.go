package crd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/crd/conditions"
)

var (
	monday  = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	tuesday = monday.AddDate(0, 0, 1)
)

// request is a definition with requested and accepted names.
func request(asked string, accepted string) *v1.CustomResourceDefinition {
	c := &v1.CustomResourceDefinition{}
	c.Spec.Group = "example.com"
	c.Spec.Names = parseNames(asked)
	c.Status.AcceptedNames = parseNames(accepted)
	return c
}

// parseNames reads "plural singular Kind ListKind short,short".
func parseNames(s string) (n names) {
	f := append(strings.Fields(s), "", "", "", "", "")
	n.Plural, n.Singular, n.Kind, n.ListKind = f[0], f[1], f[2], f[3]
	if f[4] != "" {
		n.ShortNames = strings.Split(f[4], ",")
	}
	return n
}

func conditionText(c *v1.CustomResourceDefinition) (text string) {
	for _, cond := range c.Status.Conditions {
		text += fmt.Sprintf("%s %s=%s %s: %s\n", cond.LastTransitionTime.UTC().Weekday(), cond.Type, cond.Status, cond.Reason, cond.Message)
	}
	return text
}

func TestAccept(t *testing.T) {
	const (
		free = "NoConflicts: no conflicts found"
		mine = "foos foo Foo FooList f,fo"
	)
	for _, test := range []struct {
		name            string
		asked, accepted string
		others          []string
		want            string // accepted names
		because         string
	}{
		{"no other definition", mine, "", nil, mine, free},
		{"others with other names", mine, "", []string{"bars bar Bar BarList b"}, mine, free},
		{"others' kinds are not resources", mine, "", []string{"x y foos foo f2"}, mine, free},
		{"plural", mine, "", []string{"foos x X XList"}, "- foo Foo FooList f,fo", `PluralConflict: "foos" is already in use`},
		{"plural is another's singular", mine, "", []string{"x foos X XList"}, "- foo Foo FooList f,fo", `PluralConflict: "foos" is already in use`},
		{"singular is another's short name", mine, "", []string{"x y X XList foo"}, "foos - Foo FooList f,fo", `SingularConflict: "foo" is already in use`},
		{"a short name, then none", mine, "", []string{"x y X XList fo"}, "foos foo Foo FooList", `ShortNamesConflict: "fo" is already in use`},
		{"several short names", mine, "", []string{"x y X XList fo,f"}, "foos foo Foo FooList", `ShortNamesConflict: ["f" is already in use, "fo" is already in use]`},
		{"kind", mine, "", []string{"x y Foo XList"}, "foos foo - FooList f,fo", `KindConflict: "Foo" is already in use`},
		{"kind is another's list kind", mine, "", []string{"x y X Foo"}, "foos foo - FooList f,fo", `KindConflict: "Foo" is already in use`},
		{"the last conflict is told", mine, "", []string{"foos foo Foo FooList f"}, "", `ListKindConflict: "FooList" is already in use`},
		{"what was accepted stays", mine, mine, []string{mine}, mine, free},
		{"a new short name beside accepted ones", "foos foo Foo FooList f,fo,x", mine, []string{"x y X XList"}, mine, `ShortNamesConflict: "x" is already in use`},
		{"one's own plural is taken too", "foos foos Foo FooList", "foos foo Foo FooList", nil, "foos foo Foo FooList", `SingularConflict: "foos" is already in use`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var taken claims
			for _, o := range test.others {
				n := parseNames(o)
				taken.add(&n)
			}
			accepted := parseNames(test.accepted)
			taken.add(&accepted)
			got, c := accept(parseNames(test.asked), accepted, taken)
			want := parseNames(test.want)
			for _, f := range []*string{&want.Plural, &want.Singular, &want.Kind, &want.ListKind} {
				*f = strings.TrimPrefix(*f, "-")
			}
			if !sameNames(&got, &want) {
				t.Errorf("accepted %+v, want %+v", got, want)
			}
			if because := c.Reason + ": " + c.Message; because != test.because {
				t.Errorf("condition %s, want %s", because, test.because)
			}
		})
	}
}

func TestDecideStatus(t *testing.T) {
	c := request("foos foo Foo FooList", "")
	decideStatus(c, claims{}, monday)
	want := `Monday NamesAccepted=True NoConflicts: no conflicts found
Monday Established=True InitialNamesAccepted: the initial names have been accepted
`
	if got := conditionText(c); got != want {
		t.Errorf("decided\n%s\nwant\n%s", got, want)
	}
	decideStatus(c, claims{}, tuesday)
	if got := conditionText(c); got != want {
		t.Errorf("decided again\n%s\nwant\n%s", got, want)
	}

	// It stays established when a later name is rejected.
	taken := claims{}
	other := parseNames("bars bar Bar BarList b")
	taken.add(&other)
	c.Spec.Names.ShortNames = []string{"b"}
	decideStatus(c, taken, tuesday)
	want = `Tuesday NamesAccepted=False ShortNamesConflict: "b" is already in use
Monday Established=True InitialNamesAccepted: the initial names have been accepted
`
	if got := conditionText(c); got != want {
		t.Errorf("with a conflict\n%s\nwant\n%s", got, want)
	}
}

func TestDecideStatusAfterConflict(t *testing.T) {
	taken := claims{}
	other := parseNames("foos x X XList")
	taken.add(&other)
	c := request("foos foo Foo FooList", "")
	decideStatus(c, taken, monday)
	want := `Monday NamesAccepted=False PluralConflict: "foos" is already in use
Monday Established=False NotAccepted: not all names are accepted
`
	if got := conditionText(c); got != want {
		t.Errorf("with a conflict\n%s\nwant\n%s", got, want)
	}
	decideStatus(c, claims{}, tuesday)
	want = `Tuesday NamesAccepted=True NoConflicts: no conflicts found
Tuesday Established=True InitialNamesAccepted: the initial names have been accepted
`
	if got := conditionText(c); got != want {
		t.Errorf("when the name is free\n%s\nwant\n%s", got, want)
	}
}

func TestDecideStatusCABundle(t *testing.T) {
	c := request("foos foo Foo FooList", "")
	c.Spec.Conversion = &v1.CustomResourceConversion{Strategy: v1.WebhookConverter, Webhook: &v1.WebhookConversion{
		ClientConfig: &v1.WebhookClientConfig{CABundle: []byte("not a certificate")},
	}}
	decideStatus(c, claims{}, monday)
	want := `Monday NamesAccepted=True NoConflicts: no conflicts found
Monday Established=False InvalidCABundle: The conversion webhook CABundle is invalid
`
	if got := conditionText(c); got != want {
		t.Errorf("decided\n%s\nwant\n%s", got, want)
	}
	c.Spec.Conversion = nil
	decideStatus(c, claims{}, tuesday)
	if !conditions.IsTrue(&c.Status, v1.Established) {
		t.Errorf("without the webhook\n%s\nwant it established", conditionText(c))
	}
}

func TestDecideStatusApproval(t *testing.T) {
	const key = v1.KubeAPIApprovedAnnotation
	for value, want := range map[string]string{
		"":                         `False MissingAnnotation: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111`,
		"https://github.com/x/y/1": `True ApprovedAnnotation: approved in https://github.com/x/y/1`,
		"unapproved, testing":      `False UnapprovedAnnotation: not approved: "unapproved, testing"`,
		"yes":                      `False InvalidAnnotation: protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`,
	} {
		c := request("foos foo Foo FooList", "")
		c.Spec.Group = "x.k8s.io"
		c.Annotations = map[string]string{key: value}
		decideStatus(c, claims{}, monday)
		cond := conditions.Find(&c.Status, v1.KubernetesAPIApprovalPolicyConformant)
		if cond == nil || fmt.Sprintf("%s %s: %s", cond.Status, cond.Reason, cond.Message) != want {
			t.Errorf("%q: %+v, want %s", value, cond, want)
		}
	}
}

func TestDecideStatusNonStructural(t *testing.T) {
	c := request("foos foo Foo FooList", "")
	c.Spec.PreserveUnknownFields = true
	c.Spec.Versions = []v1.CustomResourceDefinitionVersion{{Name: "v1", Schema: &v1.CustomResourceValidation{
		OpenAPIV3Schema: &v1.JSONSchemaProps{Type: "object", Properties: map[string]v1.JSONSchemaProps{"a": {}}},
	}}}
	decideStatus(c, claims{}, monday)
	want := "Monday NonStructuralSchema=True Violations: [spec.preserveUnknownFields: Invalid value: true: must be false, spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields]\n"
	if got := conditionText(c); !strings.HasSuffix(got, want) {
		t.Errorf("decided\n%s\nwant\n%s", got, want)
	}
	c.Spec.PreserveUnknownFields = false
	decideStatus(c, claims{}, tuesday)
	if got := conditionText(c); strings.Contains(got, "NonStructural") {
		t.Errorf("without preserveUnknownFields\n%s", got)
	}
}
