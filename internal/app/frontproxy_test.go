package app

import (
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object/gate"
)

// A server trusts only a front proxy with the right certificate. It publishes the settings to other
// API servers.
func TestFrontProxy(t *testing.T) {
	dir := t.TempDir()
	theirs, clients := authority(t), authority(t)
	names := func(p *pki.PKI, name string) *tls.Certificate {
		pair, err := p.Client(name)
		if err != nil {
			t.Fatal(err)
		}
		return pairOf(t, pair)
	}
	headers := authn.StandardProxyHeaders()
	a := start(t, Options{
		ClientCAFile: write(t, filepath.Join(dir, "clients.pem"), clients.CA()),
		Authentication: Authentication{FrontProxy: FrontProxy{
			CAFile: write(t, filepath.Join(dir, "proxies.pem"), theirs.CA()), AllowedNames: []string{"front-proxy"}, Headers: headers,
		}},
	})
	defer stop(t, a)
	awaitStart(t, a)
	for _, test := range []struct {
		name string
		as   *tls.Certificate
		code int
		body string
	}{
		{"the proxy", names(theirs, "front-proxy"), 200, `"NamespaceList"`},
		{"another name", names(theirs, "eve"), 401, `"Unauthorized"`},
		{"a client of the same name", names(clients, "front-proxy"), 403, `User \"front-proxy\" cannot list`},
		{"no user", nil, 401, `"Unauthorized"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := http.NewRequest("GET", a.URL()+"/api/v1/namespaces", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Remote-User", "bob")
			r.Header.Set("X-Remote-Group", "system:masters")
			response, err := client(t, a, test.as).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			var body strings.Builder
			if err := response.Write(&body); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != test.code || !strings.Contains(body.String(), test.body) {
				t.Errorf("answered %s", body.String())
			}
		})
	}
	code, body := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+"/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "", "")
	if code != 200 || !strings.Contains(body, `"requestheader-allowed-names":"[\"front-proxy\"]"`) || !strings.Contains(body, `"requestheader-uid-headers":"[\"X-Remote-Uid\"]"`) {
		t.Errorf("others are told: %d %s", code, body)
	}
}

// Settings that would let every client with a certificate claim any identity fail the start, with
// the messages of kube-apiserver.
func TestFrontProxyErrors(t *testing.T) {
	dir := t.TempDir()
	one, other := authority(t), authority(t)
	clients := write(t, filepath.Join(dir, "clients.pem"), append(other.CA(), one.CA()...))
	proxies := write(t, filepath.Join(dir, "proxies.pem"), one.CA())
	kept := filepath.Join(dir, "kept")
	stop(t, start(t, Options{Dir: kept}))
	ours := filepath.Join(kept, credentials, "ca.crt")
	if _, err := os.Stat(ours); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		o     Options
		proxy FrontProxy
		want  string
	}{
		{"the authority of clients", Options{ClientCAFile: clients}, FrontProxy{CAFile: proxies},
			"--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; --requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating proxy headers for arbitrary users"},
		{"the authority of clients, with a name", Options{ClientCAFile: clients}, FrontProxy{CAFile: proxies, AllowedNames: []string{"p"}}, ""},
		{"our authority", Options{Dir: kept}, FrontProxy{CAFile: ours},
			"--requestheader-client-ca-file contains the CA of this server, which signs client certificates; --requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating proxy headers for arbitrary users"},
		{"our authority, with a name", Options{Dir: kept}, FrontProxy{CAFile: ours, AllowedNames: []string{"p"}}, ""},
		{"an empty name", Options{}, FrontProxy{AllowedNames: []string{"a", " "}}, `empty value in "requestheader-allowed-names"`},
		{"two mistakes", Options{}, FrontProxy{Headers: authn.ProxyHeaders{Username: []string{""}, UID: []string{"X-Uid"}}},
			`[empty value in "requestheader-username-headers", --requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will not work]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.o.Authentication.FrontProxy = test.proxy
			a, err := Start(t.Context(), test.o)
			if err == nil {
				defer stop(t, a)
			}
			if err == nil && test.want != "" || err != nil && err.Error() != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// The CA of proxies may be replaced while the server runs, and the new one is published.
func TestFrontProxyReload(t *testing.T) {
	old, next := authority(t), authority(t)
	file := write(t, filepath.Join(t.TempDir(), "proxies.pem"), old.CA())
	a := start(t, Options{Authentication: Authentication{FrontProxy: FrontProxy{CAFile: file, Headers: authn.StandardProxyHeaders()}}})
	defer stop(t, a)
	told := a.identity.told()
	before := told()
	if told() != before {
		t.Error("clients are told anew of the same authorities")
	}
	pair, err := next.Client("front-proxy")
	if err != nil {
		t.Fatal(err)
	}
	proxy := client(t, a, pairOf(t, pair))
	named := func() int {
		r, err := http.NewRequestWithContext(t.Context(), "GET", a.URL()+"/api/v1/namespaces", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Remote-User", "bob")
		response, err := proxy.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if code := named(); code != 401 {
		t.Errorf("before: %d", code)
	}
	write(t, file, next.CA())
	for named() != 403 {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	if told().Equal(before) {
		t.Error("clients are not told of the new authority")
	}
}

// A server without a configured CA generates one, distinct from that of its clients, and publishes
// it.
func TestOwnFrontProxy(t *testing.T) {
	dir, signer := t.TempDir(), t.TempDir()
	a := start(t, Options{Dir: dir, Authentication: Authentication{FrontProxy: FrontProxy{}.OrOwn()}})
	defer stop(t, a)
	awaitStart(t, a)
	made, err := os.ReadFile(filepath.Join(dir, "pki", "front-proxy-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(signer, "ca.pem"), made)
	ask := func(name string) int {
		pair, err := pki.SignClient(signer, name, nil, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest("GET", a.URL()+"/api/v1/namespaces", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Remote-User", "bob")
		r.Header.Set("X-Remote-Group", "system:masters")
		response, err := client(t, a, pairOf(t, pair)).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if code := ask("front-proxy-client"); code != 200 {
		t.Errorf("the proxy: %d", code)
	}
	if code := ask("bob"); code != 401 {
		t.Errorf("another name: %d", code)
	}
	response, err := client(t, a, admin(t, a)).Get(a.URL() + "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var told struct{ Data map[string]string }
	if err := json.NewDecoder(response.Body).Decode(&told); err != nil {
		t.Fatal(err)
	}
	if told.Data["requestheader-client-ca-file"] == "" || told.Data["requestheader-client-ca-file"] == told.Data["client-ca-file"] {
		t.Errorf("others are told: %v", told.Data)
	}
}

// Proxies of the generated CA name the uid of a user, unless the feature gate is off.
func TestOwnFrontProxyTellsUIDs(t *testing.T) {
	for _, on := range []bool{true, false} {
		a := start(t, Options{Authentication: Authentication{FrontProxy: FrontProxy{}.OrOwn()}, Gates: gate.With(map[gate.Name]bool{gate.RemoteRequestHeaderUID: on})})
		awaitStart(t, a)
		told := asked(t, a, http.MethodGet, "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "", http.StatusOK)
		if strings.Contains(told, `"requestheader-uid-headers":"[\"X-Remote-Uid\"]"`) != on || !strings.Contains(told, "X-Remote-User") {
			t.Errorf("gate %v: %s", on, told)
		}
	}
}

// Configured names and headers also apply to proxies of the generated CA.
func TestOwnFrontProxyKeepsFlags(t *testing.T) {
	got := FrontProxy{AllowedNames: []string{"mine"}, Headers: authn.ProxyHeaders{Username: []string{"X-Remote-User", "X-Who"}, UID: []string{"X-Uid"}}}.OrOwn()
	want := authn.StandardProxyHeaders()
	want.Username, want.UID = []string{"X-Remote-User", "X-Who"}, []string{"X-Uid"}
	if !reflect.DeepEqual(got.Headers, want) || !slices.Equal(got.AllowedNames, []string{frontProxyName, "mine"}) {
		t.Errorf("%+v, %q", got.Headers, got.AllowedNames)
	}
	if err := got.check("", nil, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--requestheader-uid-headers is set without") {
		t.Errorf("without the standard header: %v", err)
	}
}
