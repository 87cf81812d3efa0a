package builtin

import (
	"encoding/base64"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object/resource"
)

const newEvent = `{metadata: {namespace: dev}, eventTime: "2026-01-02T03:04:05.000006Z", regarding: {namespace: dev, kind: Pod, name: p},
	reportingController: k8s.io/x, reportingInstance: i, action: a, reason: r, note: it, type: Normal}`

var unknownFinalizer = []string{`metadata.finalizers[0]: Invalid value: "foo": name is neither a standard finalizer name nor is it fully qualified`}

// Errors are those of kube-apiserver. old is the replaced object, if any.
func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		plural, old, object string
		want                []string
	}{
		{"configmaps", "", `{metadata: {name: x}, data: {a: b, A_.-1: c}, binaryData: {d: "YQ=="}}`, nil},
		{"configmaps", "", `{metadata: {name: x}, data: {a b: c, d: e, "..": x}, binaryData: {d: "", /: ""}}`, []string{
			`data[..]: Invalid value: "..": must not be '..'`,
			`data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`,
			`data[d]: Invalid value: "d": duplicate of key present in binaryData`,
			`binaryData[/]: Invalid value: "/": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`,
		}},
		{"configmaps", `{immutable: true, data: {a: b}}`, `{data: {a: c}, binaryData: {d: "YQ=="}}`, []string{
			"immutable: Forbidden: field is immutable when `immutable` is set",
			"data: Forbidden: field is immutable when `immutable` is set",
			"binaryData: Forbidden: field is immutable when `immutable` is set",
		}},
		{"configmaps", `{immutable: true, data: {a: b}}`, `{metadata: {labels: {a: b}}, immutable: true, data: {a: b}}`, nil},
		{"configmaps", `{immutable: true}`, `{immutable: true, data: {}}`, nil},
		{"configmaps", `{immutable: true}`, `{immutable: true, binaryData: {}}`, []string{"binaryData: Forbidden: field is immutable when `immutable` is set"}},
		{"configmaps", `{data: {a: b}}`, `{immutable: true, data: {a: c}}`, nil},

		{"secrets", "", `{metadata: {name: x}, data: {a: "YQ=="}}`, nil},
		{"secrets", `{type: Opaque}`, `{type: other}`, []string{`type: Invalid value: "other": field is immutable`}},
		{"secrets", `{type: kubernetes.io/tls}`, `{data: {}}`, []string{`type: Invalid value: "Opaque": field is immutable`}},
		{"secrets", `{type: Opaque, immutable: true, data: {a: "YQ=="}}`, `{immutable: true, stringData: {a: b}}`, []string{
			"data: Forbidden: field is immutable when `immutable` is set",
		}},
		{"secrets", `{type: Opaque, immutable: true, data: {a: "YQ=="}}`, `{immutable: true, stringData: {a: a}}`, nil},
		{"secrets", "", `{type: kubernetes.io/service-account-token}`, []string{`metadata.annotations[kubernetes.io/service-account.name]: Required value`}},
		{"secrets", "", `{type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: x}}}`, nil},
		{"secrets", "", `{type: kubernetes.io/dockercfg}`, []string{`data[.dockercfg]: Required value`}},
		{"secrets", "", `{type: kubernetes.io/dockercfg, stringData: {.dockercfg: "{"}}`, []string{`data[.dockercfg]: Invalid value: "<secret contents redacted>": unexpected end of JSON input`}},
		{"secrets", "", `{type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: "{}"}}`, nil},
		{"secrets", "", `{type: kubernetes.io/basic-auth}`, []string{`data[username]: Required value`, `data[password]: Required value`}},
		{"secrets", "", `{type: kubernetes.io/basic-auth, data: {password: ""}}`, nil},
		{"secrets", "", `{type: kubernetes.io/ssh-auth, data: {ssh-privatekey: ""}}`, []string{`data[ssh-privatekey]: Required value`}},
		{"secrets", "", `{type: kubernetes.io/tls, data: {tls.crt: ""}}`, []string{`data[tls.key]: Required value`}},

		{"serviceaccounts", "", `{metadata: {name: x, finalizers: [foo]}}`, unknownFinalizer},
		{"endpointslices", "", `{metadata: {name: x, finalizers: [foo]}, addressType: IPv4}`, unknownFinalizer},
		{"storageversionmigrations", "", `{metadata: {name: x, finalizers: [foo]}, spec: {resource: {resource: a}}}`, unknownFinalizer},
		{"events.events.k8s.io", "", strings.Replace(newEvent, "{metadata: {", "{metadata: {finalizers: [foo], ", 1), unknownFinalizer},
		{"events", "", `{metadata: {namespace: default, finalizers: [foo]}, involvedObject: {}}`, nil},
		{"leases", "", `{metadata: {name: x, finalizers: [foo]}}`, nil},

		{"events", "", `{metadata: {namespace: default}, involvedObject: {}}`, nil},
		{"events", "", `{metadata: {namespace: dev}, involvedObject: {namespace: dev}}`, nil},
		{"events", "", `{metadata: {namespace: dev}, involvedObject: {}}`, []string{`involvedObject.namespace: Invalid value: "": does not match event.namespace`}},
		{"events", "", `{metadata: {namespace: dev}, involvedObject: {namespace: default}}`, []string{`involvedObject.namespace: Invalid value: "default": does not match event.namespace`}},
		{"events", "", `{metadata: {namespace: kube-system}, eventTime: "2026-01-02T03:04:05.000006Z", involvedObject: {}, reportingComponent: k8s.io/x, reportingInstance: i, action: a, reason: r}`, nil},
		{
			"events", "", `{metadata: {namespace: dev}, eventTime: "2026-01-02T03:04:05.000006Z", involvedObject: {}, reportingComponent: "", message: ` + strings.Repeat("x", 1025) + `}`,
			[]string{
				`involvedObject.namespace: Invalid value: "": does not match event.namespace`,
				`reportingComponent: Required value`,
				`reportingComponent: Invalid value: "": name part must be non-empty`,
				`reportingComponent: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
				`reportingInstance: Required value`, `action: Required value`, `reason: Required value`,
				`message: Invalid value: "": can have at most 1024 characters`,
			},
		},

		{"events.events.k8s.io", "", newEvent, nil},
		{"events.events.k8s.io", newEvent, strings.ReplaceAll(newEvent, "note: it", `note: it, series: {count: 2, lastObservedTime: "2026-01-02T03:04:05.000006Z"}`), nil},
		{"events.events.k8s.io", newEvent, strings.ReplaceAll(newEvent, "note: it", `note: it, series: {count: 1}`), []string{
			`series.count: Invalid value: "": should be at least 2`, `series.lastObservedTime: Required value`,
		}},
		{"events.events.k8s.io", newEvent, strings.ReplaceAll(newEvent, "name: p", "name: q"), []string{
			`involvedObject: Invalid value: {"Kind":"Pod","Namespace":"dev","Name":"q","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}: field is immutable`,
		}},
		{"events.events.k8s.io", newEvent, strings.NewReplacer("note: it", "note: m", "k8s.io/x", "k8s.io/z").Replace(newEvent), []string{
			`message: Invalid value: "m": field is immutable`, `reportingController: Invalid value: "k8s.io/z": field is immutable`,
		}},
		{"events.events.k8s.io", "", `{metadata: {namespace: dev}, regarding: {namespace: dev}, type: Odd, deprecatedCount: 1,
			deprecatedFirstTimestamp: "2026-01-02T03:04:05Z", deprecatedLastTimestamp: "2026-01-02T03:04:05Z", deprecatedSource: {host: h}}`, []string{
			`eventTime: Required value`, `type: Invalid value: "": has invalid value: Odd`, `firstTimestamp: Invalid value: "": needs to be unset`,
			`lastTimestamp: Invalid value: "": needs to be unset`, `count: Invalid value: "": needs to be unset`, `source: Invalid value: "": needs to be unset`,
		}},

		{"endpointslices", "", `{addressType: IPv4, ports: [{port: 1, protocol: ""}, {port: 2, name: a}]}`, []string{
			`ports[0].protocol: Unsupported value: "": supported values: "SCTP", "TCP", "UDP"`,
		}},

		{"leases", "", `{spec: {leaseDurationSeconds: 1, leaseTransitions: 0}}`, nil},
		{"leases", "", `{spec: {leaseDurationSeconds: 0, leaseTransitions: -1, strategy: x, preferredHolder: h}}`, []string{
			`spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0`,
			`spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0`,
		}},
		{"leases", `{spec: {strategy: OldestEmulationVersion}}`, `{spec: {strategy: Newest}}`, []string{
			`spec.strategy.strategy: Unsupported value: "Newest": supported values: "OldestEmulationVersion"`,
		}},
		{"leases", `{spec: {preferredHolder: a}}`, `{spec: {preferredHolder: b}}`, []string{
			"spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
		}},
	} {
		var old map[string]any
		if tt.old != "" {
			var err error
			if old, _, err = definition(t, tt.plural).Versions[0].Schema.Complete(read(t, tt.old)); err != nil {
				t.Fatal(err)
			}
		}
		_, errs := write(t, definition(t, tt.plural), read(t, tt.object), old)
		same(t, tt.plural+" "+tt.object, messages(errs), tt.want)
	}
}

