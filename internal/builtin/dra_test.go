package builtin

import (
	"testing"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

// Errors of claims are those of kube-apiserver.
func TestClaims(t *testing.T) {
	const (
		one    = `{name: a, exactly: {deviceClassName: gpu}}`
		either = `{name: a, firstAvailable: [{name: big, deviceClassName: gpu, allocationMode: All}, {name: small, deviceClassName: gpu}]}`
	)
	selected := func(expression string) string {
		return `{requests: [{name: a, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: "` + expression + `"}}]}}]}`
	}
	const reference = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
	for _, tt := range []struct {
		old, devices string
		want         []string
	}{
		{"", `{}`, nil},
		{"", `{requests: [` + one + `]}`, nil},
		{"", `{requests: [` + either + `], constraints: [{requests: [a, a/big], matchAttribute: example.com/numa}]}`, nil},
		{"", `{requests: [{name: a}]}`, []string{"spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"}},
		{"", `{requests: [` + one + `, ` + one + `]}`, []string{`spec.devices.requests[1]: Duplicate value: {"name":"a","exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":1}}`}},
		{"", `{requests: [{name: a, exactly: {}}]}`, []string{"spec.devices.requests[0].exactly.deviceClassName: Required value"}},
		{"", `{requests: [{name: a, exactly: {deviceClassName: gpu, allocationMode: All, count: 2}}]}`, []string{
			"spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
		}},
		{"", `{requests: [{name: a, exactly: {deviceClassName: gpu, allocationMode: Some}}]}`, []string{
			`spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"`,
		}},
		{"", `{requests: [` + either + `], constraints: [{requests: [a/huge], matchAttribute: example.com/numa}]}`, []string{
			`spec.devices.constraints[0].requests[0]: Invalid value: "a/huge": ` + reference,
		}},
		{"", `{requests: [` + one + `], constraints: [{requests: [a], matchAttribute: numa}]}`, []string{
			`spec.devices.constraints[0].matchAttribute: Invalid value: "numa": a fully qualified name must be a domain and a name separated by a slash`,
		}},
		{"", `{requests: [` + one + `], config: [{requests: [a]}]}`, []string{"spec.devices.config[0].opaque: Required value"}},
		{"", `{requests: [` + one + `], config: [{opaque: {driver: gpu.example.com, parameters: [1]}}]}`, []string{
			`spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object`,
		}},
		{"", selected(`device.driver == 'gpu.example.com'`), nil},
		{"", selected(`device.driver`), []string{
			`spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "device.driver": must evaluate to bool or the unknown type, not string`,
		}},
		{"", selected(`device.attributes['a'].exists(x, device.attributes['b'].exists(y, device.attributes['c'].exists(z, device.attributes['d'].exists(w, x == y))))`), []string{
			"spec.devices.requests[0].exactly.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit",
		}},
		{`{requests: [` + one + `]}`, `{requests: [` + one + `]}`, nil},
		{`{requests: [` + one + `]}`, `{requests: [` + either + `]}`, []string{"spec: Invalid value: null: field is immutable"}},
	} {
		d := definition(t, "resourceclaims")
		claim := func(devices string) map[string]any {
			return read(t, `{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: a, namespace: a}, spec: {devices: `+devices+`}}`)
		}
		var old map[string]any
		if tt.old != "" {
			old, _ = write(t, d, claim(tt.old), nil)
		}
		_, errs := write(t, d, claim(tt.devices), old)
		same(t, tt.devices, messages(errs), tt.want)
	}
}

// Errors of slices in old versions. Errors of the type name fields of the client's version, others
// name fields of v1.
func TestErrorsOfOldVersions(t *testing.T) {
	exactly := func(more string) string {
		return `{name: one, exactly: {deviceClassName: gpu, allocationMode: ` + more + `}}`
	}
	for _, tt := range []struct{ plural, spec, v1, v1beta1 string }{
		{"resourceclaims", `{devices: {requests: [` + exactly("Some") + `]}}`,
			`spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"`,
			`spec.devices.requests[0].allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"`},
		{"resourceclaims", `{devices: {requests: [` + exactly("All, count: 1") + `]}}`,
			"spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when allocationMode is 'All'",
			"spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when allocationMode is 'All'"},
		{"resourceclaims", `{devices: {requests: [` + exactly("All") + `, ` + exactly("All") + `]}}`,
			`spec.devices.requests[1]: Duplicate value: {"name":"one","exactly":{"deviceClassName":"gpu","allocationMode":"All"}}`,
			`spec.devices.requests[1]: Duplicate value: {"name":"one","deviceClassName":"gpu","allocationMode":"All"}`},
		{"resourceslices", `{nodeName: node, driver: d.example.com, pool: {name: p, resourceSliceCount: 1}, devices: [{name: gpu, taints: [{key: k, effect: Some}]}]}`,
			`spec.devices[0].taints[0].effect: Unsupported value: "Some": supported values: "NoExecute", "NoSchedule", "None"`,
			`spec.devices[0].basic.taints[0].effect: Unsupported value: "Some": supported values: "NoExecute", "NoSchedule", "None"`},
	} {
		d := definition(t, tt.plural)
		for version, want := range map[string]string{"v1": tt.v1, "v1beta1": tt.v1beta1} {
			obj := read(t, `{apiVersion: resource.k8s.io/v1, kind: `+d.Kind+`, metadata: {name: a, namespace: a}, spec: `+tt.spec+`}`)
			same(t, version+" "+tt.spec, messages(d.Validate(t.Context(), &resource.Change{Object: obj, Version: version})), []string{want})
		}
	}
}

func TestSlices(t *testing.T) {
	const pool = `driver: gpu.example.com, pool: {name: a, resourceSliceCount: 1}`
	shared := func(policy string) string {
		return `{` + pool + `, allNodes: true, devices: [{name: a, allowMultipleAllocations: true, capacity: {memory: {value: 8Gi, requestPolicy: ` + policy + `}}}]}`
	}
	const at = "spec.devices[0].capacity[memory].requestPolicy."
	for _, tt := range []struct {
		spec string
		want []string
	}{
		{`{` + pool + `, nodeName: node}`, nil},
		{`{` + pool + `}`, []string{"spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"}},
		{`{` + pool + `, nodeName: node, allNodes: true}`, []string{
			"spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set",
		}},
		{`{` + pool + `, allNodes: false}`, []string{
			"spec.allNodes: Invalid value: false: must be either unset or set to true",
			"spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
		}},
		{`{` + pool + `, nodeName: node, devices: [{name: a, attributes: {model: {version: "1"}}}]}`, []string{
			`spec.devices[0].attributes[model].version: Invalid value: "1": must be a string compatible with semver.org spec 2.0.0`,
		}},
		{`{` + pool + `, nodeName: node, devices: [{name: a, nodeName: node}]}`, []string{
			"spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
		}},
		{`{` + pool + `, nodeName: node, devices: [{name: a, taints: [{key: k, effect: Never}]}]}`, []string{
			`spec.devices[0].taints[0].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"`,
		}},
		{`{` + pool + `, nodeName: node, devices: [{name: a, bindingConditions: [c]}]}`, []string{
			"spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions",
		}},
		{shared(`{default: 1Gi, validRange: {min: 1Gi, max: 4Gi, step: 1Gi}}`), nil},
		{shared(`{default: 1Gi, validRange: {min: 1Gi, max: 16Gi, step: 3Gi}}`), []string{
			at + `validRange.max: Invalid value: "16Gi": max is larger than capacity value: 8Gi`,
		}},
		{shared(`{default: 2Gi, validRange: {min: 1Gi, step: 3Gi}}`), []string{
			at + `validRange.step: Invalid value: "2Gi": value is not a multiple of a given step (3Gi) from (1Gi)`,
		}},
		{shared(`{default: 3Gi, validValues: [1Gi, 2Gi]}`), []string{
			at + `validValues: Invalid value: "3Gi": default value is not valid according to the requestPolicy`,
		}},
	} {
		obj := read(t, `{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: a}, spec: `+tt.spec+`}`)
		_, errs := write(t, definition(t, "resourceslices"), obj, nil)
		same(t, tt.spec, messages(errs), tt.want)
	}
}

// A driver can only report allocated devices. The report of a device is removed with its
// allocation.
func TestStatusOfClaims(t *testing.T) {
	claim := func(status string) map[string]any {
		return read(t, `{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: a, namespace: a},
			spec: {devices: {requests: [{name: one, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}, status: `+status+`}`)
	}
	const allocation = `allocation: {devices: {results: [{request: one, driver: d.example.com, pool: p, device: gpu-0}]}}`
	d := definition(t, "resourceclaims")
	status := d.Versions[0].Subresource("status")
	for _, tt := range []struct {
		old, in, devices string
		want             []string
	}{
		{`{}`, `{` + allocation + `, devices: [{driver: d.example.com, pool: p, device: gpu-0}]}`, "gpu-0", nil},
		{`{}`, `{` + allocation + `, devices: [{driver: d.example.com, pool: p, device: gpu-1}]}`, "gpu-1", []string{
			`status.devices[0]: Invalid value: {"Driver":"d.example.com","Pool":"p","Device":"gpu-1","ShareID":""}: must be an allocated device in the claim`,
		}},
		{`{` + allocation + `}`, `{devices: [{driver: d.example.com, pool: p, device: gpu-0}]}`, "", nil},
		{`{}`, `{reservedFor: [{resource: pods, name: a, uid: b}]}`, "", []string{"status.reservedFor: Forbidden: may not be specified when `allocated` is not set"}},
		{`{` + allocation + `}`, `{allocation: {devices: {}}}`, "", []string{"status.allocation: Invalid value: null: field cannot be modified once set"}},
	} {
		c := &resource.Change{Object: claim(tt.in), Old: claim(tt.old), Subresource: "status"}
		status.Revert(t.Context(), c)
		d.Prepare(t.Context(), c)
		same(t, tt.in, messages(status.Validate(t.Context(), c)), tt.want)
		name := ""
		devices, _ := c.Object["status"].(map[string]any)["devices"].([]any)
		for _, device := range devices {
			name += device.(map[string]any)["device"].(string)
		}
		same(t, "devices of "+tt.in, name, tt.devices)
	}
}

// The time of a taint is that of the write, or the client's. The zero time stays, as null.
func TestTimesOfTaints(t *testing.T) {
	d := definition(t, "devicetaintrules")
	for taint, want := range map[string]string{
		"":                                    "now",
		", timeAdded: null":                   "now",
		`, timeAdded: "2020-01-02T03:04:05Z"`: "2020-01-02T03:04:05Z",
		`, timeAdded: "0001-01-01T00:00:00Z"`: "null",
	} {
		obj, errs := write(t, d, read(t, `{apiVersion: resource.k8s.io/v1, kind: DeviceTaintRule, metadata: {name: a}, spec: {taint: {key: a, effect: None`+taint+`}}}`), nil)
		got := "null"
		switch at, _ := kind.Tree(obj, "spec", "taint")["timeAdded"].(string); {
		case at != "" && at != "2020-01-02T03:04:05Z":
			got = "now"
		case at != "":
			got = at
		}
		if len(errs) > 0 || got != want {
			t.Errorf("%s: %s, want %s; %v", taint, got, want, errs)
		}
	}
}
