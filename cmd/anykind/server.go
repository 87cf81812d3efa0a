package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// serverFlags say which server is asked, and by whom. They are those of kubectl, and mean the same.
type serverFlags struct {
	options kubeconfig.Options
	file    string
	extra   []string
	timeout string
}

func (f *serverFlags) add(flags *pflag.FlagSet) {
	o := &f.options
	flags.StringVar(&f.file, "kubeconfig", "", "file that says where the server is and who you are (default: KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&o.Context, "context", "", "context of the kubeconfig, if not the current one")
	flags.StringVar(&o.Cluster, "cluster", "", "cluster of the kubeconfig, in place of the one of the context")
	flags.StringVar(&o.User, "user", "", "user of the kubeconfig, in place of the one of the context")
	flags.StringVarP(&o.Server, "server", "s", "", "URL of the server")
	flags.StringVar(&o.CAFile, "certificate-authority", "", "file with the authority of the server's certificate, PEM")
	flags.StringVar(&o.TLSServerName, "tls-server-name", "", "name that is in the server's certificate, if not the one in its URL")
	flags.BoolVar(&o.Insecure, "insecure-skip-tls-verify", false, "believe any certificate")
	flags.StringVar(&o.Token, "token", "", "bearer token")
	flags.StringVar(&o.CertificateFile, "client-certificate", "", "file with your certificate, PEM")
	flags.StringVar(&o.KeyFile, "client-key", "", "file with the key of your certificate, PEM")
	flags.StringVar(&o.As, "as", "", "user as whom you ask, if you may")
	flags.StringVar(&o.AsUID, "as-uid", "", "uid of --as")
	flags.StringArrayVar(&o.AsGroups, "as-group", nil, "group of --as; may be given several times")
	flags.StringArrayVar(&f.extra, "as-user-extra", nil, "extra field of --as, as KEY=VALUE; may be given several times")
	flags.StringVar(&o.Proxy, "proxy-url", "", "URL of a proxy to the server")
	flags.BoolVar(&o.DisableCompression, "disable-compression", false, "ask for answers that are not compressed")
	flags.StringVar(&f.timeout, "request-timeout", "0", "how long a request may take at most, such as 30s or 2m; 0 is any time")
}

// withoutBareServer leaves out --server where no URL follows it. Alone it says that a server has the
// objects, which is so without it.
func withoutBareServer(args []string) []string {
	var out []string
	for i, arg := range args {
		if arg == "--server" && (i+1 == len(args) || strings.HasPrefix(args[i+1], "-")) {
			continue
		}
		out = append(out, arg)
	}
	return out
}

// find returns the server, and who asks it.
func (f *serverFlags) find() (*kubeconfig.Config, error) {
	o := f.options
	if f.file != "" {
		o.Files = []string{f.file}
	}
	var err error
	if o.Timeout, err = kubeconfig.ParseTimeout(f.timeout); err != nil {
		return nil, usageError{fmt.Errorf("--request-timeout: %w", err)}
	}
	for _, e := range f.extra {
		key, value, ok := strings.Cut(e, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--as-user-extra is %q; want KEY=VALUE", e)}
		}
		if o.AsExtra == nil {
			o.AsExtra = map[string][]string{}
		}
		o.AsExtra[key] = append(o.AsExtra[key], value)
	}
	return kubeconfig.Find(o)
}
