package admission

import (
	"context"
	"testing"

	"github.com/anykind/anykind/internal/registry"
)

// refusing is an Admitter that can be told from others.
type refusing string

func (refusing) Mutate(context.Context, *registry.Admission) error   { return nil }
func (refusing) Validate(context.Context, *registry.Admission) error { return nil }

func TestSelect(t *testing.T) {
	plugins := []Plugin{{"NamespaceLifecycle", refusing("lifecycle")}, {"MutatingAdmissionWebhook", refusing("webhook")}}
	tests := []struct {
		name            string
		enable, disable []string
		want            []string
		err             string
	}{
		{name: "all are on to begin with", want: []string{"lifecycle", "webhook"}},
		{name: "one is off", disable: []string{"NamespaceLifecycle"}, want: []string{"webhook"}},
		{name: "one that is on", enable: []string{"NamespaceLifecycle"}, want: []string{"lifecycle", "webhook"}},
		{name: "one of kube-apiserver that is not here is off anyway", disable: []string{"LimitRanger"}, want: []string{"lifecycle", "webhook"}},
		{name: "and cannot be on", enable: []string{"LimitRanger"},
			err: `enable-admission-plugins plugin "LimitRanger" is not part of anykind: leave it out`},
		{name: "no plugin at all, off", disable: []string{"Namespace"}, err: `disable-admission-plugins plugin "Namespace" is unknown`},
		{name: "no plugin at all, on", enable: []string{"namespacelifecycle"}, err: `enable-admission-plugins plugin "namespacelifecycle" is unknown`},
		{name: "on and off", enable: []string{"NamespaceLifecycle"}, disable: []string{"NamespaceLifecycle"},
			err: `"NamespaceLifecycle" is in enable-admission-plugins and in disable-admission-plugins: it can only be in one of them`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			chain, err := Select(plugins, test.enable, test.disable)
			if said := errorText(err); said != test.err {
				t.Fatalf("error %q, want %q", said, test.err)
			}
			if len(chain) != len(test.want) {
				t.Fatalf("%v, want %v", chain, test.want)
			}
			for i, want := range test.want {
				if chain[i] != refusing(want) {
					t.Errorf("%v, want %v", chain, test.want)
				}
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
