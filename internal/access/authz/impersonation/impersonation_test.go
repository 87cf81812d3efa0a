package impersonation

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// rights are the allowed actions, as VERB RESOURCE NAME.
type rights []string

func (r rights) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if slices.Contains(r, a.Verb+" "+a.Resource+" "+a.Name) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// ask is a request of bob for the pod p, with impersonation headers.
func ask(i *Impersonator, h http.Header) (*As, error) {
	bob := &request.User{Name: "bob", Groups: []string{"devs"}}
	return i.As(context.Background(), h, &authz.Attributes{User: bob, Info: request.Info{IsResource: true, Verb: "get", Resource: "pods", Name: "p"}})
}

func TestAs(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rights  rights
		headers http.Header
		want    *As
		refused string
	}{
		{"an empty header", nil, http.Header{"Impersonate-User": {""}, "User-Agent": {"kubectl"}}, nil, ""},
		{"without a name", nil, http.Header{"Impersonate-Group": {"g"}}, nil,
			`requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without impersonating a user name`},
		{"not allowed", nil, http.Header{"Impersonate-User": {"eve"}}, nil,
			`pods "p" is forbidden: User "bob" cannot impersonate-on:user-info:get resource "pods" in API group "" at the cluster scope`},
		{"all that the other may do", rights{"impersonate users eve"}, http.Header{"Impersonate-User": {"eve"}},
			&As{User: &request.User{Name: "eve", Groups: []string{request.Authenticated}}}, ""},
		{"this request only", rights{"impersonate-on:user-info:get pods p", "impersonate:user-info users eve"}, http.Header{"Impersonate-User": {"eve"}},
			&As{User: &request.User{Name: "eve", Groups: []string{request.Authenticated}}, Constraint: "impersonate:user-info"}, ""},
		{"each group is asked for", rights{"impersonate users eve", "impersonate groups a"}, http.Header{"Impersonate-User": {"eve"}, "Impersonate-Group": {"a", "b"}}, nil,
			`pods "p" is forbidden: User "bob" cannot impersonate-on:user-info:get resource "pods" in API group "" at the cluster scope`},
		{"a uid and an extra", rights{"impersonate users eve", "impersonate uids u", "impersonate userextras v"},
			http.Header{"Impersonate-User": {"eve"}, "Impersonate-Uid": {"u"}, "Impersonate-Extra-A%2fb": {"v"}},
			&As{User: &request.User{Name: "eve", UID: "u", Groups: []string{request.Authenticated}, Extra: map[string][]string{"a/b": {"v"}}}}, ""},
		{"a service account has its groups", rights{"impersonate serviceaccounts s"}, http.Header{"Impersonate-User": {"system:serviceaccount:n:s"}},
			&As{User: &request.User{Name: "system:serviceaccount:n:s", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:n", request.Authenticated}}}, ""},
		{"a constrained node has its group", rights{"impersonate-on:arbitrary-node:get pods p", "impersonate:arbitrary-node nodes n"}, http.Header{"Impersonate-User": {"system:node:n"}},
			&As{User: &request.User{Name: "system:node:n", Groups: []string{"system:nodes", request.Authenticated}}, Constraint: "impersonate:arbitrary-node"}, ""},
		{"the anonymous user", rights{"impersonate users system:anonymous"}, http.Header{"Impersonate-User": {request.Anonymous}},
			&As{User: &request.User{Name: request.Anonymous, Groups: []string{request.Unauthenticated}}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as, err := ask(New(tt.rights, nil), tt.headers)
			refused := ""
			if err != nil {
				refused = status.Of(err).Message
			}
			if !reflect.DeepEqual(as, tt.want) || refused != tt.refused {
				t.Errorf("%+v, %s", as, refused)
			}
			if _, left := tt.headers["Impersonate-User"]; as != nil && left {
				t.Error("the headers are still there")
			}
		})
	}
}

// Impersonation of system:masters takes the unconstrained verb.
func TestMasters(t *testing.T) {
	all := rights{"impersonate-on:user-info:get pods p", "impersonate:user-info users eve", "impersonate:user-info groups system:masters"}
	if _, err := ask(New(all, nil), http.Header{"Impersonate-User": {"eve"}, "Impersonate-Group": {request.Masters}}); err == nil {
		t.Error("a constrained impersonation has become an administrator")
	}
}

// Without the gate, only the unconstrained verb allows an impersonation.
func TestUnconstrained(t *testing.T) {
	off := gate.With(map[gate.Name]bool{gate.ConstrainedImpersonation: false})
	constrained := rights{"impersonate-on:user-info:get pods p", "impersonate:user-info users eve"}
	headers := func() http.Header { return http.Header{"Impersonate-User": {"eve"}} }
	if as, err := ask(New(constrained, nil), headers()); err != nil || as == nil {
		t.Errorf("with the gate: %+v, %v", as, err)
	}
	if as, err := ask(New(constrained, off), headers()); err == nil {
		t.Errorf("without the gate, constrained: %+v", as)
	}
	if as, err := ask(New(rights{"impersonate users eve"}, off), headers()); err != nil || as == nil || as.Constraint != "" {
		t.Errorf("without the gate: %+v, %v", as, err)
	}
}
