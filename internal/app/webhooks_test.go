package app

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

const (
	mutatingWebhooks   = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	validatingWebhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	inConfigMaps       = "/api/v1/namespaces/default/configmaps"
	inSecrets          = "/api/v1/namespaces/default/secrets"
)

// admitting is a server with a webhook.
type admitting struct {
	*converting
	hook   *httptest.Server
	open   atomic.Int64
	closed chan struct{} // receives a value for each closed connection
	answer atomic.Pointer[http.HandlerFunc]
	// last is the last request to the webhook.
	last atomic.Pointer[http.Request]
}

func startAdmitting(t *testing.T, o Options) *admitting {
	t.Helper()
	h := &admitting{converting: &converting{t: t}, closed: make(chan struct{}, 100)}
	h.hook = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.calls.Add(1)
		h.last.Store(r)
		(*h.answer.Load())(w, r)
	}))
	h.hook.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.hook.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			h.open.Add(1)
		case http.StateClosed:
			h.open.Add(-1)
			h.closed <- struct{}{}
		}
	}
	h.hook.StartTLS()
	t.Cleanup(h.hook.Close)
	h.says(saying(nil))
	t.Cleanup(func() { // no connection is left after the server has stopped
		for h.open.Load() > 0 {
			<-h.closed
		}
	})
	h.app = start(t, o)
	t.Cleanup(func() { stop(t, h.app) })
	awaitStart(t, h.app)
	h.client = client(t, h.app, admin(t, h.app))
	return h
}

func (h *admitting) says(answer http.HandlerFunc) { h.answer.Store(&answer) }

// saying returns a handler that allows a review, unless response overrides this.
func saying(response map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review object.Tree
		_ = json.NewDecoder(r.Body).Decode(&review)
		request, _ := review["request"].(map[string]any)
		out := map[string]any{"uid": request["uid"], "allowed": true}
		for field, v := range response {
			out[field] = v
		}
		review["response"] = out
		_ = json.NewEncoder(w).Encode(review)
	}
}

// patching returns a handler that responds with a JSON patch.
func patching(patch string) http.HandlerFunc {
	return saying(map[string]any{"patch": base64.StdEncoding.EncodeToString([]byte(patch)), "patchType": "JSONPatch"})
}

func (h *admitting) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.hook.Certificate().Raw})
}

