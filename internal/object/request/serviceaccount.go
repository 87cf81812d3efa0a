package request

import (
	"errors"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
)

// NodeName is the extra with the node of a service account's pod.
const NodeName = "authentication.kubernetes.io/node-name"

const (
	serviceAccount  = "system:serviceaccount:"
	serviceAccounts = "system:serviceaccounts"
)

// ServiceAccount returns the user name of a service account.
func ServiceAccount(namespace, name string) string { return serviceAccount + namespace + ":" + name }

// ServiceAccountGroups returns the groups of the service accounts of a namespace.
func ServiceAccountGroups(namespace string) []string {
	return []string{serviceAccounts, serviceAccounts + ":" + namespace}
}

var errServiceAccount = errors.New("Username must be in the form " + ServiceAccount("namespace", "name"))

// SplitServiceAccount returns the service account of a user name.
func SplitServiceAccount(user string) (namespace, name string, err error) {
	rest, ok := strings.CutPrefix(user, serviceAccount)
	if !ok {
		return "", "", errServiceAccount
	}
	namespace, name, ok = strings.Cut(rest, ":")
	if !ok || len(apivalidation.ValidateNamespaceName(namespace, false)) > 0 || len(apivalidation.ValidateServiceAccountName(name, false)) > 0 {
		return "", "", errServiceAccount
	}
	return namespace, name, nil
}
