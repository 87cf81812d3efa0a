package pod

import (
	"context"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func TestWarnOfTemplate(t *testing.T) {
	const one = "containers: [{name: c, image: a}]\n"
	for _, test := range []struct{ name, metadata, spec, want string }{
		{name: "nothing", spec: one},
		{
			name: "labels of nodes",
			spec: one + "nodeSelector: {beta.kubernetes.io/os: linux}\ntopologySpreadConstraints: [{topologyKey: node-role.kubernetes.io/master, labelSelector: {}}]",
			want: `
				spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead
				spec.topologySpreadConstraints[0].topologyKey: node-role.kubernetes.io/master is use "node-role.kubernetes.io/control-plane" instead`,
		},
		{
			name: "no selector",
			spec: one + "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: a}}]}}",
			want: "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod",
		},
		{
			name:     "annotations",
			metadata: "annotations: {seccomp.security.alpha.kubernetes.io/pod: a, scheduler.alpha.kubernetes.io/critical-pod: a}",
			spec:     one,
			want: `
				metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead
				metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead`,
		},
		{
			name:     "AppArmor, of which one of two containers says what it uses",
			metadata: "annotations: {container.apparmor.security.beta.kubernetes.io/c: unconfined, container.apparmor.security.beta.kubernetes.io/d: unconfined}",
			spec:     "containers: [{name: c, image: a}, {name: d, image: a, securityContext: {appArmorProfile: {type: Unconfined}}}]",
			want:     `metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "appArmorProfile" field instead`,
		},
		{
			name: "parts of bytes",
			spec: "containers: [{name: c, image: a, resources: {requests: {memory: 100m, cpu: 100m}}}]",
			want: `spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer`,
		},
		{
			name: "variables",
			spec: "containers: [{name: c, image: a, env: [{name: A, value: a}, {name: A, value: $(A)b}, {name: B}, {name: B, value: $(B)}]}]",
			want: `spec.containers[0].env[3]: hides previous definition of "B", which may be dropped when using apply`,
		},
		{
			name: "ports",
			spec: "containers: [{name: c, image: a, ports: [{containerPort: 80, hostPort: 80, name: a}]}, {name: d, image: a, ports: [{containerPort: 80, name: a}]}]\n" +
				"initContainers: [{name: e, image: a, ports: [{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}, {containerPort: 1, hostIP: 10.0.0.1}]}]",
			want: `
				spec.initContainers[0].ports[1]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:1 Protocol:TCP HostIP:10.0.0.1}
				spec.containers[0].ports[0]: dangerously ambiguous port definition with spec.initContainers[0].ports[0]
				spec.containers[1].ports[0]: overlapping port definition with spec.initContainers[0].ports[0]
				spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[0]
				spec.containers[1].ports[0]: duplicate port name "a" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]`,
		},
		{
			name: "names",
			spec: one + "hostAliases: [{ip: 10.0.0.1}, {ip: 10.0.0.1}]\nimagePullSecrets: [{name: a}, {name: a}, {}]\nterminationGracePeriodSeconds: -1",
			want: `
				spec.hostAliases[1].ip: duplicate ip "10.0.0.1"
				spec.imagePullSecrets[1].name: duplicate name "a"
				spec.imagePullSecrets[2].name: invalid empty name ""
				spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`,
		},
		{
			name: "addresses",
			spec: one + "dnsConfig: {nameservers: ['010.0.0.1']}",
			want: `spec.dnsConfig.nameservers[0]: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"`,
		},
	} {
		c := rule.NewCheck(context.Background(), &resource.Change{}, rules())
		WarnOfTemplate(c, templateOf(t, test.metadata, test.spec), nil)
		var want []string
		for line := range strings.Lines(test.want) {
			if line = strings.TrimSpace(line); line != "" {
				want = append(want, line)
			}
		}
		if got := c.Warnings(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s\nwarnings\n\t%s\nwant\n\t%s", test.name, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
}