// configuration returns a configuration with a webhook for creates and updates of ConfigMaps. more
// are further fields of the webhook.
func (h *admitting) configuration(kind, url string, ca []byte, more string) string {
	bundle, _ := json.Marshal(ca)
	return fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"%sWebhookConfiguration","metadata":{"name":"hook"},"webhooks":[
		{"name":"hook.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","clientConfig":{"url":%q,"caBundle":%s},
		"rules":[{"operations":["CREATE","UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]%s}]}`, kind, url, bundle, more)
}

func configMap(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"k":"v"}}`, name)
}

// told checks the error of a write of a ConfigMap.
func (h *admitting) told(want string) {
	h.t.Helper()
	if code, answer, _ := h.do("POST", inConfigMaps, configMap("a")); code < 400 || !strings.Contains(fmt.Sprint(answer["message"]), want) {
		h.t.Errorf("%d %v, want %s", code, answer["message"], want)
	}
}

// A misbehaving webhook fails the writes that need it. It does not affect other kinds, and its
// connections are closed.
func TestWebhookHostile(t *testing.T) {
	const failed = `Internal error occurred: failed calling webhook "hook.example.com": `
	double := `{"op":"copy","from":"/data","path":"/data/x"},{"op":"copy","from":"/data","path":"/data/y"},`
	tests := []struct {
		name   string
		answer http.HandlerFunc
		more   string // further fields of the webhook
		want   string
	}{
		{name: "wrong uid", answer: saying(map[string]any{"uid": "other"}), want: failed + `received invalid webhook response: expected response.uid="`},
		{name: "no answer", answer: func(http.ResponseWriter, *http.Request) {}, want: failed + "failed to call webhook: couldn't get version/kind"},
		{name: "10 GB", answer: func(w http.ResponseWriter, _ *http.Request) {
			for block, left := make([]byte, 1<<20), 10_000; left > 0; left-- {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, want: failed + "failed to call webhook: the webhook's response is larger than "},
		{name: "redirect", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusPermanentRedirect)
		}, want: failed + "failed to call webhook: the server responded with the status code 308"},
		{name: "slow", answer: func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // to detect the end of the connection
			<-r.Context().Done()
		}, more: `,"timeoutSeconds":1`, want: failed + `failed to call webhook: Post "https://`},
		{name: "a patch that doubles and doubles", answer: patching("[" + strings.Repeat(double, 60) + `{"op":"test","path":"/data/k","value":"v"}]`),
			want: "Internal error occurred: the operations copy more than 3145728 bytes"},
		{name: "a patch without end", answer: patching("[" + strings.Repeat(`{"op":"test","path":"/data/k","value":"v"},`, 10_000) + `{"op":"test","path":"/data/k","value":"v"}]`),
			want: failed + "received undecodable patch in webhook response: the allowed maximum operations in a JSON patch is 10000, got 10001"},
		{name: "a patch of the identity", answer: patching(`[{"op":"replace","path":"/metadata/namespace","value":"kube-system"}]`),
			want: "the namespace of the provided object does not match the namespace sent on the request"},
		{name: "a patch of something that is none", answer: patching(`[{"op":"replace","path":"/data","value":[]}]`),
			want: "Internal error occurred: json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"},
		{name: "warnings that are lines of a header", answer: saying(map[string]any{"allowed": false, "warnings": []string{"a\r\nSet-Cookie: b"}}),
			want: `admission webhook "hook.example.com" denied the request without explanation`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := startAdmitting(t, Options{})
			h.says(test.answer)
			h.must("POST", mutatingWebhooks, h.configuration("Mutating", h.hook.URL, h.ca(), test.more), 201)
			h.told(test.want)
			h.must("POST", inSecrets, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`, 201)
			h.must("GET", inConfigMaps+"/kube-root-ca.crt", "", 200)
			h.must("DELETE", inConfigMaps+"/kube-root-ca.crt", "", 200)
			h.must("DELETE", mutatingWebhooks+"/hook", "", 200)
			h.must("POST", inConfigMaps, configMap("a"), 201)
		})
	}
}

// A webhook with the URL of the server itself fails: the request has no credentials.
func TestWebhookItself(t *testing.T) {
	h := startAdmitting(t, Options{})
	h.must("POST", validatingWebhooks, h.configuration("Validating", h.app.URL()+inConfigMaps, h.app.CA(), ""), 201)
	h.told(`failed calling webhook "hook.example.com": failed to call webhook: `)
	h.must("DELETE", validatingWebhooks+"/hook", "", 200)
	h.must("POST", inConfigMaps, configMap("a"), 201)
}

// A configuration and its changes take effect with the next write: a caBundle that is injected
// later, or a removed webhook.
func TestWebhookInForce(t *testing.T) {
	h := startAdmitting(t, Options{})
	h.says(saying(map[string]any{"allowed": false, "status": map[string]any{"message": "no"}}))
	for i := range 20 {
		h.must("POST", validatingWebhooks, h.configuration("Validating", h.hook.URL, nil, ""), 201)
		h.told("certificate signed by unknown authority")
		bundle, _ := json.Marshal(h.ca())
		inject := fmt.Sprintf(`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":%s}]`, bundle)
		h.patch(validatingWebhooks+"/hook", inject)
		h.told(`admission webhook "hook.example.com" denied the request: no`)
		h.must("DELETE", validatingWebhooks+"/hook", "", 200)
		h.must("POST", inConfigMaps, configMap(fmt.Sprint("free-", i)), 201)
	}
}

// patch sends a JSON patch.
func (h *admitting) patch(path, patch string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPatch, h.app.URL()+path, strings.NewReader(patch))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json-patch+json")
	response, err := h.client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		h.t.Fatalf("%d %s", response.StatusCode, body)
	}
}

// Webhooks from files also apply to webhook configurations, unlike those from the API. A changed
// file takes effect soon.
func TestWebhookFiles(t *testing.T) {
	dir := t.TempDir()
	manifests := filepath.Join(dir, "manifests")
	if err := os.Mkdir(manifests, 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "admission.yaml")
	place(t, config, fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins: [{name: ValidatingAdmissionWebhook, configuration:
		{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, staticManifestsDir: %q}}]`, manifests))
	o := Options{Admission: Admission{ConfigFile: config}}
	for file, want := range map[string]string{
		`{"kind":"ConfigMap","apiVersion":"v1"}`: `no kind "ConfigMap" is registered for version "v1"`,
		`{"kind":"ValidatingWebhookConfiguration","apiVersion":"admissionregistration.k8s.io/v1","metadata":{"name":"a"}}`:                                             `must have a name ending with ".static.k8s.io"`,
		`{"kind":"ValidatingWebhookConfiguration","apiVersion":"admissionregistration.k8s.io/v1","metadata":{"name":"a.static.k8s.io"},"webhooks":[{"name":"short"}]}`: "webhooks[0].name: Invalid value",
		`{"kind":"ValidatingWebhookConfiguration","apiVersion":"admissionregistration.k8s.io/v1","metadata":{"name":"a.static.k8s.io"},"hooks":[]}`:                    `unknown field "hooks"`,
	} {
		place(t, filepath.Join(manifests, "hooks.json"), file)
		if a, err := Start(t.Context(), o); err == nil {
			stop(t, a)
			t.Errorf("a server starts with %s", file)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := os.Remove(filepath.Join(manifests, "hooks.json")); err != nil {
		t.Fatal(err)
	}
	h := startAdmitting(t, o)
	h.says(saying(map[string]any{"allowed": false, "status": map[string]any{"message": "not by the API"}}))
	h.must("POST", validatingWebhooks, h.configuration("Validating", h.hook.URL, h.ca(), ""), 201)
	h.must("DELETE", validatingWebhooks+"/hook", "", 200)
	static := strings.NewReplacer(`"name":"hook"`, `"name":"hook.static.k8s.io"`, `"apiGroups":[""]`, `"apiGroups":["*"]`, "configmaps", "validatingwebhookconfigurations").
		Replace(h.configuration("Validating", h.hook.URL, h.ca(), ""))
	place(t, filepath.Join(manifests, "hooks.yaml"), static)
	for code := 201; code == 201; {
		code, _, _ = h.do("POST", validatingWebhooks+"?dryRun=All", h.configuration("Validating", h.hook.URL, h.ca(), ""))
	}
	answer, _ := h.must("POST", validatingWebhooks, h.configuration("Validating", h.hook.URL, h.ca(), ""), 400)
	h.expect("message", answer["message"], `admission webhook "hook.example.com" denied the request: not by the API`)
}

// place writes a file atomically, by renaming it.
func place(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// A webhook receives credentials if a kubeconfig has some for its host.
func TestWebhookCredentials(t *testing.T) {
	dir := t.TempDir()
	config, users := filepath.Join(dir, "admission.yaml"), filepath.Join(dir, "users.yaml")
	place(t, config, fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins: [{name: MutatingAdmissionWebhook, configuration:
		{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %q}}]`, users))
	place(t, users, `{apiVersion: v1, kind: Config, users: [{name: "*.0.0.1:1", user: {token: wrong}}, {name: "127.0.0.1", user: {token: also-wrong}}]}`)
	h := startAdmitting(t, Options{})
	place(t, users, fmt.Sprintf(`{apiVersion: v1, kind: Config, users: [{name: "*.0.0.1:1", user: {token: wrong}}, {name: %q, user: {token: known}}]}`, h.hook.Listener.Addr()))
	other := startAdmitting(t, Options{Admission: Admission{ConfigFile: config}})
	for who, want := range map[*admitting]string{h: "", other: "Bearer known"} {
		who.must("POST", mutatingWebhooks, h.configuration("Mutating", h.hook.URL, h.ca(), ""), 201)
		who.must("POST", inConfigMaps, configMap("a"), 201)
		h.expect("Authorization", h.last.Load().Header.Get("Authorization"), want)
	}
}
