package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// serverFlags select a server and the credentials for it. They have the names and meanings of kubectl.
type serverFlags struct {
	options kubeconfig.Options
	file    string
	extra   []string
	timeout string
}

// add adds the flags, as a section of help.
func (f *serverFlags) add(to *pflag.FlagSet) { flags.AddSection(to, "Server", f.addAll) }

func (f *serverFlags) addAll(flags *pflag.FlagSet) {
	o := &f.options
	flags.StringVar(&f.file, "kubeconfig", "", "kubeconfig file (default: KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&o.Context, "context", "", "context of the kubeconfig (default: the current one)")
	flags.StringVar(&o.Cluster, "cluster", "", "cluster of the kubeconfig (default: that of the context)")
	flags.StringVar(&o.User, "user", "", "user of the kubeconfig (default: that of the context)")
	flags.StringVarP(&o.Server, "server", "s", "", "URL of the server")
	flags.StringVar(&o.CAFile, "certificate-authority", "", "PEM bundle of CAs for the certificate of the server")
	flags.StringVar(&o.TLSServerName, "tls-server-name", "", "name to verify in the certificate of the server (default: the host of its URL)")
	flags.BoolVar(&o.Insecure, "insecure-skip-tls-verify", false, "skip verification of the certificate of the server")
	flags.StringVar(&o.Token, "token", "", "bearer token")
	flags.StringVar(&o.CertificateFile, "client-certificate", "", "PEM file with the client certificate")
	flags.StringVar(&o.KeyFile, "client-key", "", "PEM file with the private key of the client certificate")
	flags.StringVar(&o.As, "as", "", "user to impersonate")
	flags.StringVar(&o.AsUID, "as-uid", "", "uid to impersonate")
	flags.StringArrayVar(&o.AsGroups, "as-group", nil, "group to impersonate; repeatable")
	flags.StringArrayVar(&f.extra, "as-user-extra", nil, "extra field to impersonate, KEY=VALUE; repeatable")
	flags.StringVar(&o.Proxy, "proxy-url", "", "URL of a proxy for connections to the server")
	flags.BoolVar(&o.DisableCompression, "disable-compression", false, "request uncompressed responses")
	flags.StringVar(&f.timeout, "request-timeout", "0", "timeout of a request, such as 30s or 2m; 0 for no timeout")
}

// withoutBareServer drops --server without a URL: a server is the default source of objects.
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

// chosen returns the options of the flags.
func (f *serverFlags) chosen() (o kubeconfig.Options, err error) {
	o = f.options
	if f.file != "" {
		o.Files = []string{f.file}
	}
	if o.Timeout, err = kubeconfig.ParseTimeout(f.timeout); err != nil {
		return o, usageError{fmt.Errorf("--request-timeout: %w", err)}
	}
	for _, e := range f.extra {
		key, value, ok := strings.Cut(e, "=")
		if !ok {
			return o, usageError{fmt.Errorf("--as-user-extra is %q; want KEY=VALUE", e)}
		}
		if o.AsExtra == nil {
			o.AsExtra = map[string][]string{}
		}
		o.AsExtra[key] = append(o.AsExtra[key], value)
	}
	return o, nil
}

// find returns the server and the credentials for it.
func (f *serverFlags) find() (*kubeconfig.Config, error) {
	o, err := f.chosen()
	if err != nil {
		return nil, err
	}
	return kubeconfig.Find(o)
}
