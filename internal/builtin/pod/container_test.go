package pod

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// templateOf parses a template and sets defaults.
func templateOf(t *testing.T, metadata, spec string) *corev1.PodTemplateSpec {
	t.Helper()
	obj := map[string]any{}
	for name, text := range map[string]string{"metadata": metadata, "spec": spec} {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var tree map[string]any
		if err := json.Unmarshal(data, &tree); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		obj[name] = tree
	}
	rules().Fill(reflect.TypeFor[corev1.PodTemplateSpec](), obj)
	return kind.ValueOf[corev1.PodTemplateSpec](obj)
}

var rules = Policy{Privileged: true}.Rules()

// errorsOf returns the errors of a spec. old is the replaced spec, or "".
func errorsOf(t *testing.T, spec, old string) []string {
	t.Helper()
	var before *corev1.PodSpec
	if old != "" {
		before = &templateOf(t, "", old).Spec
	}
	c := rule.NewCheck(context.Background(), &resource.Change{}, rules()).At("spec")
	now := &templateOf(t, "", spec).Spec
	giveContext(c, now, before, "")
	c.Walk(now)
	return texts(c.Errors())
}

func texts(errs field.ErrorList) (out []string) {
	for _, e := range errs {
		out = append(out, strings.TrimPrefix(e.Error(), "spec."))
	}
	slices.Sort(out)
	return out
}

// in adds fields of a container to a spec with everything that they refer to.
func in(container string) string {
	return `
terminationGracePeriodSeconds: 10
resourceClaims: [{name: gpu, resourceClaimName: a}]
volumes:
- {name: empty, emptyDir: {}}
- {name: disk, persistentVolumeClaim: {claimName: a}}
- {name: no-path, hostPath: {path: ""}}
containers:
- {name: c, image: a` + container + `}`
}

