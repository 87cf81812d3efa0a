package volume

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func newCheck(t *testing.T) *rule.Check {
	return rule.NewCheck(t.Context(), &resource.Change{}, rule.New(Rules))
}

func read[T any](t *testing.T, text string) (out T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}

// found returns the errors of a Check, one a line.
func found(c *rule.Check) string {
	var out []string
	for _, e := range c.Errors() {
		out = append(out, e.Error())
	}
	return strings.Join(append(out, c.Warnings()...), "\n")
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if d := cmp.Diff(strings.ReplaceAll(strings.TrimSpace(want), "\t", ""), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// Errors of the volumes of a pod named web.
func TestPodVolumes(t *testing.T) {
	for _, tt := range []struct{ old, volumes, want string }{
		{volumes: `[{name: a, emptyDir: {}}, {name: b, configMap: {name: c, items: [{key: k, path: a/b}]}}, {name: c, image: {reference: r, pullPolicy: Always}}]`},
		{volumes: `[{name: a}]`, want: `[0]: Required value: must specify a volume type`},
		{volumes: `[{name: a, emptyDir: {}}, {name: a, emptyDir: {}}, {name: A, emptyDir: {}}]`, want: `
			[1].name: Duplicate value: "a"
			[2].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		// The name of an invalid volume is still taken.
		{volumes: `[{name: a, nfs: {server: s, path: p}}, {name: a, emptyDir: {}}]`, want: `[0].nfs.path: Invalid value: "p": must be an absolute path`},
		// The second source is not validated. Error paths have special names.
		{volumes: `[{name: a, emptyDir: {}, cephfs: {}, gcePersistentDisk: {}}, {name: b, gcePersistentDisk: {}}]`, want: `
			[0].gcePersistentDisk: Forbidden: may not specify more than 1 volume type
			[0].cephFS: Forbidden: may not specify more than 1 volume type
			[1].persistentDisk.pdName: Required value`},
		{volumes: `[{name: a, hostPath: {path: /a/../b, type: x}}, {name: b, hostPath: {path: "", type: x}}]`, want: `
			[0].hostPath.path: Invalid value: "/a/../b": must not contain '..'
			[0].hostPath.type: Unsupported value: "x": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"
			[1].hostPath.path: Required value`},
		{volumes: `[{name: a, secret: {secretName: s, defaultMode: 512, items: [{key: k, path: ..a}, {path: /b}]}}]`, want: `
			[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive
			[0].secret.items[0].path: Invalid value: "..a": must not start with '..'
			[0].secret.items[1].key: Required value
			[0].secret.items[1].path: Invalid value: "/b": must be a relative path`},
		{volumes: `[{name: a, downwardAPI: {items: [{path: p}, {path: q, fieldRef: {apiVersion: v1, fieldPath: spec.nodeName}}, {path: r, resourceFieldRef: {resource: limits.cpu, divisor: "2"}}]}}]`, want: `
			[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required
			[0].downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"
			[0].downwardAPI.resourceFieldRef.containerName: Required value
			[0].downwardAPI.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`},
		{volumes: `[{name: a, projected: {sources: [{secret: {name: s, items: [{key: k, path: p}]}}, {configMap: {name: c, items: [{key: k, path: p}]}, downwardAPI: {}}, {serviceAccountToken: {path: ../t, expirationSeconds: 60}}]}}]`, want: `
			[0].projected: Invalid value: "c": conflicting duplicate paths
			[0].projected.sources[1]: Forbidden: may not specify more than 1 volume type per source
			[0].projected.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes
			[0].projected.path: Invalid value: "../t": must not contain '..'`},
		{volumes: `[{name: a, projected: {sources: [{clusterTrustBundle: {name: "a.b:c", signerName: x, path: p}}, {podCertificate: {signerName: a.b/c, keyType: RSA}}]}}]`, want: `
			[0].projected.sources[0].clusterTrustBundle: Invalid value: {"Name":"a.b:c","SignerName":"x","LabelSelector":null,"Optional":null,"Path":"p","User":null}: only one of name and signerName may be used
			[0].projected.sources[1].podCertificate.keyType: Unsupported value: "RSA": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"
			[0].projected.sources[1].podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath`},
		// Old values may stay.
		{
			old:     `[{name: a, projected: {sources: [{serviceAccountToken: {path: ../t, expirationSeconds: 600}}]}}, {name: b, image: {reference: ""}}]`,
			volumes: `[{name: a, projected: {sources: [{serviceAccountToken: {path: ../t, expirationSeconds: 600}}]}}, {name: b, image: {reference: "", pullPolicy: Never}}]`,
		},
		{volumes: `[{name: b, image: {reference: "", pullPolicy: Never}}]`, want: `[0].image.reference: Required value`},
		// A pod creates a claim for an ephemeral volume.
		{volumes: `[{name: a, ephemeral: {volumeClaimTemplate: {metadata: {name: x, labels: {a: b}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}, {name: b, persistentVolumeClaim: {claimName: web-a}}]`, want: `
			[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set
			[1].persistentVolumeClaim.claimName: Invalid value: "web-a": must not reference a PVC that gets created for an ephemeral volume`},
		{volumes: `[{name: a, iscsi: {targetPortal: ` + strings.Repeat("p", 63) + `, iqn: x, initiatorName: "iqn.2001-04.com:a", lun: 256, chapAuthSession: true}}]`, want: `
			[0].iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive
			[0].iscsi.iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa
			[0].iscsi.secretRef: Required value
			[0].name: Invalid value: "a": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.`},
	} {
		c := newCheck(t)
		Validate(c, read[[]corev1.Volume](t, tt.volumes), read[[]corev1.Volume](t, tt.old), "web")
		same(t, tt.volumes, found(c), tt.want)
	}
}

// Errors of the spec of a claim. old is the replaced spec.
func TestClaims(t *testing.T) {
	for _, tt := range []struct{ old, spec, want string }{
		{spec: `{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`},
		{spec: `{volumeMode: x}`, want: `
			volumeMode: Unsupported value: "x": supported values: "Block", "Filesystem"
			accessModes: Required value: at least 1 access mode is required
			resources[storage]: Required value`},
		{spec: `{accessModes: [x, ReadWriteOncePod, ReadOnlyMany], resources: {requests: {storage: "0"}}, storageClassName: "", volumeAttributesClassName: A}`, want: `
			accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
			accessModes: Forbidden: may not use ReadWriteOncePod with other access modes
			resources[storage]: Invalid value: "0": must be greater than zero
			volumeAttributesClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{spec: `{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, dataSource: {kind: Pod, name: a}, dataSourceRef: {apiGroup: a_b, kind: Pod, name: b}}`, want: `
			dataSource: Invalid value: "Pod": must be 'PersistentVolumeClaim' when referencing the default apiGroup
			dataSourceRef.apiGroup: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
			<nil>: Invalid value: {}: must match dataSourceRef`},
		// An old API group and label may stay.
		{
			old:  `{selector: {matchExpressions: [{key: a, operator: In, values: [b c]}]}, dataSourceRef: {apiGroup: a_b, kind: K, name: b}}`,
			spec: `{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, selector: {matchExpressions: [{key: a, operator: In, values: [b c]}]}, dataSourceRef: {apiGroup: a_b, kind: K, name: b}}`,
		},
	} {
		c, spec := newCheck(t), read[corev1.PersistentVolumeClaimSpec](t, tt.spec)
		var old *corev1.PersistentVolumeClaimSpec
		if tt.old != "" {
			was := read[corev1.PersistentVolumeClaimSpec](t, tt.old)
			old = &was
		}
		ValidateClaim(c, &spec, old)
		same(t, tt.spec, found(c), tt.want)
	}
}

// Errors of the spec of a PersistentVolume, also inline.
func TestPersistentVolumes(t *testing.T) {
	for _, tt := range []struct{ spec, want, inline string }{
		{
			spec:   `{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: d, volumeHandle: h}}`,
			inline: `capacity: Forbidden: may not be specified in the context of inline volumes`,
		},
		{
			spec: `{accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Delete, volumeMode: Block, csi: {driver: d, volumeHandle: h, nodePublishSecretRef: {name: a}}}`,
			want: `
				capacity: Required value
				capacity: Unsupported value: null: supported values: "storage"
				csi.nodePublishSecretRef.namespace: Required value`,
			inline: `
				csi.nodePublishSecretRef.namespace: Required value
				persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes
				volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes`,
		},
		{
			spec: `{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Recycle, hostPath: {path: /.}, flexVolume: {}, local: {path: /a}, volumeAttributesClassName: ""}`,
			want: `
				csi: Required value: has to be specified when using volumeAttributesClassName
				flexVolume.driver: Required value
				local: Forbidden: may not specify more than 1 volume type
				persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'
				volumeAttributesClassName: Required value: an empty string is disallowed`,
			inline: `
				capacity: Forbidden: may not be specified in the context of inline volumes
				csi: Required value: has to be specified in the context of inline volumes
				flexVolume.driver: Required value
				local: Forbidden: may not specify more than 1 volume type
				persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'
				persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes`,
		},
		{
			spec: `{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], local: {path: /a}}`,
			want: `nodeAffinity: Required value: Local volume requires node affinity`,
			inline: `
				capacity: Forbidden: may not be specified in the context of inline volumes
				csi: Required value: has to be specified in the context of inline volumes
				nodeAffinity: Required value: Local volume requires node affinity`,
		},
	} {
		spec := read[corev1.PersistentVolumeSpec](t, tt.spec)
		c := newCheck(t)
		ValidatePersistent(c, &spec, nil, "pv")
		same(t, tt.spec, sorted(found(c)), tt.want)
		c = newCheck(t)
		ValidateInline(c, &spec)
		same(t, "inline "+tt.spec, sorted(found(c)), tt.inline)
	}
}

func sorted(lines string) string {
	all := strings.Split(lines, "\n")
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// Warnings about valid volumes.
func TestWarnings(t *testing.T) {
	for volumes, want := range map[string]string{
		`[{name: a, rbd: {monitors: [m], image: i}}]`: `[0].rbd: deprecated in v1.28, non-functional in v1.31+`,
		`[{name: a, configMap: {name: c, items: [{key: a, path: x/y/}, {key: b, path: x}, {key: c, path: xy}]}}]`: `
			volume "a" (ConfigMap "c"): overlapping paths: "x" with "x/y"`,
		`[{name: a, projected: {sources: [{}, {serviceAccountToken: {path: t}}, {secret: {name: s, items: [{key: k, path: t}]}}]}}]`: `
			volume "a" (Projected) has no sources provided
			volume "a" (Projected): overlapping paths: "t" (Secret "s") with "t" (ServiceAccountToken)`,
		`[{name: a, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1500m}}}}}}]`: `
			[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer`,
	} {
		c := newCheck(t)
		Warn(c, read[[]corev1.Volume](t, volumes))
		same(t, volumes, found(c), want)
	}
}

// Defaults of volumes.
func TestDefaults(t *testing.T) {
	for volume, want := range map[string]string{
		`{name: a}`:                                                           `{name: a, emptyDir: {}}`,
		`{name: a, image: {reference: "r:v1"}}`:                               `{name: a, image: {reference: "r:v1", pullPolicy: IfNotPresent}}`,
		`{name: a, image: {reference: "h:80/r"}}`:                             `{name: a, image: {reference: "h:80/r", pullPolicy: Always}}`,
		`{name: a, hostPath: {path: /a}}`:                                     `{name: a, hostPath: {path: /a, type: ""}}`,
		`{name: a, projected: {sources: [{serviceAccountToken: {path: t}}]}}`: `{name: a, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}]}}`,
	} {
		got := read[map[string]any](t, volume)
		rule.New(Rules).Fill(reflect.TypeFor[corev1.Volume](), got)
		if d := cmp.Diff(fmt.Sprint(read[map[string]any](t, want)), fmt.Sprint(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", volume, d)
		}
	}
}

// The default pull policy is Always for the tag latest, explicit or implied.
func TestPullPolicy(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for reference, always := range map[string]bool{
		"a": true, "a:latest": true, "a:1": false, "b.c/a": true, "b.c:80/a": true, "b.c:80/a:1": false, "localhost/a/b": true,
		"a" + digest: false, "a:latest" + digest: true, "A": false, "a//b": false, "": false, strings.Repeat("a", 64): false, "a:latest@sha256:b": false,
	} {
		if got := PullPolicy(reference) == corev1.PullAlways; got != always {
			t.Errorf("%q is always pulled: %v, want %v", reference, got, always)
		}
	}
}
