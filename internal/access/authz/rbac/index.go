package rbac

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// An index finds the grants of users.
type index struct {
	roles    map[roleID]*role
	bindings [kinds]map[string]*binding // by key
	cluster  *scope
	within   map[string]*scope // by namespace
	// generation changes with every change of a role.
	generation int64
}

func newIndex() index {
	x := index{roles: map[roleID]*role{}, cluster: newScope(), within: map[string]*scope{}}
	x.bindings[clusterRoleBindings], x.bindings[roleBindings] = map[string]*binding{}, map[string]*binding{}
	return x
}

// scopes returns the scopes of a namespace; the second may be nil.
func (x *index) scopes(namespace string) [2]*scope {
	if namespace == "" {
		return [2]*scope{x.cluster}
	}
	return [2]*scope{x.cluster, x.within[namespace]}
}

// A scope has the holders of the cluster or of a namespace.
type scope struct{ users, groups map[string]*holder }

func newScope() *scope { return &scope{users: map[string]*holder{}, groups: map[string]*holder{}} }

// holders returns the map of holders for a subject, and its key there. A service account is the user
// that it authenticates as.
func (s *scope) holders(subject *rbacv1.Subject, namespace string) (map[string]*holder, string) {
	switch subject.Kind {
	case rbacv1.UserKind:
		return s.users, subject.Name
	case rbacv1.GroupKind:
		return s.groups, subject.Name
	case rbacv1.ServiceAccountKind:
		if subject.Namespace != "" {
			namespace = subject.Namespace
		}
		if namespace == "" {
			return nil, ""
		}
		return s.users, request.ServiceAccount(namespace, subject.Name)
	default:
		return nil, ""
	}
}

// A binding is a stored binding.
type binding struct {
	name, namespace string // without a namespace it is a ClusterRoleBinding
	ref             rbacv1.RoleRef
	subjects        []rbacv1.Subject
	role            *role // nil if the reference is invalid
}

// A grant is a subject of a binding, by its index.
type grant struct {
	binding *binding
	subject int
	reason  atomic.Pointer[string]
}

// before orders two grants of a scope.
func (g *grant) before(other *grant) bool {
	if g.binding == other.binding {
		return g.subject < other.subject
	}
	return g.binding.name < other.binding.name
}

// allowed returns the reason of an allowed request. It is formatted at the first use.
func (g *grant) allowed() string {
	if text := g.reason.Load(); text != nil {
		return *text
	}
	b, subject := g.binding, &g.binding.subjects[g.subject]
	kind, name, whom := "ClusterRoleBinding", b.name, subject.Name
	if b.namespace != "" {
		kind, name = "RoleBinding", b.name+"/"+b.namespace
	}
	if subject.Kind == rbacv1.ServiceAccountKind {
		whom += "/" + subject.Namespace
		if subject.Namespace == "" {
			whom += b.namespace
		}
	}
	text := fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s %q", kind, name, b.ref.Kind, b.ref.Name, subject.Kind, whom)
	g.reason.Store(&text)
	return text
}

// refersTo returns the role of the binding, if the reference is valid.
func (b *binding) refersTo() (roleID, bool) {
	switch b.ref.Kind {
	case "ClusterRole":
		return roleID{cluster: true, name: b.ref.Name}, true
	case "Role":
		return roleID{namespace: b.namespace, name: b.ref.Name}, true
	default:
		return roleID{}, false
	}
}

// rules returns the rules of the binding's role.
func (b *binding) rules() ([]rule, error) {
	switch {
	case b.role == nil:
		return nil, fmt.Errorf("unsupported role reference kind: %q", b.ref.Kind)
	case b.role.object == nil:
		return nil, status.NotFound(b.role.id.resource(), b.role.id.name)
	}
	c := b.role.compiled()
	return c.rules, c.err
}

