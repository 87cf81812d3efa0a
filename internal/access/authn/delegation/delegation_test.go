package delegation

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/cluster/clustertest"
	"github.com/anykind/anykind/internal/network/pki"
)

const path = folder + "/" + authn.ConfigMap

// configMap returns a ConfigMap with data.
func configMap(t *testing.T, data map[string]string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func authority(t *testing.T) *pki.PKI {
	t.Helper()
	p, err := pki.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Settings of the ConfigMap take effect at once. A missing or invalid entry leaves the previous
// value.
func TestTrust(t *testing.T) {
	server := clustertest.Start(t)
	trust := New(server.Client(), slog.New(slog.DiscardHandler))
	if err := trust.Load(t.Context()); err != nil || len(trust.Clients().Certificates) != 0 || len(trust.Proxies().Certificates) != 0 {
		t.Errorf("without a ConfigMap: %v", err)
	}
	clients, proxies, next := authority(t), authority(t), authority(t)
	data := map[string]string{
		authn.ClientCAKey: string(clients.CA()), authn.ProxyCAKey: string(proxies.CA()), authn.AllowedNamesKey: `["front"]`,
		authn.UsernameHeadersKey: `["X-Remote-User"]`, authn.GroupHeadersKey: `["X-Remote-Group"]`, authn.ExtraHeadersPrefixKey: `["X-Remote-Extra-"]`,
	}
	server.Put(path, configMap(t, data))
	if err := trust.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	frontProxies := trust.FrontProxies()
	if !trust.Clients().Shares(pki.NewAuthorities(clients.Authority())) || !trust.Proxies().Shares(pki.NewAuthorities(proxies.Authority())) ||
		!slices.Equal(frontProxies.AllowedNames, []string{"front"}) || !slices.Equal(frontProxies.Headers.Username, []string{"X-Remote-User"}) || frontProxies.Headers.UID != nil {
		t.Errorf("%+v", frontProxies)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); trust.Follow(ctx) }()
	defer func() { cancel(); <-done }()
	until := func(is func() bool) {
		for !is() {
			runtime.Gosched()
		}
	}
	// A change of the allowed names invalidates cached certificates.
	was := trust.Proxies()
	data[authn.AllowedNamesKey] = `["front","other"]`
	server.Put(path, configMap(t, data))
	until(func() bool { return len(trust.FrontProxies().AllowedNames) == 2 })
	if trust.Proxies() == was || !trust.Proxies().Shares(was) {
		t.Error("the authorities are remembered with the names before")
	}
	data[authn.ProxyCAKey], data[authn.ClientCAKey] = string(next.CA()), "nonsense"
	data[authn.GroupHeadersKey] = "nonsense"
	server.Put(path, configMap(t, data))
	until(func() bool { return trust.Proxies().Shares(pki.NewAuthorities(next.Authority())) })
	if !trust.Clients().Shares(pki.NewAuthorities(clients.Authority())) || !slices.Equal(trust.FrontProxies().Headers.Group, []string{"X-Remote-Group"}) {
		t.Error("what cannot be read has an effect")
	}
	server.Delete(path)
	if err := trust.Load(t.Context()); err != nil || len(trust.Clients().Certificates) != 1 {
		t.Errorf("after deletion of the ConfigMap: no CA, %v", err)
	}
}

// The error for a forbidden read of the ConfigMap names the missing role.
func TestForbidden(t *testing.T) {
	server := clustertest.Start(t)
	server.Answer(path, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","status":"Failure","reason":"Forbidden","code":403}`))
	})
	err := New(server.Client(), slog.New(slog.DiscardHandler)).Load(t.Context())
	if err == nil || !strings.Contains(err.Error(), "--role=extension-apiserver-authentication-reader") {
		t.Error(err)
	}
}
