package serviceaccount

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
)

// checkSecrets rejects a pod with a secret that its account does not list, if the account enforces
// that list.
func checkSecrets(account *corev1.ServiceAccount, spec object.Tree) error {
	if !enforces(account) {
		return nil
	}
	may := mountable(account)
	for volume := range trees(spec, "volumes") {
		if secret := kind.Tree(volume, "secret"); secret != nil && !may[kind.Text(secret, "secretName")] {
			return fmt.Errorf("volume with secret.secretName=\"%s\" is not allowed because service account %s does not reference that secret",
				kind.Text(secret, "secretName"), account.Name)
		}
	}
	for _, list := range []struct{ field, what string }{{"initContainers", "init container"}, {"containers", "container"}} {
		if err := checkContainers(account, spec, list.field, list.what); err != nil {
			return err
		}
	}
	pull := named(account.ImagePullSecrets, func(s *corev1.LocalObjectReference) string { return s.Name })
	i := 0
	for secret := range trees(spec, "imagePullSecrets") {
		if name := kind.Text(secret, "name"); !pull[name] {
			return fmt.Errorf(`imagePullSecrets[%d].name="%s" is not allowed because service account %s does not reference that imagePullSecret`, i, name, account.Name)
		}
		i++
	}
	return nil
}

func checkEphemeralSecrets(account *corev1.ServiceAccount, spec object.Tree) error {
	if !enforces(account) {
		return nil
	}
	return checkContainers(account, spec, "ephemeralContainers", "ephemeral container")
}

// checkContainers rejects environments of containers with secrets that the account does not list.
func checkContainers(account *corev1.ServiceAccount, spec object.Tree, field, what string) error {
	may := mountable(account)
	for container := range trees(spec, field) {
		refused := func(from, secret string) error {
			return fmt.Errorf("%s %s with %s referencing secret.secretName=\"%s\" is not allowed because service account %s does not reference that secret",
				what, kind.Text(container, "name"), from, secret, account.Name)
		}
		for env := range trees(container, "env") {
			if ref := kind.Tree(env, "valueFrom", "secretKeyRef"); ref != nil && !may[kind.Text(ref, "name")] {
				return refused("envVar "+kind.Text(env, "name"), kind.Text(ref, "name"))
			}
		}
		for from := range trees(container, "envFrom") {
			if ref := kind.Tree(from, "secretRef"); ref != nil && !may[kind.Text(ref, "name")] {
				return refused("envFrom", kind.Text(ref, "name"))
			}
		}
	}
	return nil
}

// mountable returns the secrets that an account lists.
func mountable(account *corev1.ServiceAccount) map[string]bool {
	return named(account.Secrets, func(s *corev1.ObjectReference) string { return s.Name })
}

func named[T any](all []T, name func(*T) string) map[string]bool {
	out := make(map[string]bool, len(all))
	for i := range all {
		out[name(&all[i])] = true
	}
	return out
}

// hasSecrets reports whether a pod refers to a secret in any way.
func hasSecrets(spec object.Tree) bool {
	for secret := range trees(spec, "imagePullSecrets") {
		if kind.Text(secret, "name") != "" {
			return true
		}
	}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for container := range trees(spec, list) {
			if containerHasSecret(container) {
				return true
			}
		}
	}
	for volume := range trees(spec, "volumes") {
		if volumeHasSecret(volume) {
			return true
		}
	}
	return false
}

func containerHasSecret(container object.Tree) bool {
	for from := range trees(container, "envFrom") {
		if kind.Text(from, "secretRef", "name") != "" {
			return true
		}
	}
	for env := range trees(container, "env") {
		if kind.Text(env, "valueFrom", "secretKeyRef", "name") != "" {
			return true
		}
	}
	return false
}

// volumeHasSecret reports whether the source of a volume refers to a secret. All sources do so in
// one of these fields.
func volumeHasSecret(volume object.Tree) bool {
	for _, source := range volume {
		source, ok := source.(object.Tree)
		if !ok {
			continue
		}
		if kind.Text(source, "secretName") != "" || kind.Text(source, "secretRef", "name") != "" || kind.Text(source, "nodePublishSecretRef", "name") != "" {
			return true
		}
		for projected := range trees(source, "sources") {
			if kind.Text(projected, "secret", "name") != "" {
				return true
			}
		}
	}
	return false
}

func asksForToken(spec object.Tree) bool {
	for volume := range trees(spec, "volumes") {
		for source := range trees(kind.Tree(volume, "projected"), "sources") {
			if source["serviceAccountToken"] != nil {
				return true
			}
		}
	}
	return false
}
