package ownerreferences_test

import (
	"context"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/ownerreferences"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

// rights are the permissions of a user: a verb, a resource with its subresource, and a name.
type rights map[string]bool

func (r rights) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if r[strings.Join([]string{a.Verb, strings.Trim(a.Resource+"/"+a.Subresource, "/"), a.Namespace, a.Name}, " ")] {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "no rule", nil
}

func TestOwners(t *testing.T) {
	const (
		plain     = `[{apiVersion: v1, kind: Pod, name: p, uid: u}]`
		blocking  = `[{apiVersion: v1, kind: Pod, name: p, uid: u, blockOwnerDeletion: true}]`
		node      = `[{apiVersion: v1, kind: Node, name: x, uid: u, blockOwnerDeletion: true}]`
		unserved  = `[{apiVersion: v2, kind: Pod, name: p, uid: u, blockOwnerDeletion: true}]`
		forbidden = `configmaps "c" is forbidden: cannot set `
	)
	tests := []struct{ name, may, was, now, want string }{
		{"owners of a new object", "", "", plain, ""},
		{"of an object that the user may delete", "delete configmaps dev c", "[]", plain, ""},
		{"of one that they may not", "", "[]", plain, forbidden + "an ownerRef on a resource you can't delete: no rule, <nil>"},
		{"taken away from it", "", plain, "null", forbidden + "an ownerRef on a resource you can't delete: no rule, <nil>"},
		{"as they were", "", blocking, blocking, ""},
		{"that stay because of a new object", "", "", blocking, forbidden + "blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no rule, <nil>"},
		{"of an owner that the user may finalize", "update pods/finalizers dev p", "", blocking, ""},
		{"that are in no namespace", "update nodes/finalizers  x", "", node, ""},
		{"who may finalize anything", "update */finalizers  *", "", unserved, ""},
		{"of a kind that is not served", "", "", unserved, forbidden + `blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v2 Kind Pod: no matches for kind "Pod" in version "v2"`},
		{"that stay from now on", "delete configmaps dev c", plain, blocking, forbidden + "blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no rule, <nil>"},
		{"that do not stay any more", "delete configmaps dev c", blocking, plain, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := admissiontest.New(t, func(w *admissiontest.World) []any {
				kinds := &resource.Catalog{}
				kinds.Swap(w.Kinds)
				return []any{&ownerreferences.PermissionEnforcement{Authorizer: rights{test.may: true}, Kinds: kinds}}
			})
			text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ownerReferences: "
			write := func() error { _, err := w.Create(text + test.now + "}}"); return err }
			if test.was != "" {
				w.Have(text + test.was + "}}") // by the server itself
				write = func() error { _, err := w.Update(text+test.now+"}}", ""); return err }
			}
			w.User = &request.User{Name: "jane"}
			got := ""
			if err := write(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}
