// Package defaults has the default roles and bindings of Kubernetes: for unauthenticated and
// authenticated users, for administrators of the cluster and of namespaces, for the components of a
// cluster, and for each controller.
//
// They are text. The package parses it on demand, and reconciles a stored object with its
// default. It does not write objects.
package defaults

import (
	_ "embed" // the tables
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
)

// The tables. A role is its name, followed by its rules, one per line: verbs, resources, groups and
// names; or verbs and paths. "to=X" aggregates its rules to the role X, and "from=X" selects the
// rules that are aggregated to X. A role, a rule or a binding that ends with "gate=X" needs the
// feature gate X, and so does a path that ends with "?X". A
// binding is its name, its role if the names differ, and subjects. Each controller has a role, and a
// binding to its service account.
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

// core is the name of the core group in the tables.
const core = "core"

// controllerPrefix is the prefix of the roles of controllers.
const controllerPrefix = "system:controller:"

// aggregateTo is the prefix of the labels for aggregation; the role that aggregates follows.
const aggregateTo = "rbac.authorization.k8s.io/aggregate-to-"

// An Object is a default object.
type Object struct {
	Resource string
	Tree     object.Tree
}

// Objects returns the default objects with some feature gates, in the order in which Kubernetes creates them.
func Objects(gates *gate.Set) []Object {
	var all []Object
	add := func(resource string, trees []object.Tree) {
		for _, t := range trees {
			all = append(all, Object{resource, t})
		}
	}
	ofControllers := readRoles(gates, "ClusterRole", controllers)
	add("clusterroles", readRoles(gates, "ClusterRole", clusterRoles))
	add("clusterroles", ofControllers)
	add("clusterrolebindings", readBindings(gates, "ClusterRoleBinding", clusterRoleBindings))
	for _, role := range ofControllers {
		name := object.Name(role)
		account := "ServiceAccount:" + metav1.NamespaceSystem + ":" + strings.TrimPrefix(name, controllerPrefix)
		add("clusterrolebindings", readBindings(gates, "ClusterRoleBinding", name+" "+account))
	}
	add("roles", readRoles(gates, "Role", roles))
	add("rolebindings", readBindings(gates, "RoleBinding", roleBindings))
	return all
}

// newObject returns an object without content. name is NAME or NAMESPACE/NAME.
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

func readRoles(gates *gate.Set, kind, table string) (all []object.Tree) {
	var t object.Tree
	for line := range strings.Lines(table) {
		f, on := cutGate(gates, strings.Fields(line))
		if line[0] == '\t' {
			if !on {
				continue
			}
			rules, _ := t["rules"].([]any)
			t["rules"] = append(rules, readRule(gates, f))
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
		if on {
			all = append(all, t)
		}
	}
	return all
}

// cutGate returns the fields of a line before its gate, and whether the gate is on.
func cutGate(gates *gate.Set, f []string) ([]string, bool) {
	name, ok := strings.CutPrefix(f[len(f)-1], "gate=")
	if !ok {
		return f, true
	}
	return f[:len(f)-1], gates.On(gate.Name(name))
}

// readRule parses the fields of a rule.
func readRule(gates *gate.Set, f []string) object.Tree {
	rule := object.Tree{"verbs": list(f[0])}
	if len(f) == 2 {
		rule["nonResourceURLs"] = paths(gates, f[1])
		return rule
	}
	rule["resources"], rule["apiGroups"] = list(f[1]), list(f[2])
	if len(f) > 3 {
		rule["resourceNames"] = list(f[3])
	}
	return rule
}

// paths returns the paths of a rule whose gates are on.
func paths(gates *gate.Set, field string) (values []any) {
	for path := range strings.SplitSeq(field, ",") {
		if path, name, ok := strings.Cut(path, "?"); !ok || gates.On(gate.Name(name)) {
			values = append(values, path)
		}
	}
	return values
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

func readBindings(gates *gate.Set, kind, table string) (all []object.Tree) {
	for line := range strings.Lines(table) {
		f, on := cutGate(gates, strings.Fields(line))
		if !on {
			continue
		}
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

// RulesOf returns the rules of a default ClusterRole with some feature gates.
func RulesOf(name string, gates *gate.Set) []rbacv1.PolicyRule {
	for _, t := range readRoles(gates, "ClusterRole", clusterRoles) {
		if object.Name(t) == name {
			return policy(t)
		}
	}
	return nil
}
