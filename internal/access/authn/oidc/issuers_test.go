package oidc

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/network/configfile"
	"github.com/anykind/anykind/internal/object/gate"
)

// followed is a configuration file that the issuers follow.
type followed struct {
	t    *testing.T
	file string
	n    *network
	s    *Issuers
	log  bytes.Buffer
}

// follow starts issuers with a configuration file, in a synctest bubble.
func follow(t *testing.T, text string) *followed {
	t.Helper()
	f := &followed{t: t, file: filepath.Join(t.TempDir(), "authentication.yaml"), n: newNetwork()}
	f.write(text)
	for _, host := range []string{"a", "b"} {
		f.n.newProvider(host, "one")
	}
	c, err := Load(f.file, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := f.n.options()
	o.Log = slog.New(slog.NewTextHandler(&f.log, nil))
	if f.s, err = New(t.Context(), c, o); err != nil {
		t.Fatal(err)
	}
	go f.s.Follow(t.Context())
	f.awaitReload()
	return f
}

func (f *followed) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.file+".new", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.file+".new", f.file); err != nil { // never half written
		f.t.Fatal(err)
	}
}

// awaitReload waits until a change of the file is detected.
func (f *followed) awaitReload() {
	time.Sleep(configfile.LookAgain)
	synctest.Wait()
}

// knows checks which issuers are accepted.
func (f *followed) knows(want string) {
	f.t.Helper()
	got := ""
	for _, host := range []string{"a", "b"} {
		token := sign(f.t, jose.RS256, keys()["one"], "one", claimsWith(map[string]any{"iss": "https://" + host}))
		if _, ok, _ := f.s.AuthenticateToken(f.t.Context(), token, nil); ok {
			got += host
		}
	}
	if got != want {
		f.t.Errorf("tokens of %q count, want %q; log:\n%s", got, want, &f.log)
	}
}

// reloads checks the numbers of successful and failed reloads.
func (f *followed) reloads(success, failure float64) {
	f.t.Helper()
	m := f.s.options.Metrics
	count := func(status string) float64 {
		total := 0.0
		for _, metric := range gather(f.t, m.config.Reloads) {
			if strings.Contains(metric, `value:"`+status+`"`) {
				_, text, _ := strings.Cut(metric, "counter:{value:")
				text, _, _ = strings.Cut(text, " ")
				value, err := strconv.ParseFloat(strings.TrimSuffix(text, "}"), 64)
				if err != nil {
					f.t.Fatal(metric, err)
				}
				total += value
			}
		}
		return total
	}
	if count("success") != success || count("failure") != failure {
		f.t.Errorf("%v reloads, %v in vain; want %v and %v; log:\n%s", count("success"), count("failure"), success, failure, &f.log)
	}
}

// gather returns the metrics of a collector as text.
func gather(t *testing.T, c prometheus.Collector) (out []string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			// The text format separates fields with one or two spaces at random.
			out = append(out, strings.Join(strings.Fields(metric.String()), " "))
		}
	}
	return out
}

// A changed file takes effect within a second. An invalid one changes nothing and is logged once.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, configText(simple("https://a")))
		f.knows("a")
		f.reloads(0, 0)
		f.write(configText(simple("https://b"), simple("https://a")))
		f.awaitReload()
		f.knows("ab")
		f.reloads(1, 0)
		f.write(configText(simple("https://b")))
		f.awaitReload()
		f.knows("b")
		f.reloads(2, 0)
		for n, bad := range []string{"", "jwt: [", configText(simple("http://a")), configText(simple("https://a")) + "anonymous: {enabled: true}\n",
			configText(simple("https://a")) + "unknown: 1\n", strings.Replace(configText(), "Authentication", "Authorization", 1)} {
			f.write(bad)
			f.awaitReload()
			f.knows("b")
			time.Sleep(2 * configfile.RetryAfter)
			synctest.Wait()
			f.knows("b")
			f.reloads(2, float64(n+1))
		}
		f.write(configText(simple("https://b")))
		f.awaitReload()
		f.knows("b")
		if got := len(gather(t, f.s.options.Metrics.config.InForce)); got != 1 {
			t.Errorf("%d configurations are in force", got)
		}
		for _, want := range []string{"empty config data", `jwt[0].issuer.url: Invalid value: \"http://a\": URL scheme must be https`,
			"anonymous: Forbidden: changed from initial configuration file", `unknown field \"unknown\"`} {
			if !strings.Contains(f.log.String(), want) {
				t.Errorf("the log does not say %s:\n%s", want, &f.log)
			}
		}
	})
}

