package builtin

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/resource"
)

// writeStatus runs the hooks of a status update up to validation.
func writeStatus(t testing.TB, d *resource.Definition, obj, old map[string]any) (map[string]any, field.ErrorList) {
	t.Helper()
	v := d.Versions[0]
	obj, _, err := v.Schema.Complete(obj)
	if err != nil {
		t.Fatal(err)
	}
	s, c := v.Subresource("status"), &resource.Change{Object: obj, Old: old, Subresource: "status"}
	s.Revert(t.Context(), c)
	if d.Prepare != nil {
		d.Prepare(t.Context(), c)
	}
	validate := d.Validate
	if s.Validate != nil {
		validate = s.Validate
	}
	return obj, validate(t.Context(), c)
}

const pv = `capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce]`

// Errors of volumes, claims and storage kinds are those of kube-apiserver. old is the replaced
// object, if any.
func TestValidateStorage(t *testing.T) {
	for _, tt := range []struct {
		plural, old, object string
		want                []string
	}{
		{"persistentvolumes", "", `{spec: {` + pv + `, nfs: {server: s, path: /p}}}`, nil},
		{"persistentvolumes", "", `{metadata: {annotations: {volume.beta.kubernetes.io/mount-options: a}}, spec: {` + pv + `, hostPath: {path: /p}}}`, []string{
			"metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount options for this volume type",
		}},
		{"persistentvolumes", `{spec: {` + pv + `, csi: {driver: d, volumeHandle: h}}}`,
			`{spec: {` + pv + `, volumeMode: Block, csi: {driver: d, volumeHandle: h, controllerExpandSecretRef: {name: a, namespace: b}}}}`, []string{
				`volumeMode: Invalid value: "Block": field is immutable`, // but a secret may be added
			}},
		{"persistentvolumes", `{spec: {` + pv + `, local: {path: /a}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: beta.kubernetes.io/os, operator: Exists}]}]}}}}`,
			`{spec: {` + pv + `, local: {path: /a}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: Exists}]}]}}}}`, nil},
		{"persistentvolumes", `{spec: {` + pv + `, local: {path: /a}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}`,
			`{spec: {` + pv + `, local: {path: /a}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: b, operator: Exists}]}]}}}}`, []string{
				`nodeAffinity: Invalid value: {"Required":{"NodeSelectorTerms":[{"MatchExpressions":[{"Key":"b","Operator":"Exists","Values":null}],"MatchFields":null}]}}: field is immutable, except for updating from beta label to GA`,
			}},

		// The volume and the class of a claim can be set once, and a bound claim can grow.
		{"persistentvolumeclaims", `{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
			`{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: a, storageClassName: b}}`, nil},
		{"persistentvolumeclaims", `{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}, status: {phase: Bound}}`,
			`{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}`, nil},
		{"persistentvolumeclaims", `{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 3Gi}}}, status: {phase: Bound, capacity: {storage: 1Gi}}}`,
			`{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}`, nil}, // it could not grow
		{"persistentvolumeclaims", `{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 3Gi}}}, status: {phase: Bound, capacity: {storage: 2Gi}}}`,
			`{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}`, []string{
				"spec.resources.requests.storage: Forbidden: field can not be less than status.capacity",
			}},
		{"persistentvolumeclaims", `{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: a}}`,
			`{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: b}}`, []string{
				"spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n" +
					"@@ -9,7 +9,7 @@\n    \"storage\": \"1Gi\"\n   }\n  },\n- \"VolumeName\": \"a\",\n+ \"VolumeName\": \"b\",\n  \"StorageClassName\": null,\n  \"VolumeMode\": \"Filesystem\",\n  \"DataSource\": null,\n",
			}},

		{"storageclasses", `{provisioner: a.b/c, parameters: {a: b}}`, `{provisioner: A/b/c, reclaimPolicy: Recycle, volumeBindingMode: x, allowedTopologies: [{matchLabelExpressions: [{key: a, values: [b, b]}]}, {matchLabelExpressions: [{key: a, values: [b]}]}]}`, []string{
			`volumeBindingMode: Unsupported value: "x": supported values: "Immediate", "WaitForFirstConsumer"`,
			`provisioner: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
			`reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"`,
			`allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "b"`,
			`allowedTopologies[1].matchLabelExpressions: Duplicate value: ""`,
			`parameters: Invalid value: null: field is immutable`, `provisioner: Invalid value: null: field is immutable`,
			`reclaimPolicy: Invalid value: null: field is immutable`, `volumeBindingMode: Invalid value: null: field is immutable`,
		}},
		{"volumeattributesclasses", `{driverName: a, parameters: {a: b}}`, `{driverName: b}`, []string{
			`parameters: Required value: must contain at least one key/value pair`,
			`driverName: Forbidden: updates to driverName are forbidden.`, `parameters: Forbidden: updates to parameters are forbidden.`,
		}},
		{"csidrivers", `{}`, `{spec: {attachRequired: false, fsGroupPolicy: x, volumeLifecycleModes: [z], tokenRequests: [{audience: a, expirationSeconds: 1}, {audience: a}], nodeAllocatableUpdatePeriodSeconds: 1}}`, []string{
			`spec.fsGroupPolicy: Unsupported value: "x": supported values: "File", "None", "ReadWriteOnceWithFSType"`,
			`spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes`,
			`spec.tokenRequests[1].audience: Duplicate value: "a"`,
			`spec.volumeLifecycleModes: Unsupported value: "z": supported values: "Persistent", "Ephemeral"`,
			`spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 1: must be greater than or equal to 10 seconds`,
			`spec.attachedRequired: Invalid value: false: field is immutable`,
			`spec.volumeLifecycleModes: Invalid value: ["z"]: field is immutable`,
		}},
		{"csinodes", `{spec: {drivers: [{name: a, nodeID: node, topologyKeys: [k], allocatable: {count: 1}}]}}`, `{spec: {drivers: [{name: a, nodeID: node, topologyKeys: [k], allocatable: {count: 2}}]}}`, nil},
		{"csinodes", `{spec: {drivers: [{name: a, nodeID: node, topologyKeys: [k]}]}}`, `{spec: {drivers: [{name: a, nodeID: m, topologyKeys: [k, k]}, {name: a, nodeID: "", topologyKeys: []}]}}`, []string{
			`spec.drivers[0]: Duplicate value: "k"`,
			`spec.drivers[1].nodeID: Required value`, `spec.drivers[1].name: Duplicate value: "a"`,
			`spec.drivers: Invalid value: {"Name":"a","NodeID":"m","TopologyKeys":["k","k"],"Allocatable":null}: field is immutable`,
			`spec.drivers: Invalid value: {"Name":"a","NodeID":"","TopologyKeys":[],"Allocatable":null}: field is immutable`,
		}},
		{"csistoragecapacities", `{storageClassName: a, nodeTopology: {}}`, `{storageClassName: b, capacity: "-1"}`, []string{
			`capacity: Invalid value: "-1": must be greater than or equal to 0`,
			`nodeTopology: Invalid value: null: field is immutable`, `storageClassName: Invalid value: "b": field is immutable`,
		}},
		{"volumeattachments", "", `{spec: {attacher: a, nodeName: node, source: {}}}`, []string{
			`spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName`,
		}},
		{"volumeattachments", `{spec: {attacher: a, nodeName: node, source: {persistentVolumeName: p}}}`, `{spec: {attacher: a, nodeName: node, source: {persistentVolumeName: ""}}}`, []string{
			`spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName`,
			`spec.source.persistentVolumeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`spec: Invalid value: null: field is immutable`,
		}},

		{"resourcequotas", `{spec: {scopes: [BestEffort]}}`, `{spec: {scopes: [BestEffort, NotBestEffort], hard: {cpu: 1, pods: 1500m, storage: 1, example.com/a: "-1"}}}`, []string{
			`spec.hard[example.com/a]: Invalid value: "-1": must be greater than or equal to 0`,
			`spec.hard[pods]: Invalid value: "1500m": must be an integer`,
			`spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota`,
			`spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: unsupported scope applied to resource`,
			`spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes`,
			`spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: field is immutable`,
		}},
		{"limitranges", "", `{spec: {limits: [{type: Container, max: {cpu: 1}, min: {cpu: 2}, default: {cpu: 3}, maxLimitRequestRatio: {memory: 500m}}, {type: Pod, default: {cpu: 1}}, {type: PersistentVolumeClaim}]}}`, []string{
			`spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1`,
			`spec.limits[0].defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than max value 1`,
			`spec.limits[0].default[cpu]: Invalid value: "1": default value 3 is greater than max value 1`,
			`spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: "500m": ratio 500m is less than 1`,
			"spec.limits[1].default: Forbidden: may not be specified when `type` is 'Pod'",
			`spec.limits[2].limits: Required value: either minimum or maximum storage value is required, but neither was provided`,
		}},
		{"nodes", `{spec: {podCIDR: 10.0.0.0/24, providerID: a}}`, `{spec: {podCIDRs: [10.0.1.0/24, 10.0.2.0/24], taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}, {key: b, effect: x}]}}`, []string{
			`metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair`,
			`metadata.taints[2].effect: Unsupported value: "x": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
			`spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid`,
			`spec.providerID: Invalid value: null: field cannot be cleared once set`,
			`spec.podCIDRs: Invalid value: ["10.0.1.0/24","10.0.2.0/24"]: may specify no more than one CIDR for each IP family`,
		}},
	} {
		d := definition(t, tt.plural)
		var old map[string]any
		if tt.old != "" {
			var err error
			if old, _, err = d.Versions[0].Schema.Complete(read(t, tt.old)); err != nil {
				t.Fatal(err)
			}
		}
		_, errs := write(t, d, read(t, tt.object), old)
		same(t, tt.plural+" "+tt.object, messages(errs), tt.want)
	}
}

