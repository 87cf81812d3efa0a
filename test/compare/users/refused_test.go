package users

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/test/program"
)

var (
	theirError = regexp.MustCompile(`"command failed" err=("(?:[^"\\]|\\.)*")`)
	theirLines = regexp.MustCompile(`(?s)"command failed" err=<\n(.*?)\n >`) // of an error with line feeds
	schemeName = regexp.MustCompile(` in scheme "[^"]*"`)                    // names a line of the source
	// theirConfig matches the configuration in Go's format, with addresses in memory; anykind has the
	// name of the file there.
	theirConfig = regexp.MustCompile(`(failed to setup egress selector) with .*?: (failed to create)`)
)

const notRefused = "it does not refuse"

// refusal returns the output of a program that fails to start.
func refusal(t *testing.T, program string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, program, flags...)
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err == nil || ctx.Err() != nil {
		return fmt.Sprintf("%s: %v, %.500s", notRefused, err, out.String())
	}
	said := out.String()
	if m := theirError.FindStringSubmatch(said); m != nil {
		message, err := strconv.Unquote(m[1])
		if err != nil {
			t.Fatal(err)
		}
		said = message
	} else if m := theirLines.FindStringSubmatch(said); m != nil {
		said = strings.ReplaceAll(strings.TrimPrefix(m[1], "\t"), "\n\t", "\n")
	} else {
		lines := strings.SplitN(said, "anykind: ", 2)
		said = strings.TrimSpace(lines[len(lines)-1])
		said = strings.TrimPrefix(said, "Error: ")
	}
	return theirConfig.ReplaceAllString(schemeName.ReplaceAllString(said, ""), "$1: $2")
}

// refusals compares the messages of failed starts.
type refusals struct {
	*testing.T
	theirs, ours, dir string
	known             []string // flags without which kube-apiserver always fails
}

