package oidc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anykind/anykind/internal/object/gate"
)

// Errors in a file have the messages of kube-apiserver.
func TestLoadErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	failed := `failed to load authentication configuration from file "` + file + `": `
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", failed + "empty config data"},
		{"another kind", "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n", failed + "expected AuthenticationConfiguration, got *apiserver.AuthorizationConfiguration"},
		{"another version", "apiVersion: apiserver.config.k8s.io/v2\nkind: AuthenticationConfiguration\n",
			failed + `no kind "AuthenticationConfiguration" is registered for version "apiserver.config.k8s.io/v2"`},
		{"an unknown field", configText() + " []\nfoo: 1\n", failed + `strict decoding error: unknown field "foo"`},
		{"our own issuer", configText(simple("https://us")), `invalid authentication configuration: jwt[0].issuer.url: Invalid value: "https://us": URL must not overlap with disallowed issuers: [https://us]`},
		{"the same issuer twice", configText(simple("https://a"), simple("https://a")), `invalid authentication configuration: jwt[1].issuer.url: Duplicate value: "https://a"`},
		{"no name", configText(`issuer: {url: "https://a", audiences: [x]}`),
			`invalid authentication configuration: jwt[0].claimMappings.username: Required value: claim or expression is required`},
		{"an expression that does not compile", configText(`
issuer: {url: "https://a", audiences: [x]}
claimMappings: {username: {expression: "claims."}}`),
			"invalid authentication configuration: jwt[0].claimMappings.username.expression: Invalid value: \"claims.\": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'\n | claims.\n | .......^"},
		{"an address that need not be verified", configText(`
issuer: {url: "https://a", audiences: [x]}
claimMappings: {username: {expression: "claims.email"}}`),
			`invalid authentication configuration: jwt[0].claimMappings.username.expression: Invalid value: "claims.email": claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression`},
		{"conditions without anonymous requests", configText() + " []\nanonymous: {enabled: false, conditions: [{path: /livez}]}\n",
			`invalid authentication configuration: anonymous.conditions: Invalid value: [{"Path":"/livez"}]: enabled should be set to true when conditions are defined`},
		{"anonymous requests here and there", configText() + " []\nanonymous: {enabled: true}\n", "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file"},
	} {
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(file, []string{"https://us"}, tt.name == "anonymous requests here and there", nil)
		if err == nil {
			t.Errorf("%s: loaded", tt.name)
		} else if got, _, _ := strings.Cut(err.Error(), " in scheme "); got != tt.want { // the rest quotes a source line
			t.Errorf("%s: (-want +got)\n%s", tt.name, cmp.Diff(tt.want, got))
		}
	}
	if _, err := Load(file+"2", nil, false, nil); err == nil {
		t.Error("a file that is not there was loaded")
	}
}

// Egress selectors need the gate StructuredAuthenticationConfigurationEgressSelector.
func TestEgressSelectorNeedsItsGate(t *testing.T) {
	const off = "egress selector is not supported when StructuredAuthenticationConfigurationEgressSelector feature gate is disabled"
	for egress, want := range map[string]string{
		"cluster": `jwt[1].issuer.egressSelectorType: Invalid value: "cluster": ` + off,
		"etcd": `[jwt[1].issuer.egressSelectorType: Invalid value: "etcd": ` + off +
			`, jwt[1].issuer.egressSelectorType: Invalid value: "etcd": egress selector must be either controlplane or cluster]`,
	} {
		c, err := parse([]byte(configText(simple("https://a"), `issuer: {url: "https://b", audiences: [x], egressSelectorType: `+egress+`}
claimMappings: {username: {claim: sub, prefix: ""}}`)))
		if err != nil {
			t.Fatal(err)
		}
		gates := gate.With(map[gate.Name]bool{gate.StructuredAuthenticationConfigurationEgressSelector: false})
		if err := c.check(nil, gates).ToAggregate(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// All versions of the kind are read.
func TestVersions(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		c, err := parse([]byte("apiVersion: apiserver.config.k8s.io/" + version + "\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: https://a, audiences: [x]}\n"))
		if err != nil || len(c.JWT) != 1 || c.JWT[0].Issuer.URL != "https://a" {
			t.Errorf("%s: %+v, %v", version, c, err)
		}
	}
}

// Flags are equivalent to a configuration.
func TestFlags(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca")
	for _, tt := range []struct {
		name       string
		flags      Flags
		user       string // prefix of users
		groups     string // claim of groups
		err        string
		configFile string
	}{
		{"none", Flags{}, "", "", "", ""},
		{"the least", Flags{IssuerURL: "https://a", ClientID: "x", UsernameClaim: "sub"}, "https://a#", "", "", ""},
		{"email", Flags{IssuerURL: "https://a", ClientID: "x", UsernameClaim: "email"}, "", "", "", ""},
		{"a prefix", Flags{IssuerURL: "https://a", ClientID: "x", UsernameClaim: "sub", UsernamePrefix: "p:"}, "p:", "", "", ""},
		{"no prefix", Flags{IssuerURL: "https://a", ClientID: "x", UsernameClaim: "sub", UsernamePrefix: "-"}, "", "", "", ""},
		{"groups", Flags{IssuerURL: "https://a", ClientID: "x", UsernameClaim: "sub", GroupsClaim: "g"}, "https://a#", "g", "", ""},
		{"not HTTPS", Flags{IssuerURL: "http://a", ClientID: "x", UsernameClaim: "sub"}, "", "", `invalid authentication configuration: jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https`, ""},
		{"no claim", Flags{IssuerURL: "https://a", ClientID: "x"}, "", "", "invalid authentication configuration: jwt[0].claimMappings.username: Required value: claim or expression is required", ""},
		{"no client", Flags{IssuerURL: "https://a", Given: true}, "", "", "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set", ""},
		{"a claim only", Flags{UsernameClaim: "sub", Given: true}, "", "", "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set", ""},
		{"a file, too", Flags{IssuerURL: "https://a", ClientID: "x", Given: true}, "", "", "authentication-config file and oidc-* flags are mutually exclusive", "f"},
		{"no authorities", Flags{IssuerURL: "https://a", ClientID: "x", UsernameClaim: "sub", CAFile: ca}, "", "", "open " + ca + ": no such file or directory", ""},
	} {
		err := tt.flags.Check(tt.configFile)
		var c *Config
		if err == nil {
			c, err = tt.flags.Config(nil, nil)
		}
		if err != nil || tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if c == nil {
			if tt.flags.IssuerURL != "" {
				t.Errorf("%s: there is no configuration", tt.name)
			}
			continue
		}
		mappings := c.JWT[0].ClaimMappings
		if *mappings.Username.Prefix != tt.user || mappings.Groups.Claim != tt.groups {
			t.Errorf("%s: %+v", tt.name, mappings)
		}
	}
}
