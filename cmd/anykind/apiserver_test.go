package main

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/object/kubernetes"
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

// Suites read the help of kube-apiserver to find its flags.
func TestHelpAsKubeAPIServer(t *testing.T) {
	said, code := under(t, "kube-apiserver", "--help")
	if code != 0 || strings.Contains(said, "--insecure-port") || !strings.Contains(said, "--etcd-servers") {
		t.Errorf("%d: %s", code, said)
	}
	for _, none := range []string{"--data-dir", "--in-memory", "--controllers", "--kubeconfig "} {
		if strings.Contains(said, none) {
			t.Errorf("it has %s, which kube-apiserver does not have", none)
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
		{"--etcd-servers=http://127.0.0.1:1 --encryption-provider-config=f", `kube-apiserver: error reading encryption provider configuration file "f": open f: no such file or directory`},
		{"--etcd-servers=http://127.0.0.1:1 --etcd-servers-overrides=/events", "kube-apiserver: --etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated"},
		{"--etcd-servers=http://127.0.0.1:1 --strict-transport-security-directives=max-age=1,forever", "kube-apiserver: " + flags.ErrNoDirective.Error()},
		{"--version", "Kubernetes " + kubernetes.Version + "+anykind"},
		{"--version=raw", "Kubernetes " + kubernetes.Version + "+anykind"},
		{"--version=" + kubernetes.Version + "-custom --version", "Kubernetes " + kubernetes.Version + "-custom"},
		{"--version=v1.36.0", `kube-apiserver: invalid argument "v1.36.0" for "--version" flag: version "v1.36.0" must match major/minor/patch of default version "` + kubernetes.Version + `+anykind"`},
	} {
		if said, _ := under(t, "kube-apiserver", strings.Fields(test.args)...); strings.TrimSpace(said) != test.want {
			t.Errorf("%s: %s, want %s", test.args, said, test.want)
		}
	}
}

func TestAsEtcd(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"--version", "etcd Version: 3.7.0"},
		{"--listen-client-urls=https://127.0.0.1:0", `etcd: --listen-client-urls: "https://127.0.0.1:0": want a URL such as http://127.0.0.1:2379, without TLS: this program stores nothing`},
	} {
		if said, _ := under(t, "etcd", strings.Fields(test.args)...); strings.TrimSpace(said) != test.want {
			t.Errorf("%s: %s, want %s", test.args, said, test.want)
		}
	}
}
