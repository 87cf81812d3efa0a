package main

import (
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/kubeconfig"
)

// addServer adds the flags that say which server is asked, and by whom, as kubectl calls them.
func addServer(flags *pflag.FlagSet, server *kubeconfig.Options, file *string) {
	flags.StringVar(file, "kubeconfig", "", "file that says where the server is and who you are (default: KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&server.Context, "context", "", "context of it, if not the current one")
	flags.StringVar(&server.Server, "server", "", "URL of the server")
	flags.StringVar(&server.CAFile, "certificate-authority", "", "file with the authority of the server's certificate, PEM")
	flags.BoolVar(&server.Insecure, "insecure-skip-tls-verify", false, "believe any certificate")
	flags.StringVar(&server.Token, "token", "", "bearer token, in place of the user of the kubeconfig")
}
