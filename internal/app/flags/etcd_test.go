package flags

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A server that ignored the flag would not find the objects in the other etcd.
func TestOverridesAreRefused(t *testing.T) {
	const apart = "would not find "
	for _, test := range []struct{ value, want string }{
		{"", ""},
		{"/events#http://127.0.0.1:4002", apart + "events at http://127.0.0.1:4002; leave the flag out"},
		{"apps/deployments#https://a:1;https://b:1,/pods#http://c:1", apart + "deployments.apps at https://a:1, https://b:1; pods at http://c:1; leave the flag out"},
		{"apps/*#http://a:1", apart + "*.apps at http://a:1; leave the flag out"},
		{"events#http://127.0.0.1:4002", errOverrides.Error()},
		{"a/b/c#http://a:1", errOverrides.Error()},
		{"/events", errOverrides.Error()},
		{"/events#", errOverrides.Error()},
		{"/events#http://a:1;", errOverrides.Error()},
		{"/events#http://a:1#http://b:1", errOverrides.Error()},
		{"/events#http://a:1,", errOverrides.Error()},
	} {
		args := []string{"--etcd-servers=http://a:1", "--etcd-servers-overrides=" + test.value}
		for name, said := range map[string]error{"serve": asServe(t, args), "kube-apiserver": asAPIServer(t, args)} {
			got := ""
			if said != nil {
				got = said.Error()
			}
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%s with %q: %q, want %q", name, test.value, got, test.want)
			}
		}
	}
}

// asServe and asAPIServer return the error of flags.
func asServe(t *testing.T, args []string) error {
	var f Serve
	parse(t, f.Add, args)
	_, err := f.Options(slog.New(slog.DiscardHandler))
	return err
}

func asAPIServer(t *testing.T, args []string) error {
	var f APIServer
	parse(t, f.Add, args)
	_, err := f.Options(slog.New(slog.DiscardHandler), "")
	return err
}

func parse(t *testing.T, add func(*pflag.FlagSet), args []string) {
	t.Helper()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
}
