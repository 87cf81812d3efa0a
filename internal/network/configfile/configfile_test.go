package configfile

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/apis/apiserver"
)

// counts returns the number of successful and failed loads.
func counts(t *testing.T, m *Metrics) (success, failure float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "apiserver_authorization_config_controller_automatic_reloads_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				switch label.GetValue() {
				case "success":
					success = metric.GetCounter().GetValue()
				case "failure":
					failure = metric.GetCounter().GetValue()
				}
			}
		}
	}
	return success, failure
}

// A file is loaded when it changes. A load that may succeed later is retried once a minute; one
// that cannot is not; an equivalent content is not counted.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads []string
		f := &File{Path: filepath.Join(t.TempDir(), "f"), Of: "authorization", Data: []byte("a"), Metrics: NewMetrics("authorization", "x"), Log: slog.New(slog.DiscardHandler)}
		f.Load = func(_ context.Context, data []byte) (bool, error) {
			loads = append(loads, string(data))
			switch string(data) {
			case "never":
				return true, errors.New("bad")
			case "perhaps":
				return false, errors.New("not yet")
			case "same":
				return true, ErrSame
			}
			return true, nil
		}
		write := func(text string) {
			if err := os.WriteFile(f.Path+".new", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(f.Path+".new", f.Path); err != nil {
				t.Fatal(err)
			}
		}
		write("a")
		go f.Follow(t.Context())
		for _, tt := range []struct {
			text             string
			loads            int
			success, failure float64
		}{
			{"a", 0, 0, 0},
			{"b", 1, 1, 0},
			{"never", 1, 1, 1},
			{"b", 1, 2, 1},
			{"perhaps", 3, 2, 4},
			{"same", 1, 2, 4},
			{"c", 1, 3, 4},
		} {
			loads = nil
			write(tt.text)
			time.Sleep(2*RetryAfter + 10*LookAgain)
			synctest.Wait()
			success, failure := counts(t, f.Metrics)
			if len(loads) != tt.loads || success != tt.success || failure != tt.failure {
				t.Errorf("%s: loaded %q, %v times and %v in vain; want %d, %v and %v", tt.text, loads, success, failure, tt.loads, tt.success, tt.failure)
			}
		}
	})
}

// A configuration must be of the expected kind, without unknown fields.
func TestDecode(t *testing.T) {
	const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"
	for text, want := range map[string]string{
		header + "authorizers: [{type: RBAC, name: rbac}]":                            "",
		header + "authorizer: []":                                                     `strict decoding error: unknown field "authorizer"`,
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n": "expected AuthorizationConfiguration, got *apiserver.AuthenticationConfiguration",
	} {
		c, err := Decode[*apiserver.AuthorizationConfiguration]([]byte(text), "AuthorizationConfiguration")
		if err == nil && (want != "" || len(c.Authorizers) != 1) || err != nil && err.Error() != want {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
}
