package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

// A hook allows the requests of one user, and denies those of another.
type hook struct {
	allows, denies string
	asked          atomic.Int64
	file           string // kubeconfig
}

func newHook(t *testing.T, allows, denies string) *hook {
	h := &hook{allows: allows, denies: denies, file: filepath.Join(t.TempDir(), "kubeconfig")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		var in authorizationv1.SubjectAccessReview
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.Spec.User == "trouble" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		out := authorizationv1.SubjectAccessReview{TypeMeta: in.TypeMeta}
		out.Status.Allowed, out.Status.Denied = in.Spec.User == allows, in.Spec.User == denies
		out.Status.Reason = "asked about " + in.Spec.User
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	text := `{"clusters":[{"name":"c","cluster":{"server":"` + server.URL + `"}}],"users":[{"name":"u","user":{}}],
		"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`
	if err := os.WriteFile(h.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// entry returns the configuration of the hook.
func (h *hook) entry(name, policy, rest string) string {
	return fmt.Sprintf(`
- type: Webhook
  name: %s
  webhook:
    authorizedTTL: 5m
    unauthorizedTTL: 30s
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: %s
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    %s`, name, policy, h.file, rest)
}

const (
	header  = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:"
	byRoles = "\n- {type: RBAC, name: rbac}"
)

// roles has no opinion, with a reason.
var roles = authz.AlwaysDeny{}

func (c *Config) chain(t *testing.T, log *bytes.Buffer) *Chain {
	t.Helper()
	s, err := New(c, Options{
		ByType: map[string]authz.Authorizer{RBAC: roles, Node: roles}, Dial: (&net.Dialer{}).DialContext,
		Server: "server", Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// says returns the message for a request of a user.
func (s *Chain) says(t *testing.T, user, verb string) string {
	a := &authz.Attributes{User: &request.User{Name: user}, Info: request.Info{IsResource: true, Verb: verb, Resource: "pods"}}
	if user == "root" {
		a.User.Groups = []string{request.Masters}
	}
	decision, reason, err := s.Authorize(t.Context(), a)
	text := strings.TrimSpace(fmt.Sprint(decision, " ", strings.ReplaceAll(reason, "\n", "; ")))
	if err != nil {
		text += ", but " + err.Error()
	}
	return text
}

// Authorizers are asked in order, and a webhook only if its match conditions hold.
func TestSeveralWebhooks(t *testing.T) {
	first, second := newHook(t, "ann", "bob"), newHook(t, "bob", "ann")
	file := write(t, filepath.Join(t.TempDir(), "a.yaml"), header+
		first.entry("first", "Deny", `matchConditions: [{expression: "request.resourceAttributes.verb != 'list'"}, {expression: "request.user != 'odd' || request.groups[7] == 'x'"}]`)+
		second.entry("second", "NoOpinion", "")+byRoles)
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s := c.chain(t, &bytes.Buffer{})
	for _, tt := range []struct{ user, verb, want string }{
		{"root", "get", "Allow"},
		{"ann", "get", "Allow asked about ann"},
		{"bob", "get", "Deny asked about bob"},
		{"eve", "get", "NoOpinion first: asked about eve; second: asked about eve; rbac: Everything is forbidden."},
		{"ann", "list", "Deny asked about ann"},
		{"bob", "list", "Allow asked about bob"},
		{"trouble", "get", "Deny, but the server could not find"},
		{"trouble", "list", "NoOpinion rbac: Everything is forbidden., but "},
		{"odd", "get", "Deny, but cel evaluation error: expression 'request.user != 'odd' || request.groups[7] == 'x'' resulted in error: index out of bounds: 7"},
		{"odd", "list", "NoOpinion second: asked about odd; rbac: Everything is forbidden."},
	} {
		got := s.says(t, tt.user, tt.verb)
		if tt.user == "trouble" {
			tt.want, _, _ = strings.Cut(tt.want, "the server")
		}
		if got != tt.want && (!strings.Contains(tt.want, ", but") || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s: %s: %s\nwant %s", tt.user, tt.verb, got, tt.want)
		}
	}
	was := first.asked.Load()
	s.says(t, "ann", "get")
	if first.asked.Load() != was {
		t.Error("an answer was not remembered")
	}
}

// Errors in a file have the messages of Kubernetes.
func TestLoadRefuses(t *testing.T) {
	h := newHook(t, "", "")
	good := h.entry("w", "Deny", "")
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "authorizers: Required value: at least one authorization mode must be defined"},
		{"none", header + " []", "authorizers: Required value: at least one authorization mode must be defined"},
		{"no YAML", "{", "failed to load AuthorizationConfiguration from file: "},
		{"another kind", strings.Replace(header, "AuthorizationC", "AuthenticationC", 1) + byRoles, "failed to load AuthorizationConfiguration from file: "},
		{"an unknown field", header + byRoles + "\nother: 1", `unknown field "other"`},
		{"an unknown type", header + "\n- {type: Wish, name: wish}", `authorizers[0].type: Unsupported value: "Wish": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"`},
		{"roles twice", header + byRoles + byRoles, `authorizers[1].type: Duplicate value: "RBAC"`},
		{"roles by another name", header + "\n- {type: RBAC, name: roles}", "expected name rbac for authorizer RBAC instead of roles"},
		{"two of one name", header + good + good, `authorizers[1].name: Duplicate value: "w"`},
		{"a bad name", header + h.entry("W", "Deny", ""), `authorizers[0].name: Invalid value: "W": authorizer name is invalid`},
		{"a webhook without one", header + "\n- {type: Webhook, name: w}", "authorizers[0].webhook: Required value: required when type=Webhook"},
		{"roles with a webhook", header + "\n- {type: RBAC, name: rbac, webhook: {}}", "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook"},
		{"a failure policy", header + h.entry("w", "Allow", ""), `authorizers[0].failurePolicy: Unsupported value: "Allow": supported values: "NoOpinion", "Deny"`},
		{"a timeout", header + strings.Replace(good, "timeout: 3s", "timeout: 31s", 1), `authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s`},
		{"a condition that is no CEL", header + h.entry("w", "Deny", `matchConditions: [{expression: "request."}]`), "authorizers[0].matchConditions[0].expression: Invalid value: \"request.\": compilation failed"},
		{"a condition of another type", header + h.entry("w", "Deny", `matchConditions: [{expression: "request.user"}]`), "must evaluate to bool"},
		{"a condition of a version", header + strings.Replace(h.entry("w", "Deny", `matchConditions: [{expression: "true"}]`), "matchConditionSubjectAccessReviewVersion: v1", "", 1), "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified"},
		{"no file", header + strings.Replace(good, h.file, h.file+"x", 1), "error loading file"},
		{"in a cluster", header + strings.Replace(good, "{type: KubeConfigFile, kubeConfigFile: "+h.file+"}", "{type: InClusterConfig}", 1), "authorizer w has a connection of type InClusterConfig, which only servers in a cluster can make: use type KubeConfigFile"},
	} {
		_, err := Load(write(t, filepath.Join(t.TempDir(), "a.yaml"), tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v\nwant %s", tt.name, err, tt.want)
		}
	}
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		if _, err := Load(write(t, filepath.Join(t.TempDir(), "a.yaml"), strings.Replace(header, "/v1", "/"+version, 1)+good+byRoles)); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// A changed file takes effect when it is reread. An invalid one changes nothing.
func TestReload(t *testing.T) {
	h := newHook(t, "ann", "bob")
	file := write(t, filepath.Join(t.TempDir(), "a.yaml"), header+byRoles)
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := c.chain(t, &log)
	const noOpinion = "NoOpinion rbac: Everything is forbidden."
	if got := s.says(t, "ann", "get"); got != noOpinion {
		t.Error(got)
	}
	gone := newHook(t, "", "")
	for _, tt := range []struct {
		name, text, err string
		final           bool
		says            string
	}{
		{"a webhook", header + h.entry("w", "Deny", "") + byRoles, "", true, "Allow asked about ann"},
		{"the same", header + h.entry("w", "Deny", "") + byRoles + "\n# with a comment", "the configuration is unchanged", true, "Allow asked about ann"},
		{"nothing", "", "at least one authorization mode must be defined", true, "Allow asked about ann"},
		{"without roles", header + h.entry("w", "Deny", ""), "missing required types: [RBAC]", true, "Allow asked about ann"},
		{"with nodes", header + byRoles + "\n- {type: Node, name: node}", "authorizer type Node is not allowed if it was not enabled at initial server startup", true, "Allow asked about ann"},
		{"a kubeconfig that is none", header + byRoles + gone.entry("w", "Deny", ""), "cannot", false, "Allow asked about ann"},
		{"roles", header + byRoles, "", true, noOpinion},
		{"all", header + byRoles + "\n- {type: AlwaysAllow, name: alwaysallow}", "", true, "Allow"},
	} {
		if tt.err == "cannot" {
			write(t, gone.file, "not YAML: [")
		}
		final, err := s.load(t.Context(), []byte(tt.text))
		if (err == nil) != (tt.err == "") || tt.err != "cannot" && err != nil && !strings.Contains(err.Error(), tt.err) || final != tt.final {
			t.Errorf("%s: %v %v, want %v %s", tt.name, final, err, tt.final, tt.err)
		}
		if got := s.says(t, "ann", "get"); got != tt.says {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.says)
		}
	}
}

// Flags are equivalent to a configuration. Errors have the messages of Kubernetes.
func TestFlags(t *testing.T) {
	h := newHook(t, "ann", "bob")
	for _, tt := range []struct {
		name  string
		flags Flags
		err   string
		ann   string
	}{
		{"none", Flags{}, "", "NoOpinion rbac: Everything is forbidden."},
		{"two", Flags{Modes: []string{"Node", "AlwaysAllow"}}, "", "Allow"},
		{"a webhook", Flags{Modes: []string{"Webhook", "RBAC"}, WebhookFile: h.file, WebhookVersion: "v1beta1"}, "", "Allow asked about ann"},
		{"an unknown one", Flags{Modes: []string{"Wish"}}, `authorization-mode "Wish" is not a valid mode`, ""},
		{"policies without a file", Flags{Modes: []string{"ABAC"}}, "authorization-mode ABAC's authorization policy file not passed", ""},
		{"a file without policies", Flags{PolicyFile: "x"}, "cannot specify --authorization-policy-file without mode ABAC", ""},
		{"one twice", Flags{Modes: []string{"RBAC", "RBAC"}}, `authorization-mode ["RBAC" "RBAC"] has mode specified more than once`, ""},
		{"a webhook without a file", Flags{Modes: []string{"Webhook"}}, "authorization-mode Webhook's authorization config file not passed", ""},
		{"a file without a webhook", Flags{Modes: []string{"RBAC"}, WebhookFile: h.file}, "cannot specify --authorization-webhook-config-file without mode Webhook", ""},
		{"another version", Flags{Modes: []string{"Webhook"}, WebhookFile: h.file, WebhookVersion: "v2"}, `unsupported webhook authorizer version "v2", supported versions are "v1", "v1beta1"`, ""},
	} {
		c, err := tt.flags.Config()
		if err != nil || tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if got := c.chain(t, &bytes.Buffer{}).says(t, "ann", "get"); got != tt.ann {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.ann)
		}
	}
	missing := Flags{Modes: []string{"Webhook"}, WebhookFile: h.file + "x", WebhookVersion: "v1"}
	c, err := missing.Config()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(c, Options{Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a file that is not there is a webhook")
	}
}

// An answer that is not cached is requested again.
func TestCacheFlags(t *testing.T) {
	for rest, want := range map[string]int64{"": 2, "cacheAuthorizedRequests: false": 3, "cacheUnauthorizedRequests: false": 3, "cacheAuthorizedRequests: false\n    cacheUnauthorizedRequests: false": 4} {
		h := newHook(t, "ann", "bob")
		c, err := Load(write(t, filepath.Join(t.TempDir(), "a.yaml"), header+h.entry("w", "Deny", rest)))
		if err != nil {
			t.Fatal(err)
		}
		s := c.chain(t, &bytes.Buffer{})
		for range 2 {
			s.says(t, "ann", "get")
			s.says(t, "bob", "get")
		}
		if got := h.asked.Load(); got != want {
			t.Errorf("%q: asked %d times, want %d", rest, got, want)
		}
	}
}

// Metrics have the names of Kubernetes.
func TestMetrics(t *testing.T) {
	h := newHook(t, "ann", "bob")
	c, err := Load(write(t, filepath.Join(t.TempDir(), "a.yaml"), header+
		h.entry("w", "NoOpinion", `matchConditions: [{expression: "request.user != 'odd' || request.groups[7] == 'x'"}, {expression: "request.user != 'eve'"}]`)))
	if err != nil {
		t.Fatal(err)
	}
	s := c.chain(t, &bytes.Buffer{})
	for _, user := range []string{"ann", "bob", "eve", "odd", "trouble"} {
		s.says(t, user, "get")
	}
	s.config.Reloads.WithLabelValues("failure", "x").Inc()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			text := family.GetName()
			for _, label := range metric.GetLabel() {
				if label.GetName() != "apiserver_id_hash" && label.GetName() != "hash" {
					text += " " + label.GetValue()
				}
			}
			if c := metric.GetCounter(); c != nil {
				text += fmt.Sprint(" ", c.GetValue())
			}
			got[strings.TrimPrefix(text, "apiserver_authorization_")] = true
		}
	}
	for _, want := range []string{
		"decisions_total allowed w Webhook 1", "decisions_total denied w Webhook 1",
		"webhook_evaluations_total w success 2", "webhook_evaluations_total w error 1", "webhook_duration_seconds w success",
		"webhook_evaluations_fail_open_total w error 1", "match_condition_exclusions_total w Webhook 1",
		"match_condition_evaluation_errors_total w Webhook 1", "match_condition_evaluation_seconds w Webhook",
		"config_controller_automatic_reloads_total failure 1", "config_controller_last_config_info",
	} {
		if !got[want] {
			t.Errorf("there is no %q in %v", want, got)
		}
	}
}

// The timeout of a webhook limits each call.
func TestTimeout(t *testing.T) {
	h := newHook(t, "", "")
	quiet, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	write(t, h.file, `{"clusters":[{"name":"c","cluster":{"server":"http://`+quiet.Addr().String()+`"}}],"users":[{"name":"u","user":{}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`)
	c, err := Load(write(t, filepath.Join(t.TempDir(), "a.yaml"), header+strings.Replace(h.entry("w", "Deny", ""), "timeout: 3s", "timeout: 50ms", 1)))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if got := c.chain(t, &bytes.Buffer{}).says(t, "ann", "get"); !strings.HasPrefix(got, "Deny, but Post") || time.Since(begun) > 20*time.Second {
		t.Error(got)
	}
}
