package pod

import (
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// A Policy applies to pods and pod templates.
func TestPolicy(t *testing.T) {
	const (
		asks        = "{name: c, image: i, securityContext: {privileged: true}}"
		inside      = "hostNetwork: true, securityContext: {windowsOptions: {hostProcess: true}}, "
		noRights    = "securityContext.privileged: Forbidden: disallowed by cluster policy"
		noProcesses = "spec: Forbidden: hostProcess containers are disallowed by cluster policy"
	)
	for _, test := range []struct {
		spec string
		want []string // without privileges
	}{
		{spec: "containers: [{name: c, image: i, securityContext: {privileged: false}}]"},
		{spec: "containers: [" + asks + "]", want: []string{"containers[0]." + noRights}},
		{spec: "containers: [{name: d, image: i}], initContainers: [" + asks + "]", want: []string{"initContainers[0]." + noRights}},
		{spec: inside + "containers: [{name: c, image: i}]", want: []string{noProcesses}},
		{spec: inside + "containers: [" + asks + "]", want: []string{"containers[0]." + noRights, noProcesses}},
	} {
		for _, allowed := range []bool{true, false} {
			c := rule.NewCheck(t.Context(), &resource.Change{}, Policy{Privileged: allowed}.Rules()()).At("spec")
			spec := &templateOf(t, "", "{"+test.spec+"}").Spec
			giveContext(c, spec, nil, "")
			c.Walk(spec)
			var want []string
			if !allowed {
				want = test.want
			}
			if got := texts(c.Errors()); !slices.Equal(got, want) {
				t.Errorf("%s, privileges %v: %q, want %q", test.spec, allowed, got, want)
			}
		}
	}
}

// Errors of new pods, except those of containers and volumes.
func TestWrongPods(t *testing.T) {
	affinity := func(term string) string {
		return `{spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [` + term + `]}}}}`
	}
	const (
		term = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
		both = "exists in both matchLabelKeys and labelSelector"
	)
	for _, test := range []struct{ pod, want string }{
		{`{spec: {restartPolicy: Sometimes}}`, `spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`},
		{`{spec: {dnsPolicy: None}}`, "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"},
		{`{spec: {dnsConfig: {nameservers: [1.1.1.1, 010.0.0.1]}}}`, `spec.dnsConfig.nameservers[1]: Invalid value: "010.0.0.1": must not have leading 0s`},
		{`{spec: {dnsConfig: {searches: [., a_b.c., "-"]}}}`, `spec.dnsConfig.searches[2]: Invalid value: "-": a lowercase RFC 1123 subdomain must consist of`},
		{`{spec: {hostAliases: [{ip: x}]}}`, `spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address`},
		{`{spec: {hostname: a.b}}`, `spec.hostname: Invalid value: "a.b": must not contain dots`},
		{`{spec: {hostnameOverride: h, setHostnameAsFQDN: true}}`, "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true"},
		{`{spec: {hostNetwork: true, containers: [{name: c, image: i, ports: [{containerPort: 80, hostPort: 81}]}]}}`, "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"},
		{`{spec: {hostUsers: false, hostPID: true}}`, "spec.HostPID: Forbidden: when `hostUsers` is false"},
		{`{spec: {hostPID: true, shareProcessNamespace: true}}`, "spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"},
		{`{spec: {activeDeadlineSeconds: 0}}`, "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"},
		{`{spec: {securityContext: {runAsUser: -1}}}`, "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{`{spec: {hostNetwork: true, securityContext: {sysctls: [{name: net/core/x, value: "1"}]}}}`, `spec.securityContext.sysctls[0].name: Invalid value: "net/core/x": may not be specified when 'hostNetwork' is true`},
		{`{spec: {securityContext: {sysctls: [{name: kernel.sem, value: "1"}, {name: kernel.sem, value: "1"}]}}}`, `spec.securityContext.sysctls[1].name: Duplicate value: "kernel.sem"`},
		{`{spec: {os: {name: windows}, securityContext: {fsGroup: 1}}}`, "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod"},
		{`{spec: {os: {name: plan9}}}`, `spec.os: Unsupported value: "plan9": supported values: "linux", "windows"`},
		{`{spec: {securityContext: {windowsOptions: {hostProcess: true}}}}`, "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"},
		{`{spec: {tolerations: [{key: a, operator: Exists, value: v}]}}`, `spec.tolerations[0].operator: Invalid value: "v": value must be empty when ` + "`operator` is 'Exists'"},
		{`{spec: {tolerations: [{value: v}]}}`, "spec.tolerations[0].operator: Invalid value: \"\": operator must be Exists when `key` is empty, which means \"match all values and all keys\""},
		{`{spec: {tolerations: [{key: a, operator: Gt, value: "1"}]}}`, `spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"`},
		{
			`{spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}]}}`,
			"spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
		},
		{
			`{spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: k, whenUnsatisfiable: DoNotSchedule}]}}`,
			`spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{k, DoNotSchedule}"`,
		},
		{affinity(`{topologyKey: k, matchLabelKeys: [a]}`), term + "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"},
		{affinity(`{topologyKey: k, labelSelector: {}, matchLabelKeys: [a], mismatchLabelKeys: [a]}`), term + `matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys`},
		{`{metadata: {labels: {a: x}}, ` + affinity(`{topologyKey: k, labelSelector: {matchLabels: {a: x}}, matchLabelKeys: [a]}`)[1:], strings.TrimSuffix(term, ".") + `[0]: Invalid value: "a": ` + both},
		{`{spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {}}]}}}}`, "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100"},
		{`{spec: {resourceClaims: [{name: a}]}}`, "spec.resourceClaims[0]: Invalid value: {\"Name\":\"a\",\"ResourceClaimName\":null,\"ResourceClaimTemplateName\":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"},
		{`{spec: {schedulingGates: [{name: a}, {name: a}]}}`, `spec.schedulingGates[1]: Duplicate value: "a"`},
		{`{spec: {nodeName: m, schedulingGates: [{name: a}]}}`, "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"},
		{`{spec: {ephemeralContainers: [{name: e, image: i}]}}`, "spec.ephemeralContainers: Forbidden: cannot be set on create"},
		{`{metadata: {annotations: {controller.kubernetes.io/pod-deletion-cost: "01"}}}`, `metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "01": must be a 32bit integer`},
		{`{metadata: {annotations: {kubernetes.io/config.mirror: h}}}`, `metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "h": must set spec.nodeName if mirror pod annotation is set`},
		{`{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/other: runtime/default}}}`, `metadata.annotations[container.apparmor.security.beta.kubernetes.io/other]: Invalid value: "other": container not found`},
		{
			`{metadata: {annotations: {seccomp.security.alpha.kubernetes.io/pod: unconfined}}, spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}`,
			"spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match",
		},
	} {
		errs := write(t, podOf(t, test.pod), nil, "")
		if len(errs) != 1 || !strings.HasPrefix(errs[0], test.want) {
			t.Errorf("%s\ngot  %q\nwant %q", test.pod, errs, test.want)
		}
	}
}

// A pod keeps old values that would be invalid in a new one.
func TestWhatAnOldPodHad(t *testing.T) {
	for _, spec := range []string{
		`{hostUsers: false, hostNetwork: true}`,
		`{tolerations: [{key: a, operator: Gt, value: "1"}]}`,
		`{hostNetwork: true, securityContext: {sysctls: [{name: net.core.x, value: "1"}]}}`,
		`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: ["-"]}]}]}}}}`,
		`{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: k, labelSelector: {matchExpressions: [{key: a, operator: In, values: ["-"]}]}}]}}}`,
		`{topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: "-"}}}]}`,
	} {
		pod := `{metadata: {uid: u}, spec: ` + spec + `}`
		if errs := write(t, podOf(t, pod), nil, ""); len(errs) == 0 {
			t.Errorf("%s is valid in a new pod", spec)
		}
		if errs := write(t, podOf(t, pod), podOf(t, pod), ""); errs != nil {
			t.Errorf("%s in the place of itself: %q", spec, errs)
		}
	}
}

// Mutable and immutable fields of a pod.
func TestUpdates(t *testing.T) {
	const old = `{spec: {nodeName: n1, activeDeadlineSeconds: 100, tolerations: [{key: a, operator: Exists}], containers: [{name: c, image: i}]}}`
	const waiting = `{spec: {nodeSelector: {a: b}, schedulingGates: [{name: g}, {name: h}], containers: [{name: c, image: i}],
		affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}}`
	const other = "spec: Forbidden: pod updates may not change fields other than "
	change := func(of, from, to string) string {
		out := strings.Replace(of, from, to, 1)
		if out == of {
			t.Fatalf("nothing changes from %q to %q", from, to)
		}
		return out
	}
	for _, test := range []struct{ old, from, to, want string }{
		{old, "image: i", "image: j", ""},
		{old, "100", "50", ""},
		{old, "Exists}", "Exists}, {key: b, operator: Exists}", ""},
		{old, "Exists}", "Exists, effect: NoExecute}", "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"},
		{old, "100", "200", "spec.activeDeadlineSeconds: Invalid value: 200: must be less than or equal to previous value"},
		{old, "activeDeadlineSeconds: 100, ", "", "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"},
		{old, "image: i}", "image: i}, {name: d, image: i}", "spec.containers: Forbidden: pod updates may not add or remove containers"},
		{old, "n1", "n2", other},
		{waiting, "{name: g}, ", "", ""},
		{waiting, "{name: g}", "{name: k}", "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'k'"},
		{waiting, "{a: b}", "{a: b, c: d}", ""},
		{waiting, "{a: b}", "{a: c}", `spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)`},
		{waiting, "operator: Exists}]", "operator: Exists}, {key: z, operator: Exists}]", ""},
		{waiting, "{key: a, operator: Exists}", "{key: b, operator: Exists}", "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: Invalid value: "},
		{waiting, "image: i}", "image: i, workingDir: /x}", other},
	} {
		errs := write(t, podOf(t, change(test.old, test.from, test.to)), podOf(t, test.old), "")
		if test.want == "" && errs != nil || test.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0], test.want)) {
			t.Errorf("%q -> %q: got %q, want %q", test.from, test.to, errs, test.want)
		}
	}
	errs := write(t, podOf(t, change(old, "n1", "n2")), podOf(t, old), "")
	if diff := "\n- \"NodeName\": \"n1\",\n+ \"NodeName\": \"n2\",\n"; !strings.Contains(errs[0], diff) {
		t.Errorf("the error does not show what changes: %s", errs[0])
	}
}

