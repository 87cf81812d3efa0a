package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// ruled returns a CustomResourceDefinition with properties and validation rules for its objects.
func ruled(kind, properties string, rules ...string) string {
	var all []string
	for _, r := range rules {
		all = append(all, fmt.Sprintf(`{"rule":%q}`, r))
	}
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.example.com"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":%[1]q,"kind":%q},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":%s,"x-kubernetes-validations":[%s]}}}]}}`, plural, kind, properties, strings.Join(all, ","))
}

// The log has the reason why a definition with expensive rules is rejected, and bounds that would be
// sufficient.
func TestCostsAreLogged(t *testing.T) {
	var log bytes.Buffer
	a := start(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	c := client(t, a, admin(t, a))
	properties := func(maxItems, maxLength string) string {
		return fmt.Sprintf(`{"foo":{"type":"array"%s,"items":{"type":"string"%s},"x-kubernetes-validations":[{"rule":"self.all(x, x.contains('a string'))"}]}}`, maxItems, maxLength)
	}
	code, answer := ask(t, c, "POST", a.URL()+definitions, "", ruled("Text", properties("", ""), "true"))
	if code != 422 || !strings.Contains(answer, "estimated rule cost exceeds budget by factor of more than 100x") {
		t.Errorf("%d %s", code, answer)
	}
	code, answer = ask(t, c, "POST", a.URL()+definitions, "", ruled("Text", properties(`,"maxItems":4096`, `,"maxLength":4096`), "true"))
	if code != 201 {
		t.Errorf("with the bounds that the log names: %d %s", code, answer)
	}
	stop(t, a)
	const foo = "spec.validation.openAPIV3Schema.properties[foo]"
	for _, want := range []string{
		`msg="a rule of a CustomResourceDefinition costs too much" name=texts.example.com path=` + foo + `.x-kubernetes-validations[0].rule`,
		`="` + foo + `: maxItems: 4096"`, `="` + foo + `.items: maxLength: 4096"`, "limit=10000000",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %s:\n%s", want, log.String())
		}
	}
}
