package payload

import "fmt"

const (
	roles    = "rbac.authorization.k8s.io"
	rolesAPI = "/apis/" + roles + "/v1"
)

// A Part is an object of the RBAC setup, and the path for its POST.
type Part struct {
	Path string
	Body []byte
}

// UserRole is a role that gives a user all rights on Widgets of a namespace, and its binding.
func (k Kind) UserRole(namespace, user string) []Part {
	at := rolesAPI + "/namespaces/" + namespace
	return []Part{
		{at + "/roles", encode(object{
			"apiVersion": roles + "/v1", "kind": "Role", "metadata": object{"name": user, "namespace": namespace},
			"rules": []object{{"apiGroups": []string{k.Group}, "resources": []string{Plural}, "verbs": []string{"*"}}},
		})},
		{at + "/rolebindings", encode(object{
			"apiVersion": roles + "/v1", "kind": "RoleBinding", "metadata": object{"name": user, "namespace": namespace},
			"roleRef":  object{"apiGroup": roles, "kind": "Role", "name": user},
			"subjects": []object{{"apiGroup": roles, "kind": "User", "name": user}},
		})},
	}
}

// OthersBinding is the nth binding of the ClusterRole view to a user, a group and a ServiceAccount
// that send no requests. Every other one is a RoleBinding, the rest are ClusterRoleBindings.
func OthersBinding(namespace string, n int) Part {
	name := fmt.Sprintf("others-%05d", n)
	binding := object{
		"apiVersion": roles + "/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": name},
		"roleRef": object{"apiGroup": roles, "kind": "ClusterRole", "name": "view"},
		"subjects": []object{
			{"apiGroup": roles, "kind": "User", "name": name},
			{"apiGroup": roles, "kind": "Group", "name": name},
			{"kind": "ServiceAccount", "namespace": "default", "name": name},
		},
	}
	if n%2 == 0 {
		return Part{rolesAPI + "/clusterrolebindings", encode(binding)}
	}
	binding["kind"] = "RoleBinding"
	binding["metadata"] = object{"name": name, "namespace": namespace}
	return Part{rolesAPI + "/namespaces/" + namespace + "/rolebindings", encode(binding)}
}
