package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

func serviceAccounts() *resource.Definition {
	return kind.New(resource.Definition{
		Plural: "serviceaccounts", Singular: "serviceaccount", Kind: "ServiceAccount", ShortNames: []string{"sa"},
		Namespaced: true, GroupPriority: kind.CorePriority,
		ReturnsDeleted: true,
		Strategy: resource.Strategy{
			AllowUnconditionalUpdate: true,
			Prepare:                  resource.Changing(prepareServiceAccount),
			ValidateName:             apivalidation.ValidateServiceAccountName,
			Validate:                 resource.Looking(func(obj, _ map[string]any) field.ErrorList { return kind.MetaFinalizers(obj) }),
			Warn:                     resource.Looking(warnServiceAccount),
		},
	}, kind.VersionOf[corev1.ServiceAccount, corev1.ServiceAccountList](&resource.Version{Name: "v1", Columns: []resource.Column{kind.AgeColumn()}}, marks()))
}

// prepareServiceAccount keeps of the references to secrets only the names: they
// are always to secrets of the same namespace.
func prepareServiceAccount(obj, _ map[string]any) {
	secrets := kind.List(obj, "secrets")
	for i, s := range secrets {
		ref, _ := s.(map[string]any)
		kept := map[string]any{}
		if name := kind.Text(ref, "name"); name != "" {
			kept["name"] = name
		}
		secrets[i] = kept
	}
}

const enforceMountableSecrets = "kubernetes.io/enforce-mountable-secrets"

func warnServiceAccount(obj, old map[string]any) []string {
	has := func(o map[string]any) bool {
		_, ok := kind.Tree(o, "metadata", "annotations")[enforceMountableSecrets]
		return ok
	}
	if !has(obj) || has(old) {
		return nil
	}
	return []string{fmt.Sprintf("metadata.annotations[%s]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets", enforceMountableSecrets)}
}
