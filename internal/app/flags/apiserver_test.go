package flags

import (
	"crypto/rsa"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/leaderelection"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/server"
)

// The warning lists flags without effect, but not those whose value is the fixed behaviour.
func TestTakenFlags(t *testing.T) {
	var taken takenFlags
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	taken.add(flags)
	err := flags.Parse([]string{
		"--vmodule=a=1", "--watch-cache=false", "--watch-cache-sizes=a#0",
		"--apiserver-count=1",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := taken.given(), []string{"apiserver-count", "vmodule", "watch-cache", "watch-cache-sizes"}; !slices.Equal(got, want) {
		t.Errorf("given: %v, want %v", got, want)
	}
}

// The log names changed gates that do not change this server.
func TestIdleGates(t *testing.T) {
	var f APIServer
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Add(flags)
	if err := flags.Parse([]string{"--feature-gates=QOSReserved=true,kube:CBORServingAndStorage=true,WatchListClient=true"}); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	o, err := f.Options(slog.New(slog.NewTextHandler(&log, nil)), "")
	if err != nil || !o.Gates.On(gate.CBORServingAndStorage) {
		t.Fatalf("%v, %v", o.Gates.Changed(), err)
	}
	if want := `why="a gate of kubelets" gates=[QOSReserved]`; !strings.Contains(log.String(), want) || strings.Count(log.String(), "feature gates") != 1 {
		t.Errorf("log: %s", log.String())
	}
}

// Options write no file that kube-apiserver does not write.
func TestNoFiles(t *testing.T) {
	var f APIServer
	f.Add(pflag.NewFlagSet("", pflag.ContinueOnError))
	o, err := f.Options(slog.New(slog.DiscardHandler), "")
	if err != nil || o.Dir != "" || o.Kubeconfig != "" {
		t.Errorf("%q, %q, %v", o.Dir, o.Kubeconfig, err)
	}
}

// A missing serving certificate is generated, and an existing one is used.
func TestCertDir(t *testing.T) {
	f := APIServer{certDir: filepath.Join(t.TempDir(), "certs")}
	f.bindAddress = net.IPv4(127, 0, 0, 1)
	read := func() string {
		t.Helper()
		f.certFile, f.keyFile = "", ""
		if err := f.certificate(); err != nil {
			t.Fatal(err)
		}
		pair, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := pair.PrivateKey.(*rsa.PrivateKey); !ok {
			t.Errorf("the key is %T: clients that accept RSA only cannot connect", pair.PrivateKey)
		}
		data, err := os.ReadFile(f.certFile)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if first := read(); first != read() {
		t.Error("another certificate was made")
	}
}

// --min-request-timeout sets the minimum timeout of a watch in seconds, as in kube-apiserver. No
// file is written to the working directory: test suites start the program among their own files.
func TestOptionsAsKubeAPIServer(t *testing.T) {
	for given, want := range map[string]time.Duration{"": 30 * time.Minute, "--min-request-timeout=7": 7 * time.Second, "--min-request-timeout=0": endless} {
		var f APIServer
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Add(flags)
		if err := flags.Parse(strings.Fields(given)); err != nil {
			t.Fatal(err)
		}
		o, err := f.Options(slog.New(slog.DiscardHandler), "")
		for name, want := range map[string]string{
			"secure-port": "6443", "watch-cache": "true", "event-ttl": "1h0m0s", "watch-cache-sizes": "[events#0,events.events.k8s.io#0]", "audit-log-path": "",
		} {
			if got := o.FlagValues[name]; got != want {
				t.Errorf("--%s is %q, want %q", name, got, want)
			}
		}
		if err != nil || o.MinWatch != want {
			t.Errorf("%q: %v, %v, want %v", given, o.MinWatch, err, want)
		}
		if o.Kubeconfig != "" {
			t.Errorf("%q: %s is left behind", given, o.Kubeconfig)
		}
	}
}

// The flags of the Lease by which a server elects leaders have the defaults and the errors of kube-apiserver.
func TestLeaderFlags(t *testing.T) {
	for given, want := range map[string]any{
		"": leaderelection.Term(),
		"--coordinated-leadership-lease-duration=5s --coordinated-leadership-renew-deadline=3s --coordinated-leadership-retry-period=1s": controller.Term{
			Lease: leaderelection.Name, Duration: 5 * time.Second, Deadline: 3 * time.Second, Period: time.Second},
		"--coordinated-leadership-lease-duration=10s": "--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline",
		"--coordinated-leadership-retry-period=10s":   "--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period",
		"--coordinated-leadership-retry-period=0s":    "--coordinated-leadership-retry-period must be greater than zero",
		"--coordinated-leadership-retry-period=9s":    "--coordinated-leadership-renew-deadline must be greater than 1.2 times --coordinated-leadership-retry-period",
	} {
		o, err := parseServe(t, given)
		var got any = o.LeaderElection
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %v, want %v", given, got, want)
		}
	}
}

// Limits are those of kube-apiserver's flags. The values of kwokctl --disable-qps-limits disable
// them.
func TestLimitFlags(t *testing.T) {
	none := server.Limits{Reading: server.Unlimited, Writing: server.Unlimited}
	for given, want := range map[string]any{
		"": server.Limits{Reading: 400, Writing: 200},
		"--max-requests-inflight=0 --max-mutating-requests-inflight=0 --enable-priority-and-fairness=false": none,
		"--max-requests-inflight=7 --max-mutating-requests-inflight=0":                                      server.Limits{Reading: 7, Writing: server.Unlimited},
		"--max-requests-inflight=0 --max-mutating-requests-inflight=0":                                      "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to something positive",
		"--max-mutating-requests-inflight=-1":                                                               "--max-mutating-requests-inflight can not be negative value",
	} {
		o, err := parseServe(t, given)
		var got any = o.Limits
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %v, want %v", given, got, want)
		}
	}
}

// Allowed label values come from a flag or from a file.
func TestMetricFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "labels.yaml")
	if err := os.WriteFile(file, []byte("m,a: x,y\nm,b: \"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string][]string{"m": {"a": {"x", "y"}, "b": {""}}}
	tests := []struct {
		given []string
		want  string
	}{
		{[]string{`--allow-metric-labels="m,a=x,y","m,b="`}, ""},
		{[]string{"--allow-metric-labels=m,a=x,y", `--allow-metric-labels=m,b=`}, ""},
		{[]string{"--allow-metric-labels-manifest=" + file}, ""},
		{[]string{"--allow-metric-labels=m,a=x", "--allow-metric-labels-manifest=" + file}, "--allow-metric-labels and --allow-metric-labels-manifest cannot both be given"},
		{[]string{"--allow-metric-labels=m=x"}, `allowed values of metric labels: "m": want METRIC,LABEL`},
		{[]string{"--allow-metric-labels-manifest=/nosuch"}, "--allow-metric-labels-manifest: open /nosuch: no such file or directory"},
	}
	for _, test := range tests {
		var f metricFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.add(flags)
		if err := flags.Parse(test.given); err != nil {
			t.Fatal(err)
		}
		o, err := f.options()
		switch {
		case test.want != "" && (err == nil || err.Error() != test.want):
			t.Errorf("%s: %v, want %s", test.given, err, test.want)
		case test.want == "" && (err != nil || !reflect.DeepEqual(o.Allowed, want)):
			t.Errorf("%s: %v, %v", test.given, o.Allowed, err)
		}
	}
}

// The default authorization mode is AlwaysAllow.
func TestModeAsKubeAPIServer(t *testing.T) {
	for given, want := range map[string]string{"": "AlwaysAllow", "--authorization-mode=": "AlwaysAllow", "--authorization-mode=Node,RBAC": "Node,RBAC"} {
		var f APIServer
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Add(flags)
		if err := flags.Parse(strings.Fields(given)); err != nil {
			t.Fatal(err)
		}
		o, err := f.Options(slog.New(slog.DiscardHandler), "")
		if got := strings.Join(o.Authorization.Modes, ","); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", given, got, err, want)
		}
	}
}