// set adds or updates an object.
func (x *index) set(kind int, o *watchcache.Object) {
	if kind == clusterRoles || kind == roles {
		r := x.role(roleID{cluster: kind == clusterRoles, namespace: o.Namespace(), name: o.Name()})
		r.object = o
		r.content.Store(nil)
		x.generation++
		return
	}
	x.unbind(kind, o.Key)
	var content struct {
		RoleRef  rbacv1.RoleRef   `json:"roleRef"`
		Subjects []rbacv1.Subject `json:"subjects"`
	}
	if data, err := o.JSON(); err != nil || json.Unmarshal(data, &content) != nil {
		return // it has no rules
	}
	b := &binding{name: o.Name(), namespace: o.Namespace(), ref: content.RoleRef, subjects: content.Subjects}
	if id, ok := b.refersTo(); ok {
		b.role = x.role(id)
		b.role.bindings++
	}
	x.bindings[kind][o.Key] = b
	s := x.scope(b.namespace)
	for i := range b.subjects {
		if all, name := s.holders(&b.subjects[i], b.namespace); all != nil {
			if all[name] == nil {
				all[name] = &holder{}
			}
			all[name].add(&grant{binding: b, subject: i})
		}
	}
}

// remove removes an object.
func (x *index) remove(kind int, o *watchcache.Object) {
	if kind != clusterRoles && kind != roles {
		x.unbind(kind, o.Key)
		return
	}
	id := roleID{cluster: kind == clusterRoles, namespace: o.Namespace(), name: o.Name()}
	if r := x.roles[id]; r != nil {
		x.absent(id, r)
	}
}

// unbind removes the grants of a binding.
func (x *index) unbind(kind int, key string) {
	b := x.bindings[kind][key]
	if b == nil {
		return
	}
	delete(x.bindings[kind], key)
	s := x.scope(b.namespace)
	for i := range b.subjects {
		all, name := s.holders(&b.subjects[i], b.namespace)
		if h := all[name]; h != nil && h.remove(b) {
			delete(all, name)
		}
	}
	if b.namespace != "" && len(s.users)+len(s.groups) == 0 {
		delete(x.within, b.namespace)
	}
	if r := b.role; r != nil {
		if r.bindings--; r.bindings == 0 && r.object == nil {
			delete(x.roles, r.id)
		}
	}
}

// absent marks a role as missing.
func (x *index) absent(id roleID, r *role) {
	r.object = nil
	r.content.Store(nil)
	x.generation++
	if r.bindings == 0 {
		delete(x.roles, id)
	}
}

// clear removes all objects of a kind.
func (x *index) clear(kind int) {
	for id, r := range x.roles {
		if r.object != nil && (kind == clusterRoles && id.cluster || kind == roles && !id.cluster) {
			x.absent(id, r)
		}
	}
	for key := range x.bindings[kind] {
		x.unbind(kind, key)
	}
}

// role returns the role of an id, stored or missing.
func (x *index) role(id roleID) *role {
	r := x.roles[id]
	if r == nil {
		r = &role{id: id}
		x.roles[id] = r
	}
	return r
}

func (x *index) scope(namespace string) *scope {
	if namespace == "" {
		return x.cluster
	}
	s := x.within[namespace]
	if s == nil {
		s = newScope()
		x.within[namespace] = s
	}
	return s
}

// find returns the first grant of a user that allows the query, or nil.
func (s *scope) find(u *request.User, q *query, generation int64) *grant {
	if s == nil {
		return nil
	}
	first := s.users[u.Name].find(q, generation)
	for _, name := range u.Groups {
		if g := s.groups[name].find(q, generation); g != nil && (first == nil || g.before(first)) {
			first = g
		}
	}
	return first
}

// grants returns all grants of a user, ordered, one per binding.
func (s *scope) grants(u *request.User) []*grant {
	if s == nil {
		return nil
	}
	var all []*grant
	add := func(h *holder) {
		if h != nil {
			all = append(all, h.grants...)
		}
	}
	add(s.users[u.Name])
	for _, name := range u.Groups {
		add(s.groups[name])
	}
	return inOrder(all)
}

// problems appends the errors of the user's grants that have no rules.
func (s *scope) problems(u *request.User, errs []error) []error {
	if s == nil {
		return errs
	}
	var broken []*grant
	broken = s.users[u.Name].broken(broken)
	for _, name := range u.Groups {
		broken = s.groups[name].broken(broken)
	}
	for _, g := range inOrder(broken) {
		_, err := g.binding.rules()
		errs = append(errs, err)
	}
	return errs
}

// inOrder sorts grants, and keeps the first of each binding.
func inOrder(grants []*grant) []*grant {
	slices.SortFunc(grants, func(a, b *grant) int {
		if a.binding == b.binding {
			return a.subject - b.subject
		}
		return strings.Compare(a.binding.name, b.binding.name)
	})
	return slices.CompactFunc(grants, func(a, b *grant) bool { return a.binding == b.binding })
}