func TestSizeLimit(t *testing.T) {
	text := strings.Repeat("x", corev1.MaxSecretSize)
	for _, tt := range []struct {
		plural, field, value, want string
	}{
		{"configmaps", "data", text, `: Too long: may not be more than 1048576 bytes`},
		{"secrets", "data", base64.StdEncoding.EncodeToString([]byte(text)), `data: Too long: may not be more than 1048576 bytes`},
	} {
		d := definition(t, tt.plural)
		_, errs := write(t, d, map[string]any{tt.field: map[string]any{"a": tt.value}}, nil)
		same(t, tt.plural, messages(errs), []string(nil))
		_, errs = write(t, d, map[string]any{tt.field: map[string]any{"a": tt.value, "b": "eHg="}}, nil)
		got := messages(errs)
		if len(got) != 1 || !strings.Contains(got[0], "Too long: may not be more than 1048576 bytes") {
			t.Errorf("%s: %q", tt.plural, got)
		}
	}
}

func TestPrepare(t *testing.T) {
	for _, tt := range []struct{ plural, object, want string }{
		{"secrets", `{metadata: {}, stringData: {a: x, b: "y"}, data: {b: "eg==", c: "eg=="}}`, `{metadata: {}, type: Opaque, data: {a: "eA==", b: "eQ==", c: "eg=="}}`},
		{"secrets", `{metadata: {}, stringData: {a: null}, data: {b: null}}`, `{metadata: {}, type: Opaque, data: {a: "", b: ""}}`},
		{"configmaps", `{metadata: {}, binaryData: {a: null, b: "eg=="}}`, `{metadata: {}, binaryData: {a: "", b: "eg=="}}`},
		{"endpointslices", `{metadata: {}, addressType: IPv4, ports: []}`, `{metadata: {}, addressType: IPv4, ports: null, endpoints: null}`},
		{"serviceaccounts", `{metadata: {}, secrets: [{name: x, namespace: dev, kind: Secret}, {kind: z}]}`, `{metadata: {}, secrets: [{name: x}, {}]}`},
		{"leases", `{metadata: {}, spec: {strategy: x, preferredHolder: h, holderIdentity: z}}`, `{metadata: {}, spec: {holderIdentity: z}}`},
		{"configmaps", `{metadata: {labels: {}}, data: {}, immutable: null}`, `{metadata: {}}`},
		{"events", `{metadata: {namespace: default}, involvedObject: {}}`, `
metadata: {namespace: default}
involvedObject: {}
source: {}
eventTime: null
firstTimestamp: null
lastTimestamp: null
reportingComponent: ""
reportingInstance: ""`},
	} {
		got, errs := write(t, definition(t, tt.plural), read(t, tt.object), nil)
		same(t, tt.plural+" errors", messages(errs), []string(nil))
		same(t, tt.plural, got, read(t, tt.want))
	}
}

