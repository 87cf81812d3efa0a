package main

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// under calls the program under another name, and returns all that it says.
func under(t *testing.T, name string, args ...string) (said string, code int) {
	t.Helper()
	cmd, _ := command(t, args...)
	cmd.Args[0] = name
	cmd.Stderr = nil
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// Who starts a kube-apiserver reads its help to see which flags it has.
func TestHelpAsKubeAPIServer(t *testing.T) {
	said, code := under(t, "kube-apiserver", "--help")
	if code != 0 || strings.Contains(said, "--insecure-port") || !strings.Contains(said, "--etcd-servers") {
		t.Errorf("%d: %s", code, said)
	}
	for _, none := range []string{"--data-dir", "--in-memory", "--controllers", "--kubeconfig "} {
		if strings.Contains(said, none) {
			t.Errorf("it has %s, which kube-apiserver has not", none)
		}
	}
}

func TestFlagsAsKubeAPIServer(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", "kube-apiserver: --etcd-servers must be specified"},
		{"--nonsense", "kube-apiserver: unknown flag: --nonsense"},
		{"--insecure-port=0", "kube-apiserver: unknown flag: --insecure-port"},
		{"--watch-cache=maybe", `kube-apiserver: invalid argument "maybe" for "--watch-cache" flag: strconv.ParseBool: parsing "maybe": invalid syntax`},
		{"--feature-gates=Nonsense=true", `kube-apiserver: invalid argument "Nonsense=true" for "--feature-gates" flag: unrecognized feature gate: Nonsense`},
		{"--feature-gates=AllAlpha=perhaps", `kube-apiserver: invalid argument "AllAlpha=perhaps" for "--feature-gates" flag: invalid value of AllAlpha=perhaps, err: strconv.ParseBool: parsing "perhaps": invalid syntax`},
		{"--etcd-servers=http://127.0.0.1:1 --encryption-provider-config=f", "kube-apiserver: --encryption-provider-config: anykind does not do this yet; leave it out"},
		{"--etcd-servers=http://127.0.0.1:1 --strict-transport-security-directives=max-age=1,forever", "kube-apiserver: " + errNoDirective.Error()},
		{"--version", "Kubernetes v1.37.1+anykind"},
		{"--version=raw", "Kubernetes v1.37.1+anykind"},
		{"--version=v1.37.1-custom --version", "Kubernetes v1.37.1-custom"},
		{"--version=v1.36.0", `kube-apiserver: invalid argument "v1.36.0" for "--version" flag: version "v1.36.0" must match major/minor/patch of default version "v1.37.1+anykind"`},
	} {
		if said, _ := under(t, "kube-apiserver", strings.Fields(test.args)...); strings.TrimSpace(said) != test.want {
			t.Errorf("%s: %s, want %s", test.args, said, test.want)
		}
	}
}

// What is accepted without effect is named, and what is as it is anyway is not.
func TestTakenFlags(t *testing.T) {
	var taken takenFlags
	var gates kubernetesGates
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	taken.add(flags)
	flags.Var(&gates, "feature-gates", "")
	err := flags.Parse([]string{
		"--audit-log-path=-", "--enable-priority-and-fairness=false", "--max-requests-inflight=0",
		"--feature-gates=kube:WatchList=true,CBORServingAndStorage=true", "--feature-gates", "AllAlpha=true",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := taken.given(), []string{"audit-log-path", "enable-priority-and-fairness", "max-requests-inflight"}; !slices.Equal(got, want) {
		t.Errorf("given: %v, want %v", got, want)
	}
	if !slices.Equal(gates.unchanged, []string{"AllAlpha"}) || !gates.offer.CBOR {
		t.Errorf("gates: %v", gates)
	}
}

// A certificate is made where there is none, and used where there is one.
func TestCertDir(t *testing.T) {
	f := apiServerFlags{certDir: filepath.Join(t.TempDir(), "certs")}
	f.bindAddress = net.IPv4(127, 0, 0, 1)
	read := func() string {
		t.Helper()
		f.certFile, f.keyFile = "", ""
		if err := f.certificate(); err != nil {
			t.Fatal(err)
		}
		if _, err := tls.LoadX509KeyPair(f.certFile, f.keyFile); err != nil {
			t.Fatal(err)
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

func TestAsEtcd(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"--version", "etcd Version: 3.7.0"},
		{"--listen-client-urls=https://127.0.0.1:0", `etcd: --listen-client-urls: "https://127.0.0.1:0": want a URL such as http://127.0.0.1:2379; there is no TLS here, because there is nothing behind it`},
	} {
		if said, _ := under(t, "etcd", strings.Fields(test.args)...); strings.TrimSpace(said) != test.want {
			t.Errorf("%s: %s, want %s", test.args, said, test.want)
		}
	}
}

// How long a watch lasts is what kube-apiserver's flag says, in seconds.
func TestMinRequestTimeout(t *testing.T) {
	for given, want := range map[string]time.Duration{"": 30 * time.Minute, "--min-request-timeout=7": 7 * time.Second, "--min-request-timeout=0": endless} {
		var f apiServerFlags
		cmd := &cobra.Command{}
		f.add(cmd)
		if err := cmd.Flags().Parse(strings.Fields(given)); err != nil {
			t.Fatal(err)
		}
		o := f.options(slog.New(slog.DiscardHandler))
		if o.MinWatch != want {
			t.Errorf("%q: %v, want %v", given, o.MinWatch, want)
		}
		if o.Kubeconfig != "" {
			t.Errorf("%q: %s is left behind", given, o.Kubeconfig)
		}
	}
}