// Each subresource writes its own part of a pod.
func TestSubresources(t *testing.T) {
	const old = `{spec: {nodeName: n1, restartPolicy: Never, ephemeralContainers: [{name: e, image: i}],
		containers: [{name: c, image: i, resources: {requests: {cpu: 100m, memory: 1Mi, ephemeral-storage: 1Gi}}}]},
		status: {qosClass: Burstable, containerStatuses: [{name: c, state: {terminated: {exitCode: 0}}}]}}`
	for _, test := range []struct{ subresource, from, to, want string }{
		{"ephemeralcontainers", "{name: e, image: i}", "{name: f, image: i}, {name: e, image: i}", ""},
		{"ephemeralcontainers", "{name: e, image: i}", "", `spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be removed`},
		{"ephemeralcontainers", "{name: e, image: i}", "{name: e, image: j}", `spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be changed`},
		{"ephemeralcontainers", "n1", "n2", ""}, // reverted
		{"resize", "100m", "200m", ""},
		{"resize", "ephemeral-storage: 1Gi", "ephemeral-storage: 2Gi", "spec: Forbidden: only cpu and memory resources are mutable"},
		{"resize", "cpu: 100m, ", "", "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"},
		{"resize", "100m, memory: 1Mi", `"1", memory: 1Gi`, ""},
		{"resize", "name: c, image: i, res", "name: d, image: i, res", "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"},
		{"status", "qosClass: Burstable", "qosClass: Guaranteed", `status.qosClass: Invalid value: "Guaranteed": field is immutable`},
		{"status", "qosClass: Burstable", "nominatedNodeName: n3", "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"},
		{"status", "{terminated: {exitCode: 0}}", "{running: {}}", "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"},
		{"status", "qosClass: Burstable", "podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: 10.0.0.2}]", `status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more than one IP for each IP family`},
		{"status", "qosClass: Burstable", "conditions: [{type: a/b/c, status: Unknown}]", `status.conditions[0].Type: Invalid value: "a/b/c": a valid label key must`},
		{"status", "qosClass: Burstable", "resourceClaimStatuses: [{name: x}]", "status.resourceClaimStatuses[0].name: Invalid value: \"x\": must match the name of an entry in `spec.resourceClaims`"},
	} {
		if !strings.Contains(old, test.from) {
			t.Fatalf("nothing changes from %q", test.from)
		}
		errs := write(t, podOf(t, strings.Replace(old, test.from, test.to, 1)), podOf(t, old), test.subresource)
		if test.want == "" && errs != nil || test.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0], test.want)) {
			t.Errorf("%s: %q -> %q: got %q, want %q", test.subresource, test.from, test.to, errs, test.want)
		}
	}
	mirror := podOf(t, `{metadata: {annotations: {kubernetes.io/config.mirror: h}}, spec: {nodeName: n1}}`)
	for subresource, want := range map[string]string{
		"ephemeralcontainers": "[]: Forbidden: static pods do not support ephemeral containers", "resize": "[]: Forbidden: static pods cannot be resized",
	} {
		pod, _ := object.Clone(mirror).(map[string]any)
		same(t, subresource+" of a mirror", write(t, pod, mirror, subresource), []string{want})
	}
}
