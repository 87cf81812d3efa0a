// Package defaults has the roles and bindings that every cluster has, as Kubernetes v1.37 has
// them: for the public and those who are known, for administrators of the cluster and of
// namespaces, for the components of a cluster, and for each controller.
//
// They are text, which is read when somebody asks. The package says what becomes of an object
// that was changed. It does not write any.
package defaults

import (
	_ "embed" // the tables
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
)

// The tables. A role is its name, and the rules below it, one a line: verbs, resources, groups
// and names; or verbs and paths. "to=X" gives its rules to the role X, and "from=X" takes those
// that are given to X. A binding is its name, its role if that has another one, and subjects.
// Each controller has a role, and a binding to its service account.
var (
	//go:embed clusterroles.txt
	clusterRoles string
	//go:embed controllers.txt
	controllers string
	//go:embed clusterrolebindings.txt
	clusterRoleBindings string
	//go:embed roles.txt
	roles string
	//go:embed rolebindings.txt
	roleBindings string
)

// core is what the tables call the group without a name.
const core = "core"

// controllerPrefix is what the names of the roles of controllers start with.
const controllerPrefix = "system:controller:"

// aggregateTo is the beginning of the labels that say which role takes the rules of another.
const aggregateTo = "rbac.authorization.k8s.io/aggregate-to-"

// An Object is one that every cluster has.
type Object struct {
	Resource string
	Tree     object.Tree
}

// Objects returns the objects, in the order in which Kubernetes makes them.
func Objects() []Object {
	var all []Object
	add := func(resource string, trees []object.Tree) {
		for _, t := range trees {
			all = append(all, Object{resource, t})
		}
	}
	ofControllers := readRoles("ClusterRole", controllers)
	add("clusterroles", readRoles("ClusterRole", clusterRoles))
	add("clusterroles", ofControllers)
	add("clusterrolebindings", readBindings("ClusterRoleBinding", clusterRoleBindings))
	for _, role := range ofControllers {
		name := object.Name(role)
		account := "ServiceAccount:" + metav1.NamespaceSystem + ":" + strings.TrimPrefix(name, controllerPrefix)
		add("clusterrolebindings", readBindings("ClusterRoleBinding", name+" "+account))
	}
	add("roles", readRoles("Role", roles))
	add("rolebindings", readBindings("RoleBinding", roleBindings))
	return all
}

// newObject is an object without content. Its name may follow its namespace and a slash.
func newObject(kind, name string) object.Tree {
	metadata := object.Tree{
		"labels":      object.Tree{"kubernetes.io/bootstrapping": "rbac-defaults"},
		"annotations": object.Tree{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
	if namespace, within, ok := strings.Cut(name, "/"); ok {
		metadata["namespace"], name = namespace, within
	}
	metadata["name"] = name
	return object.Tree{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": kind, "metadata": metadata}
}

func readRoles(kind, table string) (all []object.Tree) {
	var t object.Tree
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if line[0] == '\t' {
			rules, _ := t["rules"].([]any)
			t["rules"] = append(rules, readRule(f))
			continue
		}
		t = newObject(kind, f[0])
		t["rules"] = nil
		for _, option := range f[1:] {
			if to, ok := strings.CutPrefix(option, "to="); ok {
				object.Metadata(t)["labels"].(object.Tree)[aggregateTo+to] = "true"
			}
			if from, ok := strings.CutPrefix(option, "from="); ok {
				labels := object.Tree{"matchLabels": object.Tree{aggregateTo + from: "true"}}
				t["aggregationRule"] = object.Tree{"clusterRoleSelectors": []any{labels}}
			}
		}
		all = append(all, t)
	}
	return all
}

// readRule reads the fields of a rule.
func readRule(f []string) object.Tree {
	rule := object.Tree{"verbs": list(f[0])}
	if len(f) == 2 {
		rule["nonResourceURLs"] = list(f[1])
		return rule
	}
	rule["resources"], rule["apiGroups"] = list(f[1]), list(f[2])
	if len(f) > 3 {
		rule["resourceNames"] = list(f[3])
	}
	return rule
}

func list(field string) (values []any) {
	for value := range strings.SplitSeq(field, ",") {
		if value == core {
			value = ""
		}
		values = append(values, value)
	}
	return values
}

func readBindings(kind, table string) (all []object.Tree) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		t := newObject(kind, f[0])
		role := object.Tree{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": object.Name(t)}
		for _, field := range f[1:] {
			of, name, _ := strings.Cut(field, ":")
			switch of {
			case "Role":
				role["kind"], role["name"] = of, name
				continue
			case rbacv1.ServiceAccountKind:
				namespace, name, _ := strings.Cut(name, ":")
				addSubject(t, object.Tree{"kind": of, "namespace": namespace, "name": name})
			default:
				addSubject(t, object.Tree{"apiGroup": rbacv1.GroupName, "kind": of, "name": name})
			}
		}
		t["roleRef"] = role
		all = append(all, t)
	}
	return all
}

func addSubject(t, subject object.Tree) {
	subjects, _ := t["subjects"].([]any)
	t["subjects"] = append(subjects, subject)
}

// RulesOf returns the rules of a ClusterRole that every cluster has.
func RulesOf(name string) []rbacv1.PolicyRule {
	for _, t := range readRoles("ClusterRole", clusterRoles) {
		if object.Name(t) == name {
			return policy(t)
		}
	}
	return nil
}