// An unreadable file is logged once a minute, and loaded as soon as it is readable.
func TestReloadUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, configText(simple("https://a")))
		if err := os.Remove(f.file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Minute + 30*time.Second)
		synctest.Wait()
		f.knows("a")
		f.reloads(0, 3)
		f.write(configText(simple("https://b")))
		f.awaitReload()
		f.knows("b")
		f.reloads(1, 3)
	})
}

// A new issuer replaces the old ones only after its discovery.
func TestReloadWaitsForIssuers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, configText(simple("https://a")))
		f.n.serve("b", nil)
		f.write(configText(simple("https://b")))
		f.awaitReload()
		f.knows("a")
		f.reloads(0, 0)
		time.Sleep(readyWithin)
		synctest.Wait()
		f.knows("a")
		f.reloads(0, 1)
		if want := `oidc: authenticator for issuer \"https://b\" is not healthy: Get \"https://b/.well-known/openid-configuration\": no server at b`; !strings.Contains(strings.ReplaceAll(f.log.String(), `\\\"`, `\"`), want) {
			t.Errorf("the log does not say %s:\n%s", want, &f.log)
		}
		f.n.newProvider("b", "one")
		time.Sleep(configfile.RetryAfter + discoverAgain)
		synctest.Wait()
		f.knows("b")
		f.reloads(1, 1)
	})
}

// Replaced issuers and their metrics are dropped a minute later.
func TestOldIssuersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, configText(simple("https://a")))
		f.knows("a")
		old := f.s.current.Load().issuers["https://a"]
		f.write(configText(simple("https://b")))
		f.awaitReload()
		f.knows("b")
		if old.ctx.Err() != nil {
			t.Error("old issuers ended at once")
		}
		m := f.s.options.Metrics
		if got := len(gather(t, m.keySet)); got != 2 {
			t.Errorf("the keys of %d issuers are known", got)
		}
		time.Sleep(linger)
		synctest.Wait()
		if old.ctx.Err() == nil || len(gather(t, m.keySet)) != 1 || len(gather(t, m.fetched)) != 1 {
			t.Errorf("old issuers stay: %v, the keys of %d are known", old.ctx.Err(), len(gather(t, m.keySet)))
		}
	})
}

// Without the gate StructuredAuthenticationConfigurationJWKSMetrics, the fetches of keys are not recorded.
func TestMetricsOfKeysNeedTheirGate(t *testing.T) {
	for _, on := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			n.newProvider("a", "one")
			o := n.options()
			o.Gates = gate.With(map[gate.Name]bool{gate.StructuredAuthenticationConfigurationJWKSMetrics: on})
			s, err := New(t.Context(), config(t, simple("https://a")), o)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, ok, err := s.AuthenticateToken(t.Context(), sign(t, jose.RS256, keys()["one"], "one", claimsWith(map[string]any{"iss": "https://a"})), nil); !ok {
				t.Fatal(err)
			}
			want := map[bool]int{true: 1}[on]
			if got := []int{len(gather(t, o.Metrics.fetched)), len(gather(t, o.Metrics.keySet)), len(gather(t, o.Metrics.latency))}; !slices.Equal(got, []int{want, want, 1}) {
				t.Errorf("%t: there are %d metrics", on, got)
			}
		})
	}
}

// Metrics have the names of Kubernetes and contain no URL.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, configText(simple("https://a")))
		f.knows("a")
		f.write("{")
		f.awaitReload()
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(f.s.options.Metrics.Collectors()...)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, family := range families {
			got[strings.TrimPrefix(family.GetName(), "apiserver_authentication_")] = true
			if strings.Contains(family.String(), "https://") {
				t.Errorf("%s says a URL", family)
			}
		}
		for _, want := range []string{"jwt_authenticator_latency_seconds", "jwt_authenticator_jwks_fetch_last_timestamp_seconds",
			"jwt_authenticator_jwks_fetch_last_key_set_info", "config_controller_automatic_reloads_total",
			"config_controller_automatic_reload_last_timestamp_seconds", "config_controller_last_config_info"} {
			if !got[want] {
				t.Errorf("there is no %s in %v", want, got)
			}
		}
	})
}
