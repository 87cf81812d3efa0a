package builtin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/resource"
)

func serviceAccounts() *resource.Definition {
	return kind[corev1.ServiceAccount, corev1.ServiceAccountList](resource.Definition{
		Plural: "serviceaccounts", Singular: "serviceaccount", Kind: "ServiceAccount", ShortNames: []string{"sa"},
		Namespaced: true, GroupPriority: corePriority,
		AllowUnconditionalUpdate: true, ReturnsDeleted: true,
		ValidateName: apivalidation.ValidateServiceAccountName,
		Prepare:      prepareServiceAccount,
		Validate:     func(obj, _ map[string]any) field.ErrorList { return metaFinalizers(obj) },
		Warn:         warnServiceAccount,
	}, &resource.Version{Columns: []resource.Column{ageColumn()}})
}

// prepareServiceAccount keeps of the references to secrets only the names: they
// are always to secrets of the same namespace.
func prepareServiceAccount(obj, _ map[string]any) {
	secrets := list(obj, "secrets")
	for i, s := range secrets {
		ref, _ := s.(map[string]any)
		kept := map[string]any{}
		if name := text(ref, "name"); name != "" {
			kept["name"] = name
		}
		secrets[i] = kept
	}
}

const enforceMountableSecrets = "kubernetes.io/enforce-mountable-secrets"

func warnServiceAccount(obj, old map[string]any) []string {
	has := func(o map[string]any) bool {
		_, ok := tree(o, "metadata", "annotations")[enforceMountableSecrets]
		return ok
	}
	if !has(obj) || has(old) {
		return nil
	}
	return []string{fmt.Sprintf("metadata.annotations[%s]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets", enforceMountableSecrets)}
}