func TestWarnings(t *testing.T) {
	secret := definition(t, "secrets")
	same(t, "no certificate", secret.Warn(t.Context(), &resource.Change{Object: read(t, `{type: kubernetes.io/tls, data: {tls.crt: "", tls.key: ""}}`)}),
		[]string{"tls: failed to find any PEM data in certificate input"})
	same(t, "opaque", secret.Warn(t.Context(), &resource.Change{Object: read(t, `{type: Opaque}`)}), []string(nil))

	account := definition(t, "serviceaccounts")
	marked := read(t, `{metadata: {annotations: {kubernetes.io/enforce-mountable-secrets: "true"}}}`)
	same(t, "newly set", account.Warn(t.Context(), &resource.Change{Object: marked, Old: read(t, `{metadata: {}}`)}), []string{
		"metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets",
	})
	same(t, "set before", account.Warn(t.Context(), &resource.Change{Object: marked, Old: marked}), []string(nil))
}

// Events of both groups convert to each other and back.
func TestConvertEvents(t *testing.T) {
	core, new := definition(t, "events"), definition(t, "events.events.k8s.io")
	if core == new {
		t.Fatal("one definition for both groups")
	}
	for _, tt := range []struct{ core, new string }{
		{
			`{apiVersion: v1, kind: Event, metadata: {namespace: dev}, involvedObject: {namespace: dev}, message: m, source: {component: c},
				firstTimestamp: "2026-01-02T03:04:05Z", lastTimestamp: null, count: 3, reportingComponent: "", reportingInstance: "", eventTime: null, reason: r}`,
			`{apiVersion: events.k8s.io/v1, kind: Event, metadata: {namespace: dev}, regarding: {namespace: dev}, note: m, deprecatedSource: {component: c},
				deprecatedFirstTimestamp: "2026-01-02T03:04:05Z", deprecatedLastTimestamp: null, deprecatedCount: 3, eventTime: null, reason: r}`,
		},
		{
			`{apiVersion: v1, kind: Event, metadata: {}, involvedObject: {}, source: {}, firstTimestamp: null, lastTimestamp: null,
				reportingComponent: c, reportingInstance: i, eventTime: "2026-01-02T03:04:05.000006Z", series: {lastObservedTime: null}}`,
			`{apiVersion: events.k8s.io/v1, kind: Event, metadata: {}, regarding: {}, deprecatedSource: {}, deprecatedFirstTimestamp: null, deprecatedLastTimestamp: null,
				reportingController: c, reportingInstance: i, eventTime: "2026-01-02T03:04:05.000006Z", series: {count: 0, lastObservedTime: null}}`,
		},
	} {
		for _, c := range []struct {
			to         *resource.Definition
			from, want string
		}{{new, tt.core, tt.new}, {core, tt.new, tt.core}, {core, tt.core, tt.core}, {new, tt.new, tt.new}} {
			got, err := c.to.Convert(t.Context(), []map[string]any{read(t, c.from)}, "v1")
			if err != nil {
				t.Fatal(err)
			}
			same(t, "converted", got[0], read(t, c.want))
			// The result is already in the form that the type encodes.
			again, _, err := c.to.Versions[0].Schema.Complete(read(t, c.want))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "completed", again, read(t, c.want))
		}
	}
}