// Rules for any container. Paths begin at the container.
func TestContainers(t *testing.T) {
	for _, test := range []struct{ fields, want string }{
		{"", ""},
		{", imagePullPolicy: Sometimes", `imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`},
		{", terminationMessagePolicy: a", `terminationMessagePolicy: Unsupported value: "a": supported values: "File", "FallbackToLogsOnError"`},

		{", ports: [{containerPort: 80, name: a}, {containerPort: 81, name: b, hostPort: 81}]", ""},
		{", ports: [{name: a}]", "ports[0].containerPort: Required value"},
		{", ports: [{containerPort: 70000, hostPort: -1, protocol: X}]", `
			ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive
			ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive
			ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"`},
		{", ports: [{containerPort: 80, name: a}, {containerPort: 81, name: a}]", `ports[1].name: Duplicate value: "a"`},

		{`, env: [{name: "1 a", value: b}]`, ""},
		{`, env: [{name: "a=b"}]`, `env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='`},
		{", env: [{name: a, valueFrom: {}}]", "env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"},
		{", env: [{name: a, value: b, valueFrom: {secretKeyRef: {name: a, key: b}}}]", "env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"},
		{", env: [{name: a, valueFrom: {configMapKeyRef: {name: A, key: b}}}]", `env[0].valueFrom.configMapKeyRef.name: Invalid value: "A":`},
		{", env: [{name: a, valueFrom: {fieldRef: {fieldPath: spec.hostname}}}]", `env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.hostname": error converting fieldPath: field label not supported: spec.hostname`},
		{", env: [{name: a, valueFrom: {fieldRef: {fieldPath: status.phase}}}]", `env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase":`},
		{", env: [{name: a, valueFrom: {fileKeyRef: {volumeName: empty, path: a/b, key: c}}}]", ""},
		{", env: [{name: a, valueFrom: {fileKeyRef: {volumeName: disk, path: a/../b, key: c}}}]", `
			env[0].valueFrom.fileKeyRef.path: Invalid value: "a/../b": must not contain '..'
			env[0].valueFrom.fileKeyRef.volumeName: Invalid value: "disk": referenced volume must be of type emptyDir`},
		{", env: [{name: a, valueFrom: {fileKeyRef: {volumeName: other, path: a, key: c}}}]", `env[0].valueFrom.fileKeyRef.volumeName: Not found: "other"`},
		{", envFrom: [{}]", "envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"},
		{", envFrom: [{prefix: A_, secretRef: {name: begins-}}]", ""},

		{", volumeMounts: [{name: empty, mountPath: /a}, {name: empty, mountPath: /b}]", ""},
		{", volumeMounts: [{name: other, mountPath: /a}]", `volumeMounts[0].name: Not found: "other"`},
		{", volumeMounts: [{name: no-path, mountPath: /a}]", `volumeMounts[0].name: Not found: "no-path"`},
		{", volumeMounts: [{name: empty, mountPath: /a}, {name: disk, mountPath: /a, subPath: /b, subPathExpr: c}]", `
			volumeMounts.subPath: Invalid value: "/b": must be a relative path
			volumeMounts[1].mountPath: Invalid value: "/a": must be unique
			volumeMounts[1].subPathExpr: Invalid value: "c": subPathExpr and subPath are mutually exclusive`},
		{", volumeMounts: [{name: empty, mountPath: /a, mountPropagation: Bidirectional}]", `volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers`},
		{", volumeMounts: [{name: empty, mountPath: /a, recursiveReadOnly: Enabled}]", `volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true`},
		{", volumeDevices: [{name: disk, devicePath: /dev/a}]", ""},
		{", volumeDevices: [{name: empty, devicePath: ../a}], volumeMounts: [{name: empty, mountPath: /a}]", `
			volumeDevices[0].devicePath: Invalid value: "../a": can not contain backsteps ('..')
			volumeDevices[0].name: Invalid value: "empty": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode
			volumeDevices[0].name: Invalid value: "empty": must not already exist in volumeMounts
			volumeMounts[0].name: Invalid value: "empty": must not already exist in volumeDevices`},

		{`, resources: {limits: {cpu: "2", memory: 1Mi, example.com/gpu: "1", hugepages-2Mi: 4Mi}, requests: {cpu: "1"}, claims: [{name: gpu}]}`, ""},
		{`, resources: {limits: {cpu: "1"}, requests: {cpu: "2"}}`, `resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
		{`, resources: {requests: {example.com/gpu: "2"}}`, `resources.limits: Required value: Limit must be set for non overcommitable resources`},
		{`, resources: {limits: {example.com/gpu: 1500m}}`, `resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer`},
		{`, resources: {limits: {hugepages-2Mi: 3Mi}}`, `
			resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi
			resources: Forbidden: HugePages require cpu or memory`},
		{`, resources: {limits: {gpu: "1", pods: "1", cpu: "-1"}}`, `
			resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0
			resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers
			resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified
			resources.limits[pods]: Invalid value: "pods": must be a standard resource for containers`},
		{", resources: {claims: [{name: gpu}, {name: gpu, request: a}, {name: other}]}", `
			resources.claims[1]: Duplicate value: "gpu"
			resources.claims[2]: Not found: "other": must be one of the names in pod.spec.resourceClaims: gpu`},
		{", resizePolicy: [{resourceName: cpu, restartPolicy: A}, {resourceName: cpu, restartPolicy: NotRequired}]", `
			resizePolicy: Unsupported value: "A": supported values: "NotRequired", "RestartContainer"
			resizePolicy[1]: Duplicate value: "cpu"`},
	} {
		got := errorsOf(t, in(test.fields), "")
		got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "volumes[2]") }) // the volume no-path is invalid
		sameErrors(t, test.fields, got, "containers[0].", test.want)
	}
}

// Rules that depend on the list of a container, and on the rest of the spec.
func TestContainerLists(t *testing.T) {
	const one = "containers: [{name: c, image: a}]\n"
	for _, test := range []struct{ spec, old, want string }{
		{spec: "containers: []", want: "containers: Required value"},
		{spec: "containers: [{name: c, image: a}, {name: c, image: a}]", want: `containers[1].name: Duplicate value: "c"`},
		{spec: one + "initContainers: [{name: c, image: a}]", want: `initContainers[0].name: Duplicate value: "c"`},
		{spec: "containers: [{name: A_, image: ''}]", want: `
			containers[0].name: Invalid value: "A_":
			containers[0].image: Required value`},
		{spec: "containers: [{name: a, image: a, ports: [{containerPort: 1, hostPort: 1}]}, {name: b, image: a, ports: [{containerPort: 2, hostPort: 1}]}]",
			want: `containers[1].ports[0].hostPort: Duplicate value: "TCP//1"`},
		{spec: one + "initContainers: [{name: a, image: a, ports: [{containerPort: 1, hostPort: 1}]}, {name: b, image: a, ports: [{containerPort: 2, hostPort: 1}]}]"},

		{spec: "containers: [{name: c, image: a, livenessProbe: {tcpSocket: {port: 80}}, readinessProbe: {grpc: {port: 80}, successThreshold: 2}}]"},
		{spec: "containers: [{name: c, image: a, livenessProbe: {successThreshold: 2, periodSeconds: -1, exec: {}, httpGet: {}}}]", want: `
			containers[0].livenessProbe.exec.command: Required value
			containers[0].livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type
			containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0
			containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1`},
		{spec: "containers: [{name: c, image: a, readinessProbe: {terminationGracePeriodSeconds: 0}}]", want: `
			containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0
			containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 0: must not be set for readinessProbes
			containers[0].readinessProbe: Required value: must specify a handler type`},
		{spec: "containers: [{name: c, image: a, lifecycle: {postStart: {httpGet: {port: 0, scheme: FTP, httpHeaders: [{name: 'a b', value: c}]}}, preStop: {sleep: {seconds: 31}}}}]", want: `
			containers[0].lifecycle.postStart.httpGet.httpHeaders: Invalid value: "a b":
			containers[0].lifecycle.postStart.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive
			containers[0].lifecycle.postStart.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"
			containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)`},
		{spec: "containers: [{name: c, image: a, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}, {action: Go}]}]", want: `
			containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used
			containers[0].restartPolicyRules[1].action: Unsupported value: "Go": supported values: "Restart", "RestartAllContainers"
			containers[0].restartPolicyRules[1].exitCodes: Required value: must be specified`},
		{spec: "restartPolicy: Never\ncontainers: [{name: c, image: a, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]",
			want: "containers[0].resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod `restartPolicy` is 'Never'"},

		// Init containers and sidecars.
		{spec: one + "initContainers: [{name: i, image: a, restartPolicy: Always, livenessProbe: {exec: {command: [a]}}}]"},
		{spec: one + "initContainers: [{name: i, image: a, livenessProbe: {}, lifecycle: {}, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]", want: `
			initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always
			initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always
			initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be set to 'RestartContainer' for non-sidecar initContainers`},
		{spec: one + "initContainers: [{name: i, image: a, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]",
			old: one + "initContainers: [{name: i, image: b, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]"},

		// Ephemeral containers in a template.
		{spec: one + "ephemeralContainers: [{name: e, image: a, targetContainerName: c}]"},
		{spec: one + "ephemeralContainers: [{name: c, image: ' a', targetContainerName: e, ports: [{}], livenessProbe: {}, resources: {limits: {cpu: 1}}}]", want: `
			ephemeralContainers[0].image: Invalid value: " a": must not have leading or trailing whitespace
			ephemeralContainers[0].livenessProbe: Forbidden: cannot be set for an Ephemeral Container
			ephemeralContainers[0].name: Duplicate value: "c"
			ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container
			ephemeralContainers[0].ports[0].containerPort: Required value
			ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container
			ephemeralContainers[0].targetContainerName: Not found: "e"`},

		// Resources of the pod.
		{spec: "resources: {requests: {cpu: 3}, limits: {cpu: 4}}\ncontainers: [{name: c, image: a, resources: {requests: {cpu: 1}}}]\n" +
			"initContainers: [{name: i, image: a, resources: {requests: {cpu: 2}}, restartPolicy: Always}]"},
		{spec: "resources: {requests: {cpu: 1, gpu: 1}, limits: {cpu: 1}}\ncontainers: [{name: c, image: a, resources: {requests: {cpu: 1}, limits: {cpu: 2}}}]\n" +
			"initContainers: [{name: i, image: a, resources: {requests: {cpu: 1}}, restartPolicy: Always}]", want: `
			resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1
			resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2
			resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified`},
	} {
		sameErrors(t, test.spec, errorsOf(t, test.spec, test.old), "", test.want)
	}
}

func TestSecurityContext(t *testing.T) {
	for _, test := range []struct{ pod, context, old, want string }{
		{context: "privileged: true, runAsUser: 0"},
		{context: "runAsUser: -1, procMount: Unmasked", want: "\n" +
			"procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`\n" +
			"runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{pod: "hostUsers: false", context: "procMount: Unmasked"},
		{
			context: "allowPrivilegeEscalation: false, capabilities: {add: [CAP_SYS_ADMIN]}",
			want: `: Invalid value: {"Capabilities":{"Add":["CAP_SYS_ADMIN"],"Drop":null},"Privileged":null,"SELinuxOptions":null,"WindowsOptions":null,` +
				`"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,` +
				`"SeccompProfile":null,"AppArmorProfile":null}: cannot set ` + "`allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
		},
		{
			context: "allowPrivilegeEscalation: false, capabilities: {add: [CAP_SYS_ADMIN]}",
			old:     "capabilities: {add: [CAP_SYS_ADMIN]}",
		},
		{context: "seccompProfile: {type: Localhost, localhostProfile: ../a}", want: `seccompProfile.localhostProfile: Invalid value: "../a": must not contain '..'`},
		{context: "seccompProfile: {type: A}", want: `seccompProfile.type: Unsupported value: "A": supported values: "Localhost", "RuntimeDefault", "Unconfined"`},
		{context: "appArmorProfile: {type: Localhost, localhostProfile: ' a'}", want: `appArmorProfile.localhostProfile: Invalid value: " a": must not be padded with whitespace`},
		{context: "appArmorProfile: {type: Unconfined, localhostProfile: a}", want: `appArmorProfile.localhostProfile: Invalid value: "a": can only be set when AppArmor type is Localhost`},
		{context: `windowsOptions: {runAsUserName: 'DOMAIN\user', gmsaCredentialSpecName: a}`},
		{context: `windowsOptions: {runAsUserName: 'a\b\c', gmsaCredentialSpec: ''}`, want: `
			windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string
			windowsOptions.runAsUserName: Invalid value: "a\\b\\c": runAsUserName cannot contain more than one backslash`},
		{context: `windowsOptions: {runAsUserName: '.a\. .'}`, want: `
			windowsOptions.runAsUserName: Invalid value: ".a\\. .": runAsUserName's Domain doesn't match the NetBios nor the DNS format
			windowsOptions.runAsUserName: Invalid value: ".a\\. .": runAsUserName's User cannot contain only periods or spaces`},
		{pod: "os: {name: linux}", context: "windowsOptions: {}", want: "windowsOptions: Forbidden: windows options cannot be set for a linux pod"},
		{pod: "os: {name: windows}", context: "privileged: true, capabilities: {}", want: `
			capabilities: Forbidden: cannot be set for a windows pod
			privileged: Forbidden: cannot be set for a windows pod`},
	} {
		spec := func(context string) string {
			return test.pod + "\ncontainers: [{name: c, image: a, securityContext: {" + context + "}}]"
		}
		old := ""
		if test.old != "" {
			old = spec(test.old)
		}
		prefix := "containers[0].securityContext"
		if !strings.HasPrefix(test.want, ":") {
			prefix += "."
		}
		sameErrors(t, test.context, errorsOf(t, spec(test.context), old), prefix, test.want)
	}
}

// sameErrors compares errors with lines. A line that ends with a colon is a prefix of an error.
func sameErrors(t *testing.T, of string, got []string, prefix, want string) {
	t.Helper()
	var lines []string
	for line := range strings.SplitSeq(want, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, prefix+line)
		}
	}
	slices.Sort(lines)
	ok := len(got) == len(lines)
	for i := 0; ok && i < len(got); i++ {
		ok = got[i] == lines[i] || strings.HasSuffix(lines[i], ":") && strings.HasPrefix(got[i], lines[i])
	}
	if !ok {
		t.Errorf("%s\nerrors\n\t%s\nwant\n\t%s", of, strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
	}
}
