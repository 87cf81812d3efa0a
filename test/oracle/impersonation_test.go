package oracle

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	upstreamimpersonation "k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	upstreamrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/impersonation"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// Random impersonation requests: the same users may impersonate the same others, and the same requests
// are rejected with the same message. Each user sends a few requests in a row, because an earlier
// success determines the first check of a later request.
func TestImpersonation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	served, refused := 0, 0
	for round := range 2000 {
		rights := rights{seed: rng.Uint64(), share: []uint64{20, 60, 95}[rng.IntN(3)]}
		var got string
		theirs := upstreamImpersonation(rights, &got)
		ours := impersonation.New(rights, nil)
		asking := randomAsking(rng)
		for range 5 {
			h, target := randomWanted(rng), anyOf(rng, "/apis", "/api/v1/namespaces/a/pods?labelSelector=x", "/api/v1/nodes/n1", "/apis/apps/v1/namespaces/b/deployments/d")
			r := httptest.NewRequest(anyOf(rng, "GET", "POST", "DELETE"), target, nil)
			r.Header = h.Clone()
			want := theirs(r.Clone(t.Context()), asking)

			as, err := ours.As(t.Context(), r.Header, &authz.Attributes{User: asking, Info: request.Parse(r)})
			switch {
			case err != nil:
				s := status.Of(err)
				got = fmt.Sprint(s.Code, s.Reason, s.Message, s.Details)
				refused++
			case as != nil:
				got = describe(as.User.Name, as.User.UID, as.User.Groups, as.User.Extra, r.Header)
				served++
			default:
				got = describe(asking.Name, asking.UID, asking.Groups, asking.Extra, r.Header)
			}
			if got != want {
				t.Fatalf("round %d: %s %s by %+v with %v (-upstream +ours):\n%s", round, r.Method, target, asking, h, cmp.Diff(want, got))
			}
		}
	}
	t.Logf("%d impersonated requests were allowed, %d were rejected", served, refused)
	if served < 500 || refused < 500 {
		t.Error("the requests are one-sided")
	}
}

// rights are random, and reproducible.
type rights struct{ seed, share uint64 }

func (r rights) allow(u *request.User, verb, group, resource, subresource, namespace, name, path string) (bool, string, error) {
	h := fnv.New64a()
	fmt.Fprintln(h, r.seed, u.Name, u.Groups, slices.Sorted(maps.Keys(u.Extra)), verb, group, resource, subresource, namespace, name, path)
	sum := h.Sum64()
	switch {
	case sum%100 < r.share:
		return true, "", nil
	case sum%7 == 0:
		return false, "no reason", fmt.Errorf("cannot find out")
	case sum%7 == 1:
		return false, "no role", nil
	case sum%7 == 2:
		return false, "", fmt.Errorf("cannot find out")
	default:
		return false, "", nil
	}
}

func (r rights) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	ok, reason, err := r.allow(a.User, a.Verb, a.Group, a.Resource, a.Subresource, a.Namespace, a.Name, pathOf(a.IsResource, a.Path))
	if ok {
		return authz.Allow, reason, err
	}
	return authz.NoOpinion, reason, err
}

func pathOf(isResource bool, path string) string {
	if isResource {
		return ""
	}
	return path
}

func (r rights) upstream(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	u := a.GetUser()
	asking := &request.User{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}
	ok, reason, err := r.allow(asking, a.GetVerb(), a.GetAPIGroup(), a.GetResource(), a.GetSubresource(), a.GetNamespace(), a.GetName(), pathOf(a.IsResourceRequest(), a.GetPath()))
	if ok {
		return authorizer.DecisionAllow, reason, err
	}
	return authorizer.DecisionNoOpinion, reason, err
}

// upstreamImpersonation returns the result of upstream's filter for a request.
func upstreamImpersonation(r rights, answer *string) func(*http.Request, *request.User) string {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	handler := upstreamimpersonation.WithConstrainedImpersonation(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		u, _ := upstreamrequest.UserFrom(r.Context())
		*answer = describe(u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra(), r.Header)
	}), authorizer.AuthorizerFunc(r.upstream), serializer.NewCodecFactory(scheme))
	resolver := &upstreamrequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return func(r *http.Request, asking *request.User) string {
		info, err := resolver.NewRequestInfo(r)
		if err != nil {
			return err.Error()
		}
		ctx := upstreamrequest.WithRequestInfo(r.Context(), info)
		ctx = upstreamrequest.WithUser(ctx, &user.DefaultInfo{Name: asking.Name, UID: asking.UID, Groups: asking.Groups, Extra: asking.Extra})
		w := httptest.NewRecorder()
		*answer = ""
		handler.ServeHTTP(w, r.WithContext(ctx))
		if *answer != "" {
			return *answer
		}
		var s metav1.Status
		if err := utiljson.Unmarshal(w.Body.Bytes(), &s); err != nil {
			return w.Body.String()
		}
		return fmt.Sprint(s.Code, s.Reason, s.Message, s.Details)
	}
}

func describe(name, uid string, groups []string, extra map[string][]string, h http.Header) string {
	return fmt.Sprintf("%q %q %q %q with %v", name, uid, groups, extra, slices.Sorted(maps.Keys(h)))
}

func anyOf[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func randomAsking(rng *rand.Rand) *request.User {
	u := &request.User{Name: anyOf(rng, "bob", "system:node:n1", "system:serviceaccount:a:b", "system:serviceaccount:a:b"), Groups: []string{"devs"}}
	if rng.IntN(2) == 0 {
		u.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {anyOf(rng, "n1", "n2")}, "other": {"x"}}
	}
	return u
}

// randomWanted returns the headers. An extra has one key where an error could name any of several.
func randomWanted(rng *rand.Rand) http.Header {
	h := http.Header{"Accept": {"application/json"}}
	if rng.IntN(8) > 0 {
		h.Set("Impersonate-User", anyOf(rng, "eve", "system:anonymous", "system:node:n1", "system:node:N_1", "system:node:n2", "system:serviceaccount:a:c", "system:serviceaccount:a:", ""))
	}
	if rng.IntN(4) == 0 {
		h.Set("Impersonate-Uid", anyOf(rng, "u1", ""))
	}
	if rng.IntN(3) == 0 {
		for range rng.IntN(6) {
			h.Add("Impersonate-Group", anyOf(rng, "devs", "ops", "g3", "g4", "system:masters", "system:unauthenticated", "system:authenticated", ""))
		}
	}
	if rng.IntN(4) == 0 {
		name := "Impersonate-Extra-" + anyOf(rng, "Scopes", "Example.com%2fscopes", "Example.com%2FScopes", "%zz", "")
		for range 1 + rng.IntN(5) {
			h.Add(name, anyOf(rng, "a", "b", "c", ""))
		}
	}
	return h
}
