package quota

import "testing"

func TestConfiguration(t *testing.T) {
	const v1 = "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n"
	tests := []struct {
		name, text, err string
		limited         int
	}{
		{name: "none"},
		{name: "nothing is limited", text: v1},
		{name: "old versions", text: "apiVersion: resourcequota.admission.k8s.io/v1beta1\nkind: Configuration\nlimitedResources: [{resource: pods}]", limited: 1},
		{name: "of a group", text: v1 + "limitedResources: [{apiGroup: apps, resource: deployments, matchContains: [count/]}, {resource: pods, matchScopes: [{scopeName: BestEffort, operator: Exists}]}]", limited: 2},
		{name: "no resource", text: v1 + "limitedResources: [{apiGroup: apps}]", err: `limitedResources[0].resource: Required value`},
		{name: "no kind", text: "apiVersion: v1\nkind: Pod", err: `no kind "Pod" is registered for version "v1"`},
		{name: "an unknown field", text: v1 + "limited: []", err: `error unmarshaling JSON: while decoding JSON: json: unknown field "limited"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var data []byte
			if test.text != "" {
				data = []byte(test.text)
			}
			c, err := read(data)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if said != test.err || len(c.LimitedResources) != test.limited && err == nil {
				t.Errorf("%+v, %q, want %q", c, said, test.err)
			}
		})
	}
}
