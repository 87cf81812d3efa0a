package admission

import (
	"testing"
)

func TestSelect(t *testing.T) {
	plugins := []Plugin{{Name: "AlwaysDeny"}, {Name: "MutatingAdmissionWebhook"}, {Name: "NamespaceLifecycle"}}
	tests := []struct {
		name            string
		enable, disable []string
		want            []string
		err             string
	}{
		{name: "some are on by default, in Kubernetes' order", want: []string{"NamespaceLifecycle", "MutatingAdmissionWebhook"}},
		{name: "one is off", disable: []string{"NamespaceLifecycle"}, want: []string{"MutatingAdmissionWebhook"}},
		{name: "one that is on", enable: []string{"NamespaceLifecycle"}, want: []string{"NamespaceLifecycle", "MutatingAdmissionWebhook"}},
		{name: "one that is off by default", enable: []string{"AlwaysDeny"}, want: []string{"NamespaceLifecycle", "MutatingAdmissionWebhook", "AlwaysDeny"}},
		{name: "one of kube-apiserver that is not here is off anyway", disable: []string{"LimitRanger"}, want: []string{"NamespaceLifecycle", "MutatingAdmissionWebhook"}},
		{name: "and cannot be on", enable: []string{"LimitRanger"},
			err: `enable-admission-plugins plugin "LimitRanger" is not part of anykind: leave it out`},
		{name: "no plugin at all, off", disable: []string{"Namespace"}, err: `disable-admission-plugins plugin "Namespace" is unknown`},
		{name: "no plugin at all, on", enable: []string{"namespacelifecycle"}, err: `enable-admission-plugins plugin "namespacelifecycle" is unknown`},
		{name: "on and off", enable: []string{"NamespaceLifecycle"}, disable: []string{"NamespaceLifecycle"},
			err: `"NamespaceLifecycle" is in enable-admission-plugins and in disable-admission-plugins: it can only be in one of them`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			on, err := Select(plugins, test.enable, test.disable)
			if said := errorText(err); said != test.err {
				t.Fatalf("error %q, want %q", said, test.err)
			}
			if len(on) != len(test.want) {
				t.Fatalf("%v, want %v", on, test.want)
			}
			for i, want := range test.want {
				if on[i].Name != want {
					t.Errorf("%v, want %v", on, test.want)
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
