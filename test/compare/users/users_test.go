package users

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")

// A world is both servers, with all issuers of identities.
type world struct {
	pair                      *servers.Pair
	clients, more, proxies    *pki.Pair
	one, two                  *issuer
	clientCAs, authentication string // files
	reviews                   bool
}

// configuration returns an AuthenticationConfiguration with issuers.
func configuration(t *testing.T, one, two *issuer) []byte {
	t.Helper()
	authority := func(i *issuer) string {
		data, err := json.Marshal(string(serverCA(i.Server)))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: %q, audiences: [kube], certificateAuthority: %s}
  claimMappings: {username: {claim: sub, prefix: "one:"}, groups: {claim: groups, prefix: "one:"}, uid: {claim: jti}}
- issuer: {url: %q, audiences: [kube, other], audienceMatchPolicy: MatchAny, certificateAuthority: %s}
  claimMappings:
    username: {expression: 'claims.sub'}
    groups: {expression: 'claims.?roles.orValue([])'}
    extra: [{key: acme.com/level, valueExpression: 'string(claims.level)'}]
  claimValidationRules: [{expression: 'claims.level > 2', message: too low}]
  userValidationRules: [{expression: '!user.username.startsWith("system:")', message: reserved}]
`, one.URL, authority(one), two.URL, authority(two))
}

func start(t *testing.T) *world {
	t.Helper()
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	dir := t.TempDir()
	w := &world{clients: pkitest.Authority(t, "clients"), more: pkitest.Authority(t, "more"), proxies: pkitest.Authority(t, "proxies"), one: newIssuer(t), two: newIssuer(t)}
	w.clientCAs = write(t, filepath.Join(dir, "clients.pem"), append(w.clients.CertPEM(), w.more.CertPEM()...))
	w.authentication = write(t, filepath.Join(dir, "authentication.yaml"), configuration(t, w.one, w.two))
	flags := []string{
		"--client-ca-file=" + w.clientCAs, "--authentication-config=" + w.authentication,
		"--requestheader-client-ca-file=" + write(t, filepath.Join(dir, "proxies.pem"), w.proxies.CertPEM()), "--requestheader-allowed-names=front,Second",
		"--requestheader-username-headers=X-Remote-User,X-Other-User", "--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--enable-bootstrap-token-auth", "--anonymous-auth=true",
		"--authentication-token-webhook-config-file=" + kubeconfig(t, dir, newWebhook(t)), "--authentication-token-webhook-version=v1",
	}
	// Stop, not the context of the test, ends the servers.
	var err error
	if w.pair, err = servers.Start(context.WithoutCancel(t.Context()), servers.Options{Reference: "start", Store: "memory", Dir: dir, Theirs: flags, Ours: flags}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pair.Stop)
	w.reviews = reviewed(t.Context(), w.pair)
	return w
}

// both returns each server's response to a client.
func (w *world) both(t *testing.T, who who) (theirs, ours string) {
	t.Helper()
	return ask(t, t.Context(), w.pair.Theirs.Host(), w.reviews, who), ask(t, t.Context(), w.pair.Ours.Host(), w.reviews, who)
}

// until waits until both servers respond with a prefix.
func (w *world) until(t *testing.T, what string, who who, prefix string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		theirs, ours := w.both(t, who)
		if strings.HasPrefix(theirs, prefix) && strings.HasPrefix(ours, prefix) {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("%s: kube-apiserver says %s, anykind says %s", what, theirs, ours)
		}
	}
}

// bootstrap creates the Secret of a bootstrap token with changed data; "" removes a key.
func (w *world) bootstrap(t *testing.T, id string, changes map[string]string) who {
	t.Helper()
	data := map[string]string{"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}
	kind := "bootstrap.kubernetes.io/token"
	for key, value := range changes {
		data[key] = value
		if value == "" {
			delete(data, key)
		}
		if key == "type" {
			kind = value
			delete(data, key)
		}
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "bootstrap-token-" + id}, "type": kind, "stringData": data})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*wire.Client{w.pair.Theirs, w.pair.Ours} {
		a := c.Do(t.Context(), wire.Step{Method: "POST", Path: "/api/v1/namespaces/kube-system/secrets", Header: []wire.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body})
		if a.Code != 201 {
			t.Fatalf("%d %s %s", a.Code, a.Failed, a.Body)
		}
	}
	return bearing(id + ".0123456789abcdef")
}

// Both servers authenticate the same users, and reject the same credentials.
func TestUsers(t *testing.T) {
	w := start(t)
	w.until(t, "the issuers are found", bearing(w.one.token("RS256", "k", nil)), "403")
	w.until(t, "the issuers are found", bearing(w.two.token("RS256", "k", nil)), "403")
	soon, late := time.Now().Add(time.Hour).UTC().Format(time.RFC3339), time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	proxy := who{as: pkitest.Client(t, w.proxies, "front")}
	eve := who{as: pkitest.Client(t, w.clients, "eve", "devs")}
	second := w.bootstrap(t, "aaaaaa", nil)
	w.until(t, "a bootstrap token is known", second, "403")
	stranger := pkitest.Authority(t, "clients")
	one := func(changes map[string]any) who { return bearing(w.one.token("RS256", "k", changes)) }
	two := func(changes map[string]any) who { return bearing(w.two.token("RS256", "k", changes)) }
	secret := func(id, key, value string) who { return w.bootstrap(t, id, map[string]string{key: value}) }
	good := w.one.token("RS256", "k", nil)
	header, rest, _ := strings.Cut(good, ".")
	_, signature, _ := strings.Cut(rest, ".")
	cases := []struct {
		name string
		who  who
		want string // prefix of the response
	}{
		{"no user", who{}, `403 nodes "n" is forbidden: User "system:anonymous"`},
		{"no user, with headers", who{}.with("X-Remote-User", "root", "X-Remote-Group", "system:masters"), `403 nodes "n" is forbidden: User "system:anonymous"`},
		{"the token file", bearing(servers.Token), "404"},
		{"a wrong token", bearing("wrong"), "401"},

		{"token of a websocket", socket(good, ", v4.channel.k8s.io"), `403 nodes "n" is forbidden: User "one:eve"`},
		{"wrong token of a websocket", socket("wrong", ", v4.channel.k8s.io"), "401"},
		{"token of a websocket without another subprotocol", socket(good, ""), "401"},
		{"two tokens of a websocket", socket(good, ", a, base64url.bearer.authorization.k8s.io."+encode([]byte(good))), "401"},

		{"certificate", eve, `403 nodes "n" is forbidden: User "eve"`},
		{"certificate of the other authority", who{as: pkitest.Client(t, w.more, "bob", "system:masters")}, "404"},
		{"certificate of an authority of that name", who{as: pkitest.Client(t, stranger, "eve")}, "401"},
		{"certificate for a server", who{as: forServer(t, w.clients, "eve")}, "401"},
		{"certificate that has expired", who{as: expired(t, w.clients, "eve")}, "401"},
		{"certificate without a name", who{as: pkitest.Client(t, w.clients, "", "system:masters")}, "401"},
		{"certificate and a good token", eve.with("Authorization", "Bearer "+servers.Token), `403 nodes "n" is forbidden: User "eve"`},
		{"bad certificate and a good token", who{as: pkitest.Client(t, stranger, "eve"), header: bearing(servers.Token).header}, "404"},
		{"certificate and a bad token", who{as: eve.as, header: bearing("wrong").header}, `403 nodes "n" is forbidden: User "eve"`},

		{"front proxy", proxy.with("X-Remote-User", "carol", "X-Remote-Group", "a", "X-Remote-Group", "b", "X-Remote-Uid", "7", "X-Remote-Extra-Acme.com%2fKey", "v"), `403 nodes "n" is forbidden: User "carol"`},
		{"front proxy of a master", proxy.with("X-Remote-User", "carol", "X-Remote-Group", "system:masters"), "404"},
		{"front proxy of another name", who{as: pkitest.Client(t, w.proxies, "third")}.with("X-Remote-User", "carol"), "401"},
		{"front proxy in another case", who{as: pkitest.Client(t, w.proxies, "second")}.with("X-Remote-User", "carol"), "401"},
		{"front proxy that names no user", proxy.with("X-Remote-Group", "system:masters"), "401"},
		{"front proxy, other header", proxy.with("X-Other-User", "dora"), `403 nodes "n" is forbidden: User "dora"`},
		{"front proxy, header in small letters", proxy.with("x-remote-user", "dora"), `403 nodes "n" is forbidden: User "dora"`},
		{"front proxy that names the anonymous", proxy.with("X-Remote-User", "system:anonymous"), `403 nodes "n" is forbidden: User "system:anonymous"`},
		{"client who says they are a proxy", who{as: pkitest.Client(t, w.clients, "front")}.with("X-Remote-User", "root", "X-Remote-Group", "system:masters"), `403 nodes "n" is forbidden: User "front"`},
		{"token with headers", bearing(good).with("X-Remote-User", "root"), `403 nodes "n" is forbidden: User "one:eve"`},

		{"bootstrap token", second, `403 nodes "n" is forbidden: User "system:bootstrap:aaaaaa"`},
		{"bootstrap token with groups", secret("aaaaab", "auth-extra-groups", "system:bootstrappers:b,system:bootstrappers:a"), "403"},
		{"bootstrap token with a group of others", secret("aaaaac", "auth-extra-groups", "system:masters"), "401"},
		{"bootstrap token that is good for an hour", secret("aaaaad", "expiration", soon), "403"},
		{"bootstrap token that has expired", secret("aaaaae", "expiration", late), "401"},
		{"bootstrap token that expires some day", secret("aaaaaf", "expiration", "some day"), "401"},
		{"bootstrap token for signing", secret("aaaaag", "usage-bootstrap-authentication", ""), "401"},
		{"bootstrap token of another id", secret("aaaaah", "token-id", "bbbbbb"), "401"},
		{"bootstrap token of another type", secret("aaaaai", "type", "Opaque"), "401"},
		{"bootstrap token with another secret", bearing("aaaaaa.0123456789abcdeg"), "401"},
		{"bootstrap token in capitals", bearing("AAAAAA.0123456789abcdef"), "401"},

		{"web token", one(map[string]any{"groups": []string{"a", "b"}}), `403 nodes "n" is forbidden: User "one:eve"`},
		{"web token, one group", one(map[string]any{"groups": "a"}), "403"},
		{"web token of another audience", one(map[string]any{"aud": "others"}), "401"},
		{"web token that has expired", one(map[string]any{"exp": 1}), "401"},
		{"web token that never expires", one(map[string]any{"exp": nil}), "401"},
		{"web token of tomorrow", one(map[string]any{"nbf": time.Now().Add(24 * time.Hour).Unix()}), "401"},
		{"web token of another issuer", one(map[string]any{"iss": "https://other.invalid"}), "401"},
		{"web token of the other issuer", one(map[string]any{"iss": w.two.URL}), "401"},
		{"web token without a user", one(map[string]any{"sub": nil}), "401"},
		{"web token of an unknown key", bearing(w.one.token("RS256", "other", nil)), "401"},
		{"web token of a hidden key", bearing(w.one.token("RS256", "hidden", nil)), "401"},
		{"web token by another algorithm", bearing(w.one.token("PS256", "k", nil)), "403"},
		{"web token by the public key", bearing(w.one.token("HS256", "k", nil)), "401"},
		{"web token by none", bearing(w.one.token("none", "k", nil)), "401"},
		{"web token with other claims", bearing(header + "." + base64.RawURLEncoding.EncodeToString(bytes.Replace(decode(t, rest), []byte("eve"), []byte("bob"), 1)) + "." + signature), "401"},
		{"web token cut off", bearing(good[:len(good)-5]), "401"},
		{"web token with groups elsewhere", one(w.one.distributed("/groups")), ""},
		{"web token with groups in a loop", one(w.one.distributed("/loop")), "401"},
		{"web token with groups nowhere", one(map[string]any{"_claim_names": map[string]any{"groups": "s"}}), "401"},
		{"web token by expressions", two(map[string]any{"aud": []string{"x", "other"}, "roles": []string{"a", ""}}), `403 nodes "n" is forbidden: User "eve"`},
		{"web token of a master by expressions", two(map[string]any{"roles": []string{"system:masters"}}), "404"},
		{"web token that breaks a rule", two(map[string]any{"level": 2}), "401"},
		{"web token without a claim of a rule", two(map[string]any{"level": nil}), "401"},
		{"web token of a reserved name", two(map[string]any{"sub": "system:admin"}), "401"},
		{"web token with a number for a name", two(map[string]any{"sub": 7}), "401"},

		{"webhook", bearing("hook-eve"), `403 nodes "n" is forbidden: User "hooked"`},
		{"webhook, a master", bearing("hook-master"), "404"},
		{"webhook, for others", bearing("hook-others"), "401"},
		{"webhook, an error", bearing("hook-error"), "401"},
		{"webhook, 502", bearing("hook-500"), "401"},
		{"webhook, nonsense", bearing("hook-nonsense"), "401"},
	}
	for _, c := range cases {
		theirs, ours := w.both(t, c.who)
		if strings.Contains(c.name, "groups elsewhere") { // the server is still fetching them
			w.until(t, c.name, c.who, "403")
			theirs, ours = w.both(t, c.who)
		}
		if theirs != ours || !strings.HasPrefix(ours, c.want) {
			t.Errorf("%s: want %s\nkube-apiserver says %s\nanykind says        %s", c.name, c.want, theirs, ours)
		}
	}
	t.Logf("%d users compared, reviews of oneself included: %v", len(cases), w.reviews)
	w.reload(t)
}

func decode(t *testing.T, rest string) []byte {
	t.Helper()
	payload, _, _ := strings.Cut(rest, ".")
	data, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reload changes files of running servers.
func (w *world) reload(t *testing.T) {
	next := pkitest.Authority(t, "next")
	write(t, w.clientCAs, append(w.more.CertPEM(), next.CertPEM()...))
	w.until(t, "a new authority counts", who{as: pkitest.Client(t, next, "eve")}, "403")
	w.until(t, "an old authority counts no longer", who{as: pkitest.Client(t, w.clients, "eve")}, "401")

	write(t, w.authentication, []byte("nonsense"))
	w.until(t, "a bad file changes nothing", bearing(w.one.token("RS256", "k", map[string]any{"sub": "bad file"})), "403")
	third := newIssuer(t)
	write(t, w.authentication, configuration(t, third, w.two))
	w.until(t, "a new issuer counts", bearing(third.token("RS256", "k", nil)), "403")
	w.until(t, "an old issuer counts no longer", bearing(w.one.token("RS256", "k", map[string]any{"sub": "late"})), "401")
}
