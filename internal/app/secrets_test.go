package app

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A buffer is a log with concurrent writers.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// No secret in a request, valid or not, appears in the log, at any level, or in the metrics.
func TestNothingSecretIsLogged(t *testing.T) {
	var log buffer
	p := startPeople(t, Options{
		Log:            slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.Level(math.MinInt)})),
		Authentication: Authentication{BootstrapTokens: true},
	})
	must(t, p.app, "POST", inDefault+"/serviceaccounts", robot)
	robots := tokenOf(t, p.app, "{}")
	signature := robots[strings.LastIndexByte(robots, '.')+1:]
	forged := strings.TrimSuffix(robots, signature) + strings.Repeat("A", len(signature))
	const bootstrap, typed, stored = "abcdef.0123456789abcdef", "hush-typed", "hush-stored"
	must(t, p.app, "POST", "/api/v1/namespaces/kube-system/secrets", `{"metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token",`+
		`"stringData":{"token-id":"abcdef","token-secret":"0123456789abcdef","usage-bootstrap-authentication":"false"}}`)
	must(t, p.app, "POST", inDefault+"/secrets", `{"metadata":{"name":"s"},"stringData":{"k":"`+stored+`"}}`)
	for _, token := range []string{robots, forged, bootstrap, typed, "root"} {
		p.does("root", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"`+token+`"}}`, 201, "")
		for _, header := range []string{
			"Authorization: Bearer " + token, "Authorization: Bearer  " + token, "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("root:"+token)),
			"Sec-Websocket-Protocol: base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token)) + ", v4.channel.k8s.io",
		} {
			r, err := http.NewRequestWithContext(t.Context(), "GET", p.app.URL()+inDefault+"/secrets/s?token="+token, nil)
			if err != nil {
				t.Fatal(err)
			}
			name, value, _ := strings.Cut(header, ": ")
			r.Header.Set(name, value)
			if name != "Authorization" {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", "websocket")
			}
			answer, err := p.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
		}
	}
	p.does("root", "PUT", inDefault+"/secrets/s", `{"metadata":{"name":"s"},"data":{"k":"`+stored+`"}}`, 400, "")
	page := p.does("root", "GET", "/metrics", "", 200, "")
	stop(t, p.app)
	said := log.String() + page
	if !strings.Contains(said, "authentication failed") || !strings.Contains(said, "bootstrap token refused") {
		t.Errorf("the log has not what it is looked at for:\n%s", said)
	}
	for _, secret := range []string{robots, signature, forged, "0123456789abcdef", typed, stored} {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret))} {
			if at := strings.Index(said, form); at >= 0 {
				t.Errorf("the log has a secret: %s", fmt.Sprintf("%.300s", said[max(0, at-100):]))
			}
		}
	}
}
