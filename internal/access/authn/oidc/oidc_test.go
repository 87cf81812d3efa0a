package oidc

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/anykind/anykind/internal/object/request"
)

// started returns issuers after their discovery. The caller is in a synctest bubble.
func started(t *testing.T, n *network, c *Config) *Issuers {
	t.Helper()
	s, err := New(t.Context(), c, n.options())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return s
}

// unsigned returns a token with a custom header and the given signature.
func unsigned(t testing.TB, header string, claims map[string]any, signature string) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(payload) + "." + signature
}

// Forged tokens. The messages are those of kube-apiserver.
func TestAttacks(t *testing.T) {
	rs256 := func(changes map[string]any) string {
		return sign(t, jose.RS256, keys()["one"], "one", claimsWith(changes))
	}
	good := rs256(nil)
	header, rest, _ := strings.Cut(good, ".")
	body, signature, _ := strings.Cut(rest, ".")
	other, err := json.Marshal(claimsWith(map[string]any{"sub": "root"}))
	if err != nil {
		t.Fatal(err)
	}
	wrong := "failed to verify signature: failed to verify id token signature"
	algorithms := `oidc: id token signed with unsupported algorithm, expected ["ES256" "ES384" "ES512" "PS256" "PS384" "PS512" "RS256" "RS384" "RS512"] got `
	for _, tt := range []struct {
		name, token, err string // err: "" for a token of another type, "ok" for a valid one
	}{
		{"good", good, "ok"},
		{"good, of a curve", sign(t, jose.ES256, keys()["curve"], "curve", claimsWith(nil)), "ok"},
		{"no key id", sign(t, jose.RS256, keys()["one"], "", claimsWith(nil)), "ok"},
		{"not before, in a moment", rs256(map[string]any{"nbf": 946684830}), "ok"},
		{"several audiences", rs256(map[string]any{"aud": []string{"others", "anykind"}}), "ok"},

		{"no algorithm", unsigned(t, `{"alg":"none"}`, claimsWith(nil), ""), algorithms + `"none"`},
		{"no algorithm, with a signature", unsigned(t, `{"alg":"none"}`, claimsWith(nil), signature), algorithms + `"none"`},
		{"no algorithm, in capitals", unsigned(t, `{"alg":"None"}`, claimsWith(nil), ""), algorithms + `"None"`},
		{"the public key as a shared secret", sign(t, jose.HS256, public(t, "one"), "one", claimsWith(nil)), algorithms + `"HS256"`},
		{"another algorithm, not that of the key", unsigned(t, `{"alg":"ES256","kid":"one"}`, claimsWith(nil), signature), wrong},
		{"a key in the header", signWithKeyInHeader(t), wrong},
		{"other claims under the same signature", header + "." + base64.RawURLEncoding.EncodeToString(other) + "." + signature, wrong},
		{"no signature", header + "." + body + ".", wrong},
		{"another key with our key ID", sign(t, jose.RS256, keys()["two"], "one", claimsWith(nil)), wrong},
		{"an unknown key", sign(t, jose.RS256, keys()["two"], "two", claimsWith(nil)), wrong},
		{"a good key under another id", sign(t, jose.RS256, keys()["one"], "curve", claimsWith(nil)), wrong},
		{"expired", rs256(map[string]any{"exp": 946684799}), "oidc: token is expired (Token Expiry: "},
		{"no expiry", rs256(map[string]any{"exp": nil}), "oidc: token is expired (Token Expiry: "},
		{"not before", rs256(map[string]any{"nbf": 946685000}), "before the nbf (not before) time: "},
		{"another audience", rs256(map[string]any{"aud": "others"}), `oidc: expected audience "anykind" got ["others"]`},
		{"no audience", rs256(map[string]any{"aud": nil}), `oidc: expected audience "anykind" got []`},
		{"an audience that begins so", rs256(map[string]any{"aud": "anykind2"}), `oidc: expected audience "anykind" got ["anykind2"]`},
		{"an audience of another type", rs256(map[string]any{"aud": 7}), "oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field idToken.aud of type []string"},
		{"an expiry as text", rs256(map[string]any{"exp": "946688400"}), "ok"},
		{"an expiry with a fraction", rs256(map[string]any{"exp": 946688400.5}), "ok"},
		{"an expiry that is no number", rs256(map[string]any{"exp": "soon"}), "oidc: failed to unmarshal claims: json: invalid number literal"},
		{"a nonce of another type", rs256(map[string]any{"nonce": 7}), "oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field idToken.nonce of type string"},
		{"a critical header that is unknown", signWithHeader(t, "crit", []string{"x"}), wrong},
		{"no user", rs256(map[string]any{"sub": nil}), `oidc: parse username claims "sub": claim not present`},
		{"a number for a user", rs256(map[string]any{"sub": 7}), `oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field idToken.sub of type string`},

		{"a deep header", unsigned(t, `{"alg":"RS256","kid":"one","x":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)+`}`, claimsWith(nil), signature), "oidc: malformed jwt: its header is longer than 16384 bytes"},

		{"another issuer", rs256(map[string]any{"iss": "https://other"}), ""},
		{"an issuer with a slash", rs256(map[string]any{"iss": "https://issuer/"}), ""},
		{"an issuer in capitals", rs256(map[string]any{"iss": "https://ISSUER"}), ""},
		{"no issuer", rs256(map[string]any{"iss": nil}), ""},
		{"our own issuer", rs256(map[string]any{"iss": "https://us"}), ""},
		{"two parts", header + "." + body, ""},
		{"four parts", good + ".more", ""},
		{"many dots", strings.Repeat(".", 10000), ""},
		{"JSON", `{"payload":"` + body + `","signature":"` + signature + `","protected":"` + header + `"}`, ""},
		{"not base64", header + ".!!!." + signature, ""},
		{"nothing", "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			n.newProvider("issuer", "one", "curve")
			s := started(t, n, config(t, simple("https://issuer")))
			for range 2 {
				a, ok, err := s.AuthenticateToken(t.Context(), tt.token, nil)
				switch {
				case ok != (tt.err == "ok") || ok && (err != nil || a.User.Name != "eve"):
					t.Errorf("%s: %+v, %v", tt.name, a, err)
				case !ok && (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err):
					t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
				}
			}
		})
	}
}

// signWithKeyInHeader returns a token whose header has its verification key.
func signWithKeyInHeader(t testing.TB) string {
	t.Helper()
	return signWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: keys()["two"]}, &jose.SignerOptions{EmbedJWK: true})
}

// signWithHeader returns a valid token but for one more header.
func signWithHeader(t testing.TB, name jose.HeaderKey, value any) string {
	t.Helper()
	return signWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: keys()["one"]}, (&jose.SignerOptions{}).WithHeader(name, value))
}

func signWith(t testing.TB, key jose.SigningKey, options *jose.SignerOptions) string {
	t.Helper()
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claimsWith(nil))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Without a list of algorithms, RS256 is accepted.
func TestDefaultAlgorithm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.newProvider("issuer", "one", "curve")
		c := config(t, simple("https://issuer"))
		c.algorithms = nil
		s := started(t, n, c)
		if _, ok, err := s.AuthenticateToken(t.Context(), sign(t, jose.RS256, keys()["one"], "one", claimsWith(nil)), nil); !ok || err != nil {
			t.Errorf("RS256: %v, %v", ok, err)
		}
		want := `oidc: verify token: oidc: id token signed with unsupported algorithm, expected ["RS256"] got "ES256"`
		if _, ok, err := s.AuthenticateToken(t.Context(), sign(t, jose.ES256, keys()["curve"], "curve", claimsWith(nil)), nil); ok || err == nil || err.Error() != want {
			t.Errorf("ES256: %v, %v, want %s", ok, err, want)
		}
	})
}

// Discovery of an unavailable issuer is retried. Until it succeeds, its tokens are rejected.
func TestDiscoveredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		s := started(t, n, config(t, simple("https://issuer")))
		token := sign(t, jose.RS256, keys()["one"], "one", claimsWith(nil))
		if _, ok, err := s.AuthenticateToken(t.Context(), token, nil); ok || err == nil || err.Error() != "oidc: authenticator not initialized" {
			t.Errorf("before: %v, %v", ok, err)
		}
		n.newProvider("issuer", "one")
		time.Sleep(discoverAgain)
		synctest.Wait()
		if _, ok, err := s.AuthenticateToken(t.Context(), token, nil); !ok || err != nil {
			t.Errorf("after: %v, %v", ok, err)
		}
	})
}

// The discovery document of an issuer must name the issuer itself.
func TestDiscovery(t *testing.T) {
	for _, answer := range []string{`{"issuer":"https://other","jwks_uri":"https://issuer/keys"}`, `{"issuer":"https://issuer"}`, `{`, `secret`, `["secret"]`, strings.Repeat(" ", maxBody+1)} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			n.serve("issuer", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(answer)) })
			s := started(t, n, config(t, simple("https://issuer")))
			if _, err := s.current.Load().issuers["https://issuer"].own.keys(); err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("%.40s: the issuer was believed, or told of: %v", answer, err)
			}
		})
	}
}

// A new key is accepted at once; a removed one until the next fetch. Tokens with unknown keys cause
// few requests.
func TestKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		p := n.newProvider("issuer", "one")
		s := started(t, n, config(t, simple("https://issuer")))
		try := func(id string) error {
			_, _, err := s.AuthenticateToken(t.Context(), sign(t, jose.RS256, keys()[id], id, claimsWith(nil)), nil)
			return err
		}
		if n.times("https://issuer/keys") != 0 {
			t.Error("keys are fetched before there is a token")
		}
		if err := try("one"); err != nil {
			t.Error(err)
		}
		p.have("two")
		time.Sleep(fetchPause)
		if err := try("two"); err != nil {
			t.Error(err)
		}
		if err := try("one"); err == nil {
			t.Error("a key that is gone counts still")
		}
		before := n.times("https://issuer/keys")
		for range 100 {
			if err := try("one"); err == nil {
				t.Error("a key that is gone counts still")
			}
			time.Sleep(20 * time.Millisecond)
		}
		if more := n.times("https://issuer/keys") - before; more > 2 {
			t.Errorf("%d requests for bad tokens in two seconds", more)
		}
		if err := try("two"); err != nil {
			t.Error(err)
		}
		// The keys of an unavailable issuer stay.
		n.serve("issuer", nil)
		time.Sleep(fetchPause)
		if err := try("one"); err == nil || !strings.Contains(err.Error(), "fetching keys oidc: get keys failed") {
			t.Error(err)
		}
		if err := try("two"); err != nil {
			t.Error(err)
		}
	})
}

// The discovery URL may differ from the issuer URL.
func TestDiscoveryURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		p := n.newProvider("inside", "one")
		p.url = "https://issuer"
		n.serve("issuer", p.serve)
		s := started(t, n, config(t, `
issuer: {url: "https://issuer", discoveryURL: "https://inside/elsewhere", audiences: [anykind, other], audienceMatchPolicy: MatchAny}
claimMappings: {username: {claim: sub, prefix: ""}}`))
		for audience, want := range map[string]bool{"anykind": true, "other": true, "third": false} {
			token := sign(t, jose.RS256, keys()["one"], "one", claimsWith(map[string]any{"aud": audience}))
			if _, ok, err := s.AuthenticateToken(t.Context(), token, nil); ok != want || !ok && !strings.Contains(err.Error(), `oidc: expected audience in ["anykind" "other"] got ["third"]`) {
				t.Errorf("%s: %v, %v", audience, ok, err)
			}
		}
		if n.times("https://issuer"+wellKnown) != 0 || n.times("https://inside/elsewhere") != 1 {
			t.Errorf("asked %v", n.asked)
		}
	})
}

// Users are mapped from claims, by claim names and by expressions.
func TestUsers(t *testing.T) {
	const head = "issuer: {url: \"https://issuer\", audiences: [anykind]}\n"
	for _, tt := range []struct {
		name, config string
		claims       map[string]any
		want         *request.User
		err          string
	}{
		{"prefixes", head + `claimMappings: {username: {claim: sub, prefix: "u:"}, groups: {claim: groups, prefix: "g:"}, uid: {claim: id}}`,
			map[string]any{"groups": []string{"a", "b"}, "id": "7", "jti": "token7"},
			&request.User{Name: "u:eve", UID: "7", Groups: []string{"g:a", "g:b"}, Extra: map[string][]string{request.CredentialID: {"JTI=token7"}}}, ""},
		{"one group", head + `claimMappings: {username: {claim: sub, prefix: ""}, groups: {claim: groups, prefix: ""}}`,
			map[string]any{"groups": "a"}, &request.User{Name: "eve", Groups: []string{"a"}}, ""},
		{"a number for a group", head + `claimMappings: {username: {claim: sub, prefix: ""}, groups: {claim: groups, prefix: ""}}`,
			map[string]any{"groups": []any{"a", 1}}, nil, `oidc: parse groups claim "groups": json: cannot unmarshal array into Go value of type string`},
		{"an address that is verified", head + `claimMappings: {username: {claim: email, prefix: ""}}`,
			map[string]any{"email": "e@x", "email_verified": true}, &request.User{Name: "e@x"}, ""},
		{"an address of which nothing is said", head + `claimMappings: {username: {claim: email, prefix: ""}}`,
			map[string]any{"email": "e@x"}, &request.User{Name: "e@x"}, ""},
		{"an address that is not verified", head + `claimMappings: {username: {claim: email, prefix: ""}}`,
			map[string]any{"email": "e@x", "email_verified": false}, nil, "oidc: email not verified"},
		{"an address verified in words", head + `claimMappings: {username: {claim: email, prefix: ""}}`,
			map[string]any{"email": "e@x", "email_verified": "true"}, nil, "oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool"},
		{"expressions", head + `
claimMappings:
  username: {expression: 'claims.sub + "@" + claims.org.name'}
  groups: {expression: 'claims.roles.split(",") + claims.more'}
  uid: {expression: 'claims.id'}
  extra: [{key: acme.com/tenant, valueExpression: 'claims.org["acme.com/tenant"]'}, {key: acme.com/dotted, valueExpression: 'claims.org.a__dot__b'}, {key: acme.com/none, valueExpression: '""'}]
claimValidationRules: [{expression: 'claims.level > 2', message: too low}]
userValidationRules: [{expression: '!user.username.startsWith("system:")', message: reserved}, {expression: 'user.groups.all(g, g != "system:masters")', message: no masters}]`,
			map[string]any{"org": map[string]any{"name": "acme", "acme.com/tenant": "t1", "a.b": []string{"x", "", "y"}}, "roles": "dev,ops", "more": []string{"all"}, "id": "u-1", "level": 3},
			&request.User{Name: "eve@acme", UID: "u-1", Groups: []string{"dev", "ops", "all"}, Extra: map[string][]string{"acme.com/tenant": {"t1"}, "acme.com/dotted": {"x", "y"}}}, ""},
		{"a claim that does not hold", head + `
claimMappings: {username: {claim: sub, prefix: ""}}
claimValidationRules: [{expression: 'claims.level > 2', message: too low}]`,
			map[string]any{"level": 1}, nil, "oidc: error evaluating claim validation expression: validation expression 'claims.level > 2' failed: too low"},
		{"a claim that is not there", head + `
claimMappings: {username: {claim: sub, prefix: ""}}
claimValidationRules: [{expression: 'claims.level > 2', message: too low}]`,
			nil, nil, "oidc: error evaluating claim validation expression: expression 'claims.level > 2' resulted in error: no such key: level"},
		{"a claim with another value", head + `
claimMappings: {username: {claim: sub, prefix: ""}}
claimValidationRules: [{claim: hd, requiredValue: acme.com}]`,
			map[string]any{"hd": "evil.com"}, nil, "oidc: required claim hd value does not match. Got = evil.com, want = acme.com"},
		{"a required claim that is not there", head + `
claimMappings: {username: {claim: sub, prefix: ""}}
claimValidationRules: [{claim: hd, requiredValue: acme.com}]`,
			nil, nil, "oidc: required claim hd not present in ID token"},
		{"a reserved name", head + `
claimMappings: {username: {claim: sub, prefix: ""}}
userValidationRules: [{expression: '!user.username.startsWith("system:")', message: reserved}]`,
			map[string]any{"sub": "system:admin"}, nil, `oidc: error evaluating user info validation rule: validation expression '!user.username.startsWith("system:")' failed: reserved`},
		{"a name that is none", head + `claimMappings: {username: {expression: 'claims.name'}}`,
			map[string]any{"name": ""}, nil, "oidc: empty username via CEL expression is not allowed"},
		{"a name that is a list", head + `claimMappings: {username: {expression: 'claims.name'}}`,
			map[string]any{"name": []string{"a"}}, nil, "oidc: error evaluating username claim expression: username claim expression must return a string"},
		{"groups that are numbers", head + `claimMappings: {username: {claim: sub, prefix: ""}, groups: {expression: 'claims.groups'}}`,
			map[string]any{"groups": []int{1}}, nil, "oidc: error evaluating group claim expression: expression must return a string or a list of strings"},
		{"groups that are null", head + `claimMappings: {username: {claim: sub, prefix: ""}, groups: {expression: 'claims.groups'}}`,
			map[string]any{"groups": json.RawMessage("null")}, &request.User{Name: "eve"}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			n.newProvider("issuer", "one")
			s := started(t, n, config(t, tt.config))
			token := sign(t, jose.RS256, keys()["one"], "one", claimsWith(tt.claims))
			a, ok, err := s.AuthenticateToken(t.Context(), token, nil)
			if tt.want == nil {
				if ok || err == nil || err.Error() != tt.err {
					t.Errorf("%s: %+v, %v, want %s", tt.name, a, err, tt.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(a.User, tt.want) {
				t.Errorf("%s: %+v, %v, want %+v", tt.name, a, err, tt.want)
			}
		})
	}
}

// Distributed claims are fetched once, and not resolved further.
func TestDistributedClaims(t *testing.T) {
	where := func(endpoint map[string]any) map[string]any {
		return map[string]any{"_claim_names": map[string]any{"groups": "there"}, "_claim_sources": map[string]any{"there": endpoint}}
	}
	there := where(map[string]any{"endpoint": "https://claims/groups", "access_token": "s3cret"})
	for _, tt := range []struct {
		name   string
		claims map[string]any
		answer map[string]any // claims of the token at the endpoint
		groups []string
		err    string
	}{
		{"got", there, map[string]any{"iss": "https://claims", "groups": []string{"a"}}, []string{"oidc:a"}, ""},
		{"of the issuer itself", there, map[string]any{"groups": []string{"a"}}, []string{"oidc:a"}, ""},
		{"there already", map[string]any{"groups": "b", "_claim_names": map[string]any{"groups": "there"}, "_claim_sources": map[string]any{"there": map[string]any{"endpoint": "https://claims/groups"}}}, nil, []string{"oidc:b"}, ""},
		{"a loop", there, map[string]any{"iss": "https://claims", "_claim_names": map[string]any{"groups": "there"}, "_claim_sources": map[string]any{"there": map[string]any{"endpoint": "https://claims/groups"}}}, nil,
			`jwt returned by distributed claim endpoint "https://claims/groups" did not contain claim: groups`},
		{"for another audience", there, map[string]any{"iss": "https://claims", "groups": "a", "aud": "x"}, nil, `verify distributed claim token: oidc: expected audience "anykind" got ["x"]`},
		{"expired", there, map[string]any{"iss": "https://claims", "groups": "a", "exp": 1}, nil, "verify distributed claim token: oidc: token is expired"},
		{"of an issuer that is not there", there, map[string]any{"iss": "https://missing", "groups": "a"}, nil, `verifying untrusted issuer https://missing failed: verifier not initialized for issuer: "https://missing"`},
		{"not to be found", where(map[string]any{"endpoint": "https://claims/none"}), nil, nil, `while getting distributed claim "groups": error while getting distributed claim JWT: 404 Not Found`},
		{"no source", map[string]any{"_claim_names": map[string]any{"groups": "there"}, "_claim_sources": map[string]any{}}, nil, nil, "source does not exist"},
		{"no sources", map[string]any{"_claim_names": map[string]any{"groups": "there"}}, nil, nil, "source does not exist"},
		{"aggregated", where(map[string]any{"JWT": "x.y.z"}), nil, nil, ""},
		{"another claim", map[string]any{"_claim_names": map[string]any{"roles": "there"}, "_claim_sources": map[string]any{"there": map[string]any{"endpoint": "https://claims/groups"}}}, nil, nil, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			n.newProvider("issuer", "one")
			other := n.newProvider("claims", "two")
			key := "two"
			if tt.answer["iss"] == nil {
				key = "one"
			}
			answer := sign(t, jose.RS256, keys()[key], key, claimsWith(tt.answer))
			n.serve("claims", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/groups" {
					_, _ = w.Write([]byte(answer))
					return
				}
				other.serve(w, r)
			})
			s := started(t, n, config(t, simple("https://issuer")))
			token := sign(t, jose.RS256, keys()["one"], "one", claimsWith(tt.claims))
			a, ok, err := s.AuthenticateToken(t.Context(), token, nil)
			if err != nil && strings.Contains(err.Error(), "verifier not initialized") {
				synctest.Wait() // Discovery has started.
				a, ok, err = s.AuthenticateToken(t.Context(), token, nil)
			}
			if tt.err != "" {
				if ok || err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s: %+v, %v, want %s", tt.name, a, err, tt.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(a.User.Groups, tt.groups) {
				t.Errorf("%s: %+v, %v, want %q", tt.name, a, err, tt.groups)
			}
			for _, sent := range n.authorizations {
				if sent != "claims: Bearer s3cret" {
					t.Errorf("%s: sent %s", tt.name, sent)
				}
			}
		})
	}
}