// The two data source fields of a claim are kept consistent. Sources that are only valid in
// dataSourceRef are dropped from dataSource.
func TestDataSources(t *testing.T) {
	d := definition(t, "persistentvolumeclaims")
	const claim, other, elsewhere = `{kind: PersistentVolumeClaim, name: a}`, `{apiGroup: x.y, kind: K, name: a}`, `{apiGroup: x.y, kind: K, name: a, namespace: other}`
	for _, tt := range []struct{ old, source, ref, want string }{
		{"", claim, "null", `{dataSource: ` + claim + `, dataSourceRef: ` + claim + `}`},
		{"", "null", other, `{dataSource: ` + other + `, dataSourceRef: ` + other + `}`},
		{"", other, "null", `{}`},
		{"", "null", elsewhere, `{}`},
		{`{spec: {dataSourceRef: ` + elsewhere + `}}`, "null", elsewhere, `{dataSourceRef: ` + elsewhere + `}`},
	} {
		var old map[string]any
		if tt.old != "" {
			old = read(t, tt.old)
		}
		got, _ := write(t, d, read(t, `{spec: {dataSource: `+tt.source+`, dataSourceRef: `+tt.ref+`}}`), old)
		spec, want := got["spec"].(map[string]any), read(t, tt.want)
		for _, name := range []string{"dataSource", "dataSourceRef"} {
			source, _ := spec[name].(map[string]any)
			if _, ok := source["apiGroup"]; ok && source["apiGroup"] == nil {
				delete(source, "apiGroup") // nil for the core group
			}
			same(t, tt.source+" "+tt.ref+" "+name, spec[name], want[name])
		}
	}

	stored := read(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {dataSource: `+other+`}}`)
	d.Versions[0].Schema.Default(stored)
	same(t, "what another server has stored", stored["spec"].(map[string]any)["dataSourceRef"], any(read(t, other)))
}

// The server sets the transition time of the phase, unless the client does.
func TestPhaseOfVolume(t *testing.T) {
	const then, later = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"
	d := definition(t, "persistentvolumes")
	old := read(t, `{status: {phase: Pending, lastPhaseTransitionTime: "`+then+`"}}`)
	for status, want := range map[string][]string{
		`{phase: Pending}`: {then},
		`{phase: Pending, lastPhaseTransitionTime: "` + later + `"}`: {later},
		`{phase: Bound, lastPhaseTransitionTime: "` + later + `"}`:   {later},
		`{phase: Bound}`: nil,
		`{phase: Bound, lastPhaseTransitionTime: "` + then + `"}`: nil,
	} {
		got, errs := writeStatus(t, d, read(t, `{status: `+status+`}`), old)
		at, _ := got["status"].(map[string]any)["lastPhaseTransitionTime"].(string)
		if len(errs) > 0 || want == nil && (at <= later) || want != nil && !slices.Contains(want, at) {
			t.Errorf("%s: changed at %q, %v", status, at, errs)
		}
	}
}

// A claim without a class gets the newest default class, with either annotation.
func TestDefaultStorageClass(t *testing.T) {
	class := func(name, created, annotation string) map[string]any {
		return read(t, `{metadata: {name: `+name+`, creationTimestamp: "`+created+`", annotations: {`+annotation+`}}}`)
	}
	const is, was = `storageclass.kubernetes.io/is-default-class: "true"`, `storageclass.beta.kubernetes.io/is-default-class: "true"`
	for want, all := range map[string][]map[string]any{
		"":  {class("a", "2026-01-02T03:04:05Z", ""), class("b", "2026-01-02T03:04:05Z", `storageclass.kubernetes.io/is-default-class: "false"`)},
		"a": {class("b", "2026-01-02T03:04:05Z", is), class("a", "2026-01-02T03:04:05Z", was), class("c", "2026-01-02T03:04:06Z", "")},
		"b": {class("a", "2026-01-02T03:04:05Z", is), class("b", "2026-01-02T03:04:06Z", is)},
	} {
		if got := definition(t, "storageclasses").StorageVersion().DefaultOf(all); got != want {
			t.Errorf("%q is the default, want %q", got, want)
		}
	}
}
