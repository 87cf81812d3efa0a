package serviceaccount_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/serviceaccount"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/stored"
)

func world(t *testing.T) *admissiontest.World {
	return admissiontest.New(t, func(w *admissiontest.World) []any {
		return []any{&serviceaccount.Plugin{Accounts: stored.List[corev1.ServiceAccount](w.Cache, w.Kinds, corev1.Resource("serviceaccounts"))}}
	})
}

const accounts = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}, imagePullSecrets: [{name: pull}]}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: tokenless}, automountServiceAccountToken: false}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: strict, annotations: {kubernetes.io/enforce-mountable-secrets: "true"}}
secrets: [{name: mine}]
imagePullSecrets: [{name: pull}]`

// A new pod gets an account, a token volume and image pull secrets.
func TestGives(t *testing.T) {
	w := world(t)
	w.Have(accounts)
	tests := []struct{ name, spec, field, want string }{
		{"an account", `{containers: [{name: c, image: i}]}`, "spec.serviceAccountName", `"default"`},
		{"and what the account was called once", `{containers: [{name: c, image: i}]}`, "spec.serviceAccount", `"default"`},
		{"the one that it names", `{serviceAccountName: robot, containers: [{name: c, image: i}]}`, "spec.serviceAccount", `"robot"`},
		{"its secrets for images", `{serviceAccountName: robot, containers: [{name: c, image: i}]}`, "spec.imagePullSecrets", `[{"name":"pull"}]`},
		{"but not beside others", `{serviceAccountName: robot, imagePullSecrets: [{name: s}], containers: [{name: c, image: i}]}`, "spec.imagePullSecrets", `[{"name":"s"}]`},
		{"a volume with its token", `{containers: [{name: c, image: i}]}`, "spec.volumes", `[{"name":"kube-api-access-?????","projected":{"defaultMode":420,"sources":[` +
			`{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},` +
			`{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}}]`},
		{"no volume, if the account has none", `{serviceAccountName: tokenless, containers: [{name: c, image: i}]}`, "spec.volumes", ""},
		{"no volume, if the pod wants none", `{automountServiceAccountToken: false, containers: [{name: c, image: i}]}`, "spec.volumes", ""},
		{"no second volume", `{volumes: [{name: kube-api-access-mine, emptyDir: {}}], containers: [{name: c, image: i}]}`, "spec.volumes", `[{"emptyDir":{},"name":"kube-api-access-mine"}]`},
		{"no volume without a container", `{volumes: [{name: v, emptyDir: {}}], containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]}]}`,
			"spec.volumes", `[{"emptyDir":{},"name":"v"}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod, err := w.Create("{apiVersion: v1, kind: Pod, metadata: {generateName: p-}, spec: " + test.spec + "}")
			if err != nil {
				t.Fatal(err)
			}
			if got := admissiontest.Field(pod, test.field); got != withName(test.want, pod) {
				t.Errorf("%s\n\t%s\nwant\n\t%s", test.field, got, test.want)
			}
		})
	}
}

// withName fills in the generated name of the token volume.
func withName(text string, pod object.Tree) string {
	_, after, found := strings.Cut(admissiontest.Field(pod, "spec.volumes"), "kube-api-access-")
	if !found || len(after) < 5 {
		return text
	}
	return strings.ReplaceAll(text, "?????", after[:5])
}