// Other issuers are bounded. A new one evicts an undiscovered one, or the least recently used.
func TestOtherIssuersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.newProvider("claims", "two")
		r := started(t, n, config(t, simple("https://issuer"))).current.Load().issuers["https://issuer"].distributed
		other := func(url string) *discovered {
			time.Sleep(time.Millisecond)
			defer synctest.Wait()
			return r.other(url)
		}
		good := other("https://claims")
		first := other("https://first")
		for i := range 2 * maxOthers {
			last := other("https://" + strings.Repeat("x", i+1))
			if len(r.others) > maxOthers || r.other("https://"+strings.Repeat("x", i+1)) != last {
				t.Fatalf("there are %d after the %dth", len(r.others), i)
			}
		}
		if r.other("https://claims") != good {
			t.Error("an issuer that is discovered was forgotten")
		}
		if r.other("https://first") == first {
			t.Error("an issuer that is not discovered was not forgotten")
		}
	})
}

// An unused other issuer is dropped and not called again. Attempts to discover a failing one back
// off.
func TestOtherIssuersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var calls atomic.Int32
		n.serve("claims", func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			http.Error(w, "", http.StatusNotFound)
		})
		r := started(t, n, config(t, simple("https://issuer"))).current.Load().issuers["https://issuer"].distributed
		for range 6 {
			r.other("https://claims")
			time.Sleep(otherIdle / 2)
		}
		if got := calls.Load(); got < 15 || got > 20 {
			t.Errorf("an issuer that fails was called %d times in %v", got, 3*otherIdle)
		}
		time.Sleep(otherIdle)
		synctest.Wait()
		before := calls.Load()
		time.Sleep(otherIdle)
		if len(r.others) != 0 || calls.Load() != before {
			t.Errorf("there are %d issuers, called %d times", len(r.others), calls.Load()-before)
		}
	})
}

func BenchmarkAnotherIssuer(b *testing.B) {
	s := &Issuers{options: newNetwork().options()}
	s.current.Store(&generation{issuers: map[string]*issuer{"https://issuer": nil}})
	token := sign(b, jose.RS256, keys()["one"], "one", claimsWith(map[string]any{"iss": "https://other"}))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := s.AuthenticateToken(b.Context(), token, nil); ok || err != nil {
			b.Fatal(err)
		}
	}
}
