package builtin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/memkv"
)

// A TokenRequest returns a bound token, or an error.
func TestTokenRequest(t *testing.T) {
	keys, err := serviceaccount.OpenKeys("")
	if err != nil {
		t.Fatal(err)
	}
	issuer := serviceaccount.NewIssuer(serviceaccount.Options{Audiences: []string{"api"}})
	issuer.Use(keys)
	c := newClusterWith(t, memkv.New(memkv.Options{}), Dependencies{Tokens: issuer})
	c.create("", "serviceaccounts", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}`)
	c.create("", "serviceaccounts", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: other}}`)
	c.create("", "secrets", `{apiVersion: v1, kind: Secret, metadata: {name: s}}`)
	for name, node := range map[string]string{"p": "node1", "lost": "gone"} {
		c.create("", "pods", fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {serviceAccountName: robot, nodeName: %s, containers: [{name: c, image: i}]}}`, name, node))
	}
	node := c.target("", "nodes", "node1", "")
	node.Namespace = ""
	if _, err := c.registry.Create(t.Context(), node, registry.Given(read(c, `{apiVersion: v1, kind: Node, metadata: {name: node1}, spec: {}}`)), registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	const conflict = "Operation cannot be fulfilled on "
	for _, tt := range []struct{ account, spec, want string }{
		{"robot", "{}", "aud [api] seconds 3600 of robot"},
		{"robot", "{audiences: [a, b], expirationSeconds: 600}", "aud [a b] seconds 600 of robot"},
		{"robot", "{boundObjectRef: {kind: Pod, apiVersion: v1, name: p}}", "aud [api] seconds 3600 of robot pod p on node1 with a uid"},
		{"robot", "{boundObjectRef: {kind: Pod, apiVersion: v1, name: lost}}", "aud [api] seconds 3600 of robot pod lost on gone"},
		{"robot", "{boundObjectRef: {kind: Secret, apiVersion: v1, name: s}}", "aud [api] seconds 3600 of robot secret s"},
		{"robot", "{boundObjectRef: {kind: Node, apiVersion: v1, name: node1}}", "aud [api] seconds 3600 of robot on node1 with a uid"},
		{"robot", "{expirationSeconds: 3607, boundObjectRef: {kind: Pod, apiVersion: v1, name: p}}", "aud [api] seconds 31536000 of robot pod p on node1 with a uid"},

		{"missing", "{expirationSeconds: 1}", `serviceaccounts "missing" not found`},
		{"robot", "{expirationSeconds: 599}", `TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes`},
		{"robot", "{expirationSeconds: 4294967297}", `TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds`},
		{"robot", "{boundObjectRef: {kind: Pod, apiVersion: v1, name: x}}", `pods "x" not found`},
		{"robot", "{boundObjectRef: {kind: Secret, apiVersion: v1, name: s, uid: x}}", conflict + `Secret "s": the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated`},
		{"other", "{boundObjectRef: {kind: Pod, apiVersion: v1, name: p}}", `cannot bind token for serviceaccount "other" to pod running with different serviceaccount name.`},
		{"robot", "{boundObjectRef: {kind: ConfigMap, apiVersion: v1, name: x}}", "cannot bind token to object of type /v1, Kind=ConfigMap"},
	} {
		q := &request.Request{}
		answer, err := c.registry.Answer(request.With(t.Context(), q), c.target("", "serviceaccounts", tt.account, "token"),
			registry.Given(complete(c, tt.spec)), registry.WriteOptions{})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			claims := said(t, kind.Text(answer, "status", "token"))
			got = claims.String()
			if want := (request.Annotation{Key: "authentication.kubernetes.io/issued-credential-id", Value: "JTI=" + claims.ID}); len(q.Annotations) != 1 || q.Annotations[0] != want {
				t.Errorf("audit is told %v, want %v", q.Annotations, want)
			}
		}
		if got != tt.want {
			t.Errorf("%s %s:\n\t%s, want\n\t%s", tt.account, tt.spec, got, tt.want)
		}
	}
}

// complete returns a TokenRequest with the defaults.
func complete(c *cluster, spec string) object.Tree {
	c.Helper()
	target := c.target("", "serviceaccounts", "", "token")
	_, v := target.Shown()
	t, _, err := v.Schema.Complete(read(c, "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: "+spec+"}"))
	if err != nil {
		c.Fatal(err)
	}
	return t
}

type named struct{ Name, UID string }

// claims are the claims of a token.
type claims struct {
	ID         string   `json:"jti"`
	Audience   []string `json:"aud"`
	Issued     int64    `json:"iat"`
	Expires    int64    `json:"exp"`
	Kubernetes struct {
		ServiceAccount    named
		Pod, Secret, Node *named
	} `json:"kubernetes.io"`
}

func said(t *testing.T, token string) (c claims) {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c claims) String() string {
	out := fmt.Sprintf("aud %v seconds %d of %s", c.Audience, c.Expires-c.Issued, c.Kubernetes.ServiceAccount.Name)
	if p := c.Kubernetes.Pod; p != nil && p.UID != "" {
		out += " pod " + p.Name
	}
	if s := c.Kubernetes.Secret; s != nil && s.UID != "" {
		out += " secret " + s.Name
	}
	if n := c.Kubernetes.Node; n != nil {
		out += " on " + n.Name
		if n.UID != "" {
			out += " with a uid"
		}
	}
	return out
}