// Pods with a missing account or a forbidden secret are rejected.
func TestRefuses(t *testing.T) {
	w := world(t)
	w.Have(accounts)
	tests := []struct{ name, pod, err string }{
		{"an account that is not there", `{metadata: {name: p}, spec: {serviceAccountName: none}}`,
			`pods "p" is forbidden: error looking up service account dev/none: serviceaccount "none" not found`},
		{"by the beginning of its name", `{metadata: {generateName: p-}, spec: {serviceAccountName: none}}`,
			`pods "p-" is forbidden: error looking up service account dev/none: serviceaccount "none" not found`},
		{"a name that no account has", `{metadata: {name: p}, spec: {serviceAccountName: a/b}}`,
			`pods "p" is forbidden: error looking up service account dev/a/b: invalid resource name "a/b": [may not contain '/']`},
		{"a volume", `{metadata: {name: p}, spec: {serviceAccountName: strict, volumes: [{name: v, secret: {secretName: s}}]}}`,
			`pods "p" is forbidden: volume with secret.secretName="s" is not allowed because service account strict does not reference that secret`},
		{"an environment", `{metadata: {name: p}, spec: {serviceAccountName: strict, containers: [{name: c, image: i, envFrom: [{secretRef: {name: s}}]}]}}`,
			`pods "p" is forbidden: container c with envFrom referencing secret.secretName="s" is not allowed because service account strict does not reference that secret`},
		{"a variable", `{metadata: {name: p}, spec: {serviceAccountName: strict, initContainers: [{name: d, image: i, env: [{name: e, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}}`,
			`pods "p" is forbidden: init container d with envVar e referencing secret.secretName="s" is not allowed because service account strict does not reference that secret`},
		{"secrets for images", `{metadata: {name: p}, spec: {serviceAccountName: strict, imagePullSecrets: [{name: pull}, {name: s}]}}`,
			`pods "p" is forbidden: imagePullSecrets[1].name="s" is not allowed because service account strict does not reference that imagePullSecret`},
		{"a mirror pod with an account", `{metadata: {name: p, annotations: {kubernetes.io/config.mirror: m}}, spec: {serviceAccountName: robot}}`,
			`pods "p" is forbidden: a mirror pod may not reference service accounts`},
		{"a mirror pod with a secret", `{metadata: {name: p, annotations: {kubernetes.io/config.mirror: m}}, spec: {volumes: [{name: v, rbd: {image: i, monitors: [m], secretRef: {name: s}}}]}}`,
			`pods "p" is forbidden: a mirror pod may not reference secrets`},
		{"a mirror pod with a token", `{metadata: {name: p, annotations: {kubernetes.io/config.mirror: m}}, spec: {volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}}`,
			`pods "p" is forbidden: a mirror pod may not use ServiceAccountToken volume projections`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := w.Create("{apiVersion: v1, kind: Pod, " + strings.TrimPrefix(test.pod, "{"))
			if err == nil || err.Error() != test.err {
				t.Errorf("%v\nwant\n%s", err, test.err)
			}
		})
	}
}

// Ephemeral containers can only use allowed secrets.
func TestEphemeralContainers(t *testing.T) {
	w := world(t)
	w.Have(accounts)
	w.Have(`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {serviceAccountName: strict, containers: [{name: c, image: i}]}}`)
	add := func(secret string) error {
		_, err := w.Update(`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {ephemeralContainers: [{name: e, image: i, envFrom: [{secretRef: {name: `+secret+`}}]}]}}`, "ephemeralcontainers")
		return err
	}
	const want = `ephemeral container e with envFrom referencing secret.secretName="other" is not allowed because service account strict does not reference that secret`
	if err := add("other"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := add("mine"); err != nil {
		t.Error(err)
	}
}

// A pod waits for the default account of a new namespace, for a limited time, and for no other
// account.
func TestWaitsForTheDefault(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}`
	synctest.Test(t, func(t *testing.T) {
		w := world(t)
		start := time.Now()
		_, err := w.Create(pod)
		if took := time.Since(start); err == nil || !strings.Contains(err.Error(), `serviceaccount "default" not found`) || took < time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		done, aside := make(chan error, 1), *w // the same world, with its own last write
		go func() { _, err := aside.Create(pod); done <- err }()
		time.Sleep(time.Second)
		w.Have(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`)
		if err := <-done; err != nil {
			t.Error(err)
		}
		start = time.Now()
		if _, err := w.Create(strings.Replace(pod, "spec: {", "spec: {serviceAccountName: other, ", 1)); err == nil || time.Since(start) > 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}
