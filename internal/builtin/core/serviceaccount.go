package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func serviceAccounts(o Dependencies, secrets *resource.Definition) *resource.Definition {
	tokens := &tokenCreater{
		issuer: o.Tokens, secrets: secrets, pods: o.Pods, nodes: o.Nodes,
		validating: o.ValidatingWebhooks, mutating: o.MutatingWebhooks, authorizer: o.Authorizer,
	}
	tokens.accounts = kind.Kind[*corev1.ServiceAccount, *corev1.ServiceAccountList]{
		Definition: resource.Definition{
			Plural: "serviceaccounts", ShortNames: []string{"sa"}, Namespaced: true, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: resource.Changing(prepareServiceAccount)},
		},
		Version: &resource.Version{Subresources: []resource.Subresource{tokens.subresource()}},
		Warn:    warnOfServiceAccount,
		Columns: `Age`,
	}.New()
	return tokens.accounts
}

// prepareServiceAccount keeps only the names in references to secrets: they are always in the same
// namespace.
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

func warnOfServiceAccount(c *rule.Check, account, old *corev1.ServiceAccount) {
	if _, ok := account.Annotations[enforceMountableSecrets]; !ok {
		return
	}
	if old != nil {
		if _, ok := old.Annotations[enforceMountableSecrets]; ok {
			return
		}
	}
	c.Warn("%s: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets",
		c.At("metadata", "annotations").AtKey(enforceMountableSecrets).Path())
}