func newRefusals(t *testing.T) *refusals {
	t.Helper()
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	theirs, err := program.KubeAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	r := &refusals{T: t, theirs: theirs, ours: ours, dir: t.TempDir()}
	_, key := pkitest.Write(t, r.dir, "accounts", pkitest.Authority(t, "accounts"))
	r.known = []string{"--etcd-servers=http://127.0.0.1:1", "--service-account-issuer=https://us", "--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key, "--service-cluster-ip-range=10.0.0.0/24", "--cert-dir=" + filepath.Join(r.dir, "certs"), "--authorization-mode=RBAC"}
	return r
}

func (r *refusals) file(name, text string) string {
	r.Helper()
	return write(r.T, filepath.Join(r.dir, name), []byte(text))
}

// compare starts both servers with flags.
func (r *refusals) compare(name string, flags ...string) {
	r.Helper()
	want := refusal(r.T, r.theirs, append(slices.Clip(r.known), flags...)...)
	got := refusal(r.T, r.ours, append([]string{"serve", "--in-memory", "--data-dir", filepath.Join(r.dir, "ours"), "--secure-port", "0"}, flags...)...)
	if got != want || strings.HasPrefix(got, notRefused) {
		r.Errorf("%s:\nkube-apiserver says %s\nanykind says        %s", name, want, got)
	}
}

// Invalid and conflicting flags and files stop both servers, with the same message.
func TestRefused(t *testing.T) {
	r := newRefusals(t)
	dir, file := r.dir, r.file
	one, other := string(pkitest.Authority(t, "one").CertPEM()), string(pkitest.Authority(t, "other").CertPEM())
	ca, both := file("ca", one), file("both", other+one)
	files := 0
	config := func(text string) string {
		files++
		return "--authentication-config=" + file(fmt.Sprint("config", files), "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"+text)
	}
	const mapped = ", claimMappings: {username: {claim: sub, prefix: ''}}"
	jwt := func(text string) string { return config("jwt:\n- {" + text + "}\n") }
	issuer := func(text string) string { return jwt("issuer: {" + text + "}" + mapped) }
	rest := func(text string) string { return jwt("issuer: {url: 'https://a', audiences: [x]}, " + text) }
	cases := []struct {
		name  string
		flags []string
	}{
		{"proxies of the authority of clients", []string{"--client-ca-file=" + both, "--requestheader-client-ca-file=" + ca, "--requestheader-username-headers=X-Remote-User"}},
		{"an override of etcd without a resource", []string{"--etcd-servers-overrides=events#http://a:1"}},
		{"an override of etcd without servers", []string{"--etcd-servers-overrides=/events#"}},
		{"an override of etcd for a subresource", []string{"--etcd-servers-overrides=/pods/status#http://a:1"}},
		{"an empty header", []string{"--requestheader-username-headers= ", "--requestheader-group-headers= ", "--requestheader-extra-headers-prefix= ", "--requestheader-allowed-names= ", "--requestheader-uid-headers= "}},
		{"another header for uids", []string{"--requestheader-uid-headers=X-Uid"}},
		{"an issuer without a client", []string{"--oidc-issuer-url=https://a"}},
		{"a claim without an issuer", []string{"--oidc-required-claim=a=b"}},
		{"a claim that is no pair", []string{"--oidc-issuer-url=https://a", "--oidc-client-id=x", "--oidc-required-claim=a"}},
		{"flags and a file", []string{"--oidc-issuer-url=https://a", "--oidc-client-id=x", config("")}},
		{"an issuer by http", []string{"--oidc-issuer-url=http://a", "--oidc-client-id=x"}},
		{"an issuer with a query", []string{"--oidc-issuer-url=https://a?b#c", "--oidc-client-id=x"}},
		{"an unknown algorithm", []string{"--oidc-issuer-url=https://a", "--oidc-client-id=x", "--oidc-signing-algs=HS256"}},
		{"authorities that are not there", []string{"--oidc-issuer-url=https://a", "--oidc-client-id=x", "--oidc-ca-file=" + filepath.Join(dir, "none")}},
		{"authorities that are none", []string{"--oidc-issuer-url=https://a", "--oidc-client-id=x", "--oidc-ca-file=" + file("noca", "x")}},
		{"no user name", []string{"--oidc-issuer-url=https://a", "--oidc-client-id=x", "--oidc-username-claim="}},
		{"anonymous here and there", []string{"--anonymous-auth=true", config("anonymous: {enabled: true}")}},
		{"no such file", []string{"--authentication-config=" + filepath.Join(dir, "none")}},
		{"an empty file", []string{"--authentication-config=" + file("empty", "")}},
		{"not YAML", []string{"--authentication-config=" + file("nonsense", "a: [")}},
		{"no kind", []string{"--authentication-config=" + file("nokind", "apiVersion: apiserver.config.k8s.io/v1\n")}},
		{"another kind", []string{"--authentication-config=" + file("kind", "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n")}},
		{"another version", []string{"--authentication-config=" + file("version", "apiVersion: apiserver.config.k8s.io/v9\nkind: AuthenticationConfiguration\n")}},
		{"unknown fields", []string{config("a: 1\njwt: [{b: 2}]")}},
		{"a field twice", []string{config("jwt: []\njwt: []")}},
		{"conditions of nothing", []string{config("anonymous: {enabled: false, conditions: [{path: /livez}]}")}},
		{"an issuer with nothing", []string{jwt("")}},
		{"no URL", []string{issuer("audiences: [x]")}},
		{"a URL with a user", []string{issuer("url: 'https://a:b@c', audiences: [x]")}},
		{"a URL that is none", []string{issuer("url: '://', audiences: [x]")}},
		{"discovery at the issuer", []string{issuer("url: 'https://a/', discoveryURL: 'https://a', audiences: [x]")}},
		{"discovery by http", []string{issuer("url: 'https://a', discoveryURL: 'http://b', audiences: [x]")}},
		{"no audiences", []string{issuer("url: 'https://a'")}},
		{"several audiences", []string{issuer("url: 'https://a', audiences: [x, y]")}},
		{"an empty audience, and one twice", []string{issuer("url: 'https://a', audiences: [x, '', x], audienceMatchPolicy: MatchAny")}},
		{"another policy", []string{issuer("url: 'https://a', audiences: [x], audienceMatchPolicy: MatchAll")}},
		{"authorities of an issuer", []string{issuer("url: 'https://a', audiences: [x], certificateAuthority: nonsense")}},
		{"an egress selector", []string{issuer("url: 'https://a', audiences: [x], egressSelectorType: cluster")}},
		{"an egress selector without its gate", []string{issuer("url: 'https://a', audiences: [x], egressSelectorType: cluster"), "--feature-gates=StructuredAuthenticationConfigurationEgressSelector=false"}},
		{"another egress selector, without the gate", []string{issuer("url: 'https://a', audiences: [x], egressSelectorType: etcd"), "--feature-gates=StructuredAuthenticationConfigurationEgressSelector=false"}},
		{"another egress selector", []string{issuer("url: 'https://a', audiences: [x], egressSelectorType: etcd")}},
		{"the same issuer twice", []string{config("jwt:\n- {issuer: {url: 'https://a', discoveryURL: 'https://d', audiences: [x]}" + mapped + "}\n- {issuer: {url: 'https://a', discoveryURL: 'https://d', audiences: [x]}" + mapped + "}\n")}},
		{"a name by a claim and an expression", []string{rest("claimMappings: {username: {claim: a, prefix: '', expression: claims.a}}")}},
		{"a claim without a prefix", []string{rest("claimMappings: {username: {claim: a}, groups: {claim: b}}")}},
		{"a prefix without a claim", []string{rest("claimMappings: {username: {expression: claims.a, prefix: p}, groups: {prefix: p}}")}},
		{"a uid by a claim and an expression", []string{rest("claimMappings: {username: {claim: a, prefix: ''}, uid: {claim: a, expression: claims.a}}")}},
		{"an expression that does not compile", []string{rest("claimMappings: {username: {expression: 'claims.'}, groups: {expression: nope}}")}},
		{"an address that need not be verified", []string{rest("claimMappings: {username: {expression: claims.email}}")}},
		{"extras", []string{rest("claimMappings: {username: {claim: a, prefix: ''}, extra: [{key: a, valueExpression: claims.a}, {key: kubernetes.io/a, valueExpression: claims.a}, {key: A.com/a, valueExpression: claims.a}, {key: a.com/a, valueExpression: ''}, {key: a.com/a, valueExpression: claims.b}]}")}},
		{"rules of claims", []string{rest("claimMappings: {username: {claim: a, prefix: ''}}, claimValidationRules: [{}, {claim: a, expression: 'true'}, {claim: a, message: m}, {expression: claims.a, requiredValue: v}, {expression: '1'}, {claim: b}, {claim: b}]")}},
		{"rules of users", []string{rest("claimMappings: {username: {claim: a, prefix: ''}}, userValidationRules: [{}, {expression: user.a}, {expression: 'true'}, {expression: 'true'}, {expression: user.username}]")}},
		{"no such kubeconfig of a webhook", []string{"--authentication-token-webhook-config-file=" + filepath.Join(dir, "none")}},
		{"another version of reviews", []string{"--authentication-token-webhook-version=v2", "--authentication-token-webhook-config-file=" + file("hook", `{"clusters":[{"name":"c","cluster":{"server":"https://a"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`)}},
	}
	for _, c := range cases {
		r.compare(c.name, c.flags...)
	}
	t.Logf("%d refusals compared", len(cases))
}
