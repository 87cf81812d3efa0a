package builtin

import (
	"context"
	"slices"
	"testing"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

// rights are the permissions of a user, as "verb resource/subresource namespace/name".
type rights []string

func (r rights) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	asked := a.Verb + " " + a.Resource + "/" + a.Subresource + " " + a.Namespace + "/" + a.Name
	if slices.Contains(r, asked) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// Allocation needs its own permission, and the status of devices one for each driver. The messages
// are those of kube-apiserver.
func TestRightsToTheStatusOfClaims(t *testing.T) {
	const (
		result  = `{request: one, driver: d.example.com, pool: p, device: gpu-0}`
		on      = `nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [here]}]}]}`
		given   = `allocation: {devices: {results: [` + result + `]}, ` + on + `}`
		said    = `devices: [{driver: d.example.com, pool: p, device: gpu-0}]`
		bind    = "update resourceclaims/binding /"
		driver  = "resourceclaims/driver a/d.example.com"
		refused = `resourceclaims.resource.k8s.io "d.example.com" is forbidden: User "system:serviceaccount:a:b" cannot `
		what    = ` resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "a"`
	)
	noBinding := `status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="update" permission: ` +
		`resourceclaims.resource.k8s.io is forbidden: User "system:serviceaccount:a:b" cannot update resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope`
	for _, tt := range []struct {
		name, old, in, node string
		may                 rights
		want                []string
	}{
		{name: "gives devices", old: `{}`, in: `{` + given + `}`, want: []string{noBinding}},
		{name: "takes them back", old: `{` + given + `}`, in: `{}`, want: []string{noBinding}},
		{name: "may give devices", old: `{}`, in: `{` + given + `}`, may: rights{bind}},
		{name: "changes nothing", old: `{` + given + `, ` + said + `}`, in: `{` + given + `, ` + said + `}`},
		{name: "speaks for a driver", old: `{` + given + `}`, in: `{` + given + `, ` + said + `}`, want: []string{
			`status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:update]" permission: ` + refused + `arbitrary-node:update` + what}},
		{name: "says no more for it", old: `{` + given + `, ` + said + `}`, in: `{` + given + `}`, node: "here", want: []string{
			`status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[associated-node:update arbitrary-node:update]" permission: ` + refused + `associated-node:update` + what}},
		{name: "is on its node", old: `{` + given + `}`, in: `{` + given + `, ` + said + `}`, node: "here", may: rights{"associated-node:update " + driver}},
		{name: "is on another", old: `{` + given + `}`, in: `{` + given + `, ` + said + `}`, node: "there", may: rights{"associated-node:update " + driver}, want: []string{
			`status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:update]" permission: ` + refused + `arbitrary-node:update` + what}},
		{name: "may from anywhere", old: `{` + given + `}`, in: `{` + given + `, ` + said + `}`, node: "there", may: rights{"arbitrary-node:update " + driver}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			claim := func(status string) map[string]any {
				return read(t, `{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c, namespace: a},
					spec: {devices: {requests: [{name: one, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}, status: `+status+`}`)
			}
			d := one(Dependencies{Authorizer: tt.may}.Definitions(), "resourceclaims")
			user := &request.User{Name: "system:serviceaccount:a:b", Extra: map[string][]string{}}
			if tt.node != "" {
				user.Extra[request.NodeName] = []string{tt.node}
			}
			ctx := request.With(t.Context(), &request.Request{User: user, Info: request.Info{
				IsResource: true, Verb: "update", Group: "resource.k8s.io", Resource: "resourceclaims", Subresource: "status", Namespace: "a", Name: "c",
			}})
			c := &resource.Change{Object: claim(tt.in), Old: claim(tt.old), Subresource: "status"}
			same(t, tt.name, messages(d.Versions[0].Subresource("status").Validate(ctx, c)), tt.want)
		})
	}
}
