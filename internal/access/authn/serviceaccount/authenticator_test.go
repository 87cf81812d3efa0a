package serviceaccount

import (
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"github.com/anykind/anykind/internal/object/request"
)

// The user has all attributes of the token.
func TestUser(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	pod, node := &Reference{"n", "uid of pods/dev/n"}, &Reference{"n", "uid of nodes/n"}
	for _, tt := range []struct {
		name  string
		bind  func(*Grant)
		extra map[string][]string
	}{
		{"bound to nothing", func(*Grant) {}, nil},
		{"to a Pod that is on a Node", func(g *Grant) { g.Pod, g.Node = pod, node }, map[string][]string{
			podNameKey: {"n"}, podUIDKey: {"uid of pods/dev/n"}, request.NodeName: {"n"}, nodeUIDKey: {"uid of nodes/n"},
		}},
		{"to a Pod on a Node that is not there", func(g *Grant) { g.Pod, g.Node = pod, &Reference{Name: "gone"} }, map[string][]string{
			podNameKey: {"n"}, podUIDKey: {"uid of pods/dev/n"}, request.NodeName: {"gone"},
		}},
		{"to a Node", func(g *Grant) { g.Node = node }, map[string][]string{request.NodeName: {"n"}, nodeUIDKey: {"uid of nodes/n"}}},
		{"to a Secret", func(g *Grant) { g.Secret = &Reference{"n", "uid of secrets/dev/n"} }, nil},
		{"to validating webhooks", func(g *Grant) {
			g.Validating, g.Attestations = &Reference{"n", "uid of validatingwebhookconfigurations/n"}, map[string][]string{reviewedGroups: {"apps"}}
		}, map[string][]string{
			"authentication.kubernetes.io/validatingwebhookconfiguration-name":  {"n"},
			"authentication.kubernetes.io/validatingwebhookconfiguration-uid":   {"uid of validatingwebhookconfigurations/n"},
			"attestation.authentication.kubernetes.io/admissionReviewAPIGroups": {"apps"},
		}},
		{"to mutating webhooks", func(g *Grant) {
			g.Mutating, g.Attestations = &Reference{"n", "uid of mutatingwebhookconfigurations/n"}, map[string][]string{reviewedGroups: {"*"}}
		}, map[string][]string{
			"authentication.kubernetes.io/mutatingwebhookconfiguration-name":    {"n"},
			"authentication.kubernetes.io/mutatingwebhookconfiguration-uid":     {"uid of mutatingwebhookconfigurations/n"},
			"attestation.authentication.kubernetes.io/admissionReviewAPIGroups": {"*"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := w.grant()
			tt.bind(&g)
			token, id, err := w.Issuer.Issue(w.Context(), g, w.at)
			if err != nil {
				t.Fatal(err)
			}
			want := &request.User{
				Name: robot, UID: "uid of serviceaccounts/dev/robot",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:dev", "system:authenticated"},
				Extra:  map[string][]string{request.CredentialID: {"JTI=" + id}},
			}
			for k, v := range tt.extra {
				want.Extra[k] = v
			}
			for range 2 { // the second time with a cached signature
				a := w.user(token)
				if d := cmp.Diff(want, a.User); d != "" {
					t.Error(d)
				}
				if !slices.Equal(a.Audiences, []string{DefaultIssuer}) {
					t.Error(a.Audiences)
				}
			}
		})
	}
}

// A token is valid until an object that it depends on is deleted, and never again after that.
func TestWhatATokenDependsOn(t *testing.T) {
	soon, past := time.Now().Add(time.Hour).Format(time.RFC3339), time.Now().Add(-time.Hour).Format(time.RFC3339)
	going := func(at string) string { return `{"metadata":{"deletionTimestamp":"` + at + `"}}` }
	const another, invalidated = `{"metadata":{"uid":"another"}}`, "service account token has been invalidated"
	for _, tt := range []struct {
		key, value string // "" deletes the object
		bound      bool   // else the token is bound to no object
		want       string
	}{
		{"serviceaccounts/dev/robot", "", false, `serviceaccounts "robot" not found`},
		{"serviceaccounts/dev/robot", another, false, "service account UID (another) does not match claim (uid of serviceaccounts/dev/robot)"},
		{"serviceaccounts/dev/robot", going(past), false, "service account dev/robot has been deleted"},
		{"serviceaccounts/dev/robot", going(soon), false, robot},
		{"pods/dev/n", "", true, invalidated},
		{"pods/dev/n", another, true, "pod UID (another) does not match service account pod ref claim (uid of pods/dev/n)"},
		{"pods/dev/n", going(past), true, invalidated},
		{"pods/dev/n", going(soon), true, robot},
		{"secrets/dev/n", "", true, invalidated},
		{"secrets/dev/n", another, true, "secret UID (another) does not match service account secret ref claim (uid of secrets/dev/n)"},
		{"secrets/dev/n", going(past), true, invalidated},
		{"nodes/n", "", true, invalidated},
		{"nodes/n", another, true, "node UID (another) does not match service account node ref claim (uid of nodes/n)"},
		{"nodes/n", going(past), true, invalidated},
		{"validatingwebhookconfigurations/n", "", true, invalidated},
		{"validatingwebhookconfigurations/n", another, true, "ValidatingWebhookConfiguration UID (another) does not match service account validating ref claim (uid of validatingwebhookconfigurations/n)"},
		{"validatingwebhookconfigurations/n", going(past), true, invalidated},
		{"validatingwebhookconfigurations/n", going(soon), true, robot},
		{"mutatingwebhookconfigurations/n", "", true, invalidated},
		{"mutatingwebhookconfigurations/n", another, true, "MutatingWebhookConfiguration UID (another) does not match service account validating ref claim (uid of mutatingwebhookconfigurations/n)"},
	} {
		t.Run(tt.key+" "+tt.value, func(t *testing.T) {
			w := newWorld(t, Options{}, nil)
			g := w.grant()
			if ref := (&Reference{"n", "uid of " + tt.key}); tt.bound {
				switch tt.key[0] {
				case 'p':
					g.Pod = ref
				case 's':
					g.Secret = ref
				case 'n':
					g.Node = ref
				case 'v':
					g.Validating, g.Attestations = ref, map[string][]string{reviewedGroups: {"apps"}}
				case 'm':
					g.Mutating, g.Attestations = ref, map[string][]string{reviewedGroups: {"apps"}}
				}
			}
			token := w.issue(g)
			if got := w.answers(token); got != robot {
				t.Fatal(got)
			}
			if tt.value == "" {
				w.remove(tt.key)
			} else {
				w.put(tt.key, tt.value)
			}
			if got := w.answers(token); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("attestations, and the gate", func(t *testing.T) {
		w := newWorld(t, Options{}, nil)
		g := w.grant()
		g.Validating = &Reference{"n", "uid of validatingwebhookconfigurations/n"}
		if got, want := w.answers(w.issue(g)), `bound object was a webhook config, but "admissionReviewAPIGroups" attestation is missing`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		w.Authenticator.stored.gates = nil
		if got, want := w.answers(w.issue(g)), `feature gate "APIServerWebhookAuthenticationToken" is disabled, but token is webhook bound`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("the node of a pod is only told of", func(t *testing.T) {
		w := newWorld(t, Options{}, nil)
		g := w.grant()
		g.Pod, g.Node = &Reference{"n", "uid of pods/dev/n"}, &Reference{"n", "uid of nodes/n"}
		token := w.issue(g)
		w.remove("nodes/n")
		if got := w.answers(token); got != robot {
			t.Error(got)
		}
	})
}

// A token is valid for its time, plus or minus a minute, and for its audiences.
func TestTimeAndAudience(t *testing.T) {
	w := newWorld(t, Options{Issuers: []string{"https://first", "second"}, Audiences: []string{"api", "other"}}, nil)
	token := w.issue(w.grant())
	for _, tt := range []struct {
		after     time.Duration
		audiences []string
		want      string
	}{
		{want: robot},
		{after: time.Hour + 59*time.Second, want: robot},
		{after: time.Hour + 62*time.Second, want: "service account token has expired"},
		{after: -59 * time.Second, want: robot},
		{after: -62 * time.Second, want: "service account token is not valid yet"},
		{audiences: []string{"other", "strange"}, want: robot},
		{audiences: []string{"strange"}, want: `token audiences ["api" "other"] is invalid for the target audiences ["strange"]`},
	} {
		start := w.at
		w.at = w.at.Add(tt.after)
		if got := w.answers(token, tt.audiences...); got != tt.want {
			t.Errorf("after %v for %q: %q, want %q", tt.after, tt.audiences, got, tt.want)
		}
		w.at = start
	}
	g := w.grant()
	g.Audiences = []string{"vault"}
	if got := w.answers(w.issue(g)); got != `token audiences ["vault"] is invalid for the target audiences ["api" "other"]` {
		t.Error(got)
	}
	a, ok, err := w.AuthenticateToken(t.Context(), token, []string{"strange", "other"})
	if err != nil || !ok || !slices.Equal(a.Audiences, []string{"other"}) {
		t.Error(a, ok, err)
	}
}

// Forged tokens are rejected, also the second time.
func TestAttacks(t *testing.T) {
	other := ecdsaKey(t, elliptic.P256())
	signing := ecdsaKey(t, elliptic.P256())
	w := newWorld(t, Options{}, load(t, signing, publicPEM(t, signing), publicPEM(t, rsaKey)))
	token := w.issue(w.grant())
	parts := strings.Split(token, ".")
	own, rsaID := w.keys.(*fileKeys).all[0].id, w.keys.(*fileKeys).all[1].id

	var payload map[string]any
	data, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if err := json.Unmarshal(data, &payload); err != nil {
		t.Fatal(err)
	}
	encode := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	// sign signs the payload, or a changed one, with another key and header.
	sign := func(key any, alg jose.SignatureAlgorithm, header map[jose.HeaderKey]any, change func(map[string]any)) string {
		claims := map[string]any{}
		for k, v := range payload {
			claims[k] = v
		}
		if change != nil {
			change(claims)
		}
		o := &jose.SignerOptions{ExtraHeaders: header}
		if header["jwk"] != nil {
			o.EmbedJWK = true
			delete(header, "jwk")
		}
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := jwt.Signed(s).Claims(claims).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	set := func(key string, value any) func(map[string]any) {
		return func(c map[string]any) { c[key] = value }
	}
	kid := func(id string) map[jose.HeaderKey]any { return map[jose.HeaderKey]any{"kid": id} }
	now := time.Now().Unix()
	deep := `{"iss":"` + DefaultIssuer + `","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`
	const crypto = "go-jose/go-jose: error in cryptographic primitive"
	for _, tt := range []struct{ name, token, want string }{
		{"no signature", parts[0] + "." + parts[1] + ".", crypto},
		{"no algorithm", encode(map[string]any{"alg": "none", "kid": own}) + "." + parts[1] + ".", crypto},
		{"no algorithm, another spelling", encode(map[string]any{"alg": "nOnE"}) + "." + parts[1] + ".", crypto},
		{"no algorithm, with a signature", encode(map[string]any{"alg": "none", "kid": own}) + "." + parts[1] + "." + parts[2], crypto},
		{"the public key as a secret", sign([]byte(publicPEM(t, signing)), jose.HS256, kid(own), nil), crypto},
		{"another key", sign(other, jose.ES256, nil, nil), crypto},
		{"another key, called ours", sign(other, jose.ES256, kid(own), nil), crypto},
		{"another key, by its own name", sign(other, jose.ES256, kid("mine"), nil), "invalid signature, no keys found"},
		{"our key, called another of ours", sign(signing, jose.ES256, kid(rsaID), nil), crypto},
		{"our key with an unknown key ID", sign(signing, jose.ES256, kid("../../dev/null"), nil), "invalid signature, no keys found"},
		{"a key that comes with the token", sign(other, jose.ES256, map[jose.HeaderKey]any{"jwk": true}, nil), crypto},
		{"a place to read a key from", sign(other, jose.ES256, map[jose.HeaderKey]any{"jku": "https://evil.example", "kid": own}, nil), crypto},
		{"another issuer", sign(signing, jose.ES256, kid(own), set("iss", "https://evil.example")), "none of ours"},
		{"two issuers", parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"x","iss":"`+DefaultIssuer+`"}`)) + "." + parts[2], crypto},
		{"a changed subject", parts[0] + "." + encode(map[string]any{"iss": DefaultIssuer, "sub": request.ServiceAccount("kube-system", "admin")}) + "." + parts[2], crypto},
		{"expired", sign(signing, jose.ES256, kid(own), set("exp", now-100)), "service account token has expired"},
		{"not valid yet", sign(signing, jose.ES256, kid(own), set("nbf", now+100)), "service account token is not valid yet"},
		{"from the future", sign(signing, jose.ES256, kid(own), set("iat", now+100)), "service account token is issued in the future"},
		{"another audience", sign(signing, jose.ES256, kid(own), set("aud", "vault")), `token audiences ["vault"] is invalid for the target audiences ["` + DefaultIssuer + `"]`},
		{"of no account", sign(signing, jose.ES256, kid(own), set("kubernetes.io", map[string]any{})), "resource name may not be empty"},
		{"an account by a path", sign(signing, jose.ES256, kid(own), set("kubernetes.io", map[string]any{"namespace": "..", "serviceaccount": map[string]any{"name": "../dev/robot"}})), `serviceaccounts "../dev/robot" not found`},
		{"bound to a webhook", sign(signing, jose.ES256, kid(own), func(c map[string]any) {
			c["kubernetes.io"] = map[string]any{
				"namespace": "dev", "serviceaccount": map[string]any{"name": "robot", "uid": "uid of serviceaccounts/dev/robot"},
				"validatingwebhookconfiguration": map[string]any{"name": "x"},
			}
		}), `bound object was a webhook config, but "admissionReviewAPIGroups" attestation is missing`},
		{"the issuer of Secrets, with other claims", sign(signing, jose.ES256, kid(own), set("iss", LegacyIssuer)), "namespace claim is missing"},
		{"cut off", token[:len(token)-10], crypto},
		{"cut off in the payload", token[:len(parts[0])+20], "none of ours"},
		{"a part more", token + ".x", "none of ours"},
		{"huge", parts[0] + "." + strings.Repeat("A", 1<<20) + "." + parts[2], "none of ours"},
		{"deep", parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(deep)) + "." + parts[2], "none of ours"},
		{"deep header", base64.RawURLEncoding.EncodeToString([]byte(deep)) + "." + parts[1] + "." + parts[2], "none of ours"},
		{"JSON", `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, "none of ours"},
		{"JSON with dots", `{"payload":"` + token + `"}`, "none of ours"},
		{"nothing", "..", "none of ours"},
		{"empty", "", "none of ours"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 {
				if got := w.answers(tt.token); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			}
		})
	}
	if got := w.answers(token); got != robot {
		t.Error("and the token itself:", got)
	}
}

// The token of a Secret is valid while the Secret has it.
func TestLegacy(t *testing.T) {
	const used = `"kubernetes.io/legacy-token-last-used":`
	for _, tt := range []struct {
		name  string
		label string
		then  func(w *world)
		want  string
		used  bool
	}{
		{name: "as it was made", want: robot, used: true},
		{name: "used today", label: used + `"TODAY"`, want: robot},
		{name: "used tomorrow, by another clock", label: used + `"TOMORROW"`, want: robot},
		{name: "used before", label: used + `"2001-02-03"`, want: robot, used: true},
		{name: "listed by its account", then: func(w *world) { w.put("serviceaccounts/dev/robot", `{"secrets":[{"name":"t"}]}`) }, want: robot, used: true},
		{name: "its Secret is gone", then: func(w *world) { w.remove("secrets/dev/t") }, want: "Token has been invalidated"},
		{name: "its Secret is being deleted", then: func(w *world) {
			w.put("secrets/dev/t", `{"metadata":{"deletionTimestamp":"2099-01-01T00:00:00Z"}}`)
		}, want: "Token has been invalidated"},
		{name: "its Secret has another one", then: func(w *world) { w.put("secrets/dev/t", `{"data":{"token":"eA=="}}`) }, want: "Token does not match server's copy"},
		{name: "its account is gone", then: func(w *world) { w.remove("serviceaccounts/dev/robot") }, want: `serviceaccounts "robot" not found`},
		{name: "its account is another one", then: func(w *world) { w.put("serviceaccounts/dev/robot", `{"metadata":{"uid":"b"}}`) },
			want: "ServiceAccount UID (b) does not match claim (uid of serviceaccounts/dev/robot)"},
		{name: "its account is being deleted", then: func(w *world) {
			w.put("serviceaccounts/dev/robot", `{"metadata":{"deletionTimestamp":"2099-01-01T00:00:00Z"}}`)
		}, want: "ServiceAccount dev/robot has been deleted"},
		{name: "it was marked", label: `"kubernetes.io/legacy-token-invalid-since":"2001-02-03"`, used: true,
			want: "the token in secret dev/t for service account dev/robot has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, Options{}, nil)
			today := w.at.UTC().Format(DateFormat)
			token := w.legacy("t", strings.NewReplacer("TODAY", today, "TOMORROW", w.at.UTC().AddDate(0, 0, 1).Format(DateFormat)).Replace(tt.label))
			if tt.then != nil {
				w.answers(token) // caches the Secret
				w.used = nil
				tt.then(w)
			}
			if got := w.answers(token); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			var want []string
			if tt.used {
				want = []string{"dev/t uid of secrets/dev/t " + today}
			}
			if !slices.Equal(w.used, want) {
				t.Errorf("its use was noted as %q, want %q", w.used, want)
			}
		})
	}
	t.Run("nothing is looked up", func(t *testing.T) {
		w := newWorld(t, Options{SkipLookup: true}, nil)
		token := w.legacy("t", "")
		w.remove("secrets/dev/t")
		w.remove("serviceaccounts/dev/robot")
		if got := w.answers(token); got != robot {
			t.Error(got)
		}
	})
}

// Each use of a token adds audit annotations and warnings.
func TestWhatIsSaidOfAUse(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	g := w.grant()
	g.Pod, g.Seconds = &Reference{"n", "uid of pods/dev/n"}, warningExpiration
	pod, manual, listed := w.issue(g), w.legacy("manual", ""), w.legacy("listed", "")
	w.put("serviceaccounts/dev/robot", `{"secrets":[{"name":"listed"}]}`)
	w.at = w.at.Add(warningExpiration*time.Second + 5*time.Second)
	for _, tt := range []struct {
		name, token string
		want        []request.Annotation
		warnings    int
	}{
		{"of a pod, late", pod, []request.Annotation{{Key: "authentication.k8s.io/stale-token", Value: "subject: " + robot + ", seconds after warning threshold: 5"}}, 0},
		{"of a Secret", manual, []request.Annotation{
			{Key: "authentication.k8s.io/legacy-token", Value: robot}, {Key: "authentication.k8s.io/legacy-token-manual-secret", Value: "manual"},
		}, 0},
		{"of a Secret that was made with the account", listed, []request.Annotation{
			{Key: "authentication.k8s.io/legacy-token", Value: robot}, {Key: "authentication.k8s.io/legacy-token-autogenerated-secret", Value: "listed"},
		}, 1},
	} {
		q := &request.Request{}
		_, ok, err := w.AuthenticateToken(request.With(t.Context(), q), tt.token, nil)
		if err != nil || !ok {
			t.Error(tt.name, ok, err)
		}
		if d := cmp.Diff(tt.want, q.Annotations); d != "" || len(q.Warnings) != tt.warnings {
			t.Error(tt.name, d, q.Warnings)
		}
		if _, ok := q.Seen(); !ok {
			t.Error(tt.name, "the store is asked again by who authorizes the request")
		}
	}
}

// Invalid tokens evict no valid ones from the cache, and are cached themselves.
func TestVerdicts(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	token := w.issue(w.grant())
	w.answers(token)
	first, _ := w.good.Get(idOf(token))
	for i := range 2 * maxVerdicts {
		w.answers("x." + strconv.Itoa(i) + ".y")
	}
	if v, ok := w.good.Get(idOf(token)); !ok || v != first {
		t.Error("a valid token was evicted")
	}
	if n := w.bad.Len(); n > maxVerdicts || n < maxVerdicts/2 {
		t.Errorf("%d invalid tokens are cached", n)
	}
}

func BenchmarkAuthenticateToken(b *testing.B) {
	for _, bench := range []struct {
		name string
		make func(w *world) string
	}{
		{"pod", func(w *world) string {
			g := w.grant()
			g.Pod, g.Node = &Reference{"n", "uid of pods/dev/n"}, &Reference{"n", "uid of nodes/n"}
			return w.issue(g)
		}},
		{"secret", func(w *world) string { return w.legacy("t", "") }},
		{"forged", func(w *world) string { t := w.issue(w.grant()); return t[:len(t)-4] + "AAAA" }},
		{"strange", func(w *world) string { return "abc.def.ghi" }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			w := newWorld(b, Options{}, nil)
			token, ctx := bench.make(w), b.Context()
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = w.AuthenticateToken(ctx, token, nil)
			}
		})
	}
}
