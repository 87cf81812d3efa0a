package main

import (
	"strconv"

	"github.com/spf13/cobra"
)

// addIdentity adds the flags that say who the server is and how it knows its users.
func (f *serveFlags) addIdentity(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.certFile, "tls-cert-file", "",
		"file with the serving certificate and its intermediates, PEM; needs --tls-private-key-file (default: one is made)")
	flags.StringVar(&f.keyFile, "tls-private-key-file", "",
		"file with the private key of --tls-cert-file, PEM")
	flags.StringVar(&f.clientCAFile, "client-ca-file", "",
		"file with authorities, PEM; a client certificate by one of them names a user (common name) and groups (organizations)")
	flags.StringVar(&f.tokenFile, "token-auth-file", "",
		"file with bearer tokens, CSV: token,user,uid,\"group1,group2\"")
	flags.BoolFunc("anonymous-auth",
		"let requests without credentials through to authorization, as the user system:anonymous in the group system:unauthenticated (default: only those for health and version)",
		func(value string) error {
			allowed, err := strconv.ParseBool(value)
			f.authentication.Anonymous = &allowed
			return err
		})
	flags.BoolVar(&f.authentication.BootstrapTokens, "enable-bootstrap-token-auth", false,
		"let nodes join by bootstrap tokens: those of Secrets of type bootstrap.kubernetes.io/token in kube-system")
	f.addFrontProxy(cmd)
	f.addKubelet(cmd)
}

// addFrontProxy adds the flags that say which proxies are believed whose a request is.
func (f *serveFlags) addFrontProxy(cmd *cobra.Command) {
	flags, proxy := cmd.Flags(), &f.authentication.FrontProxy
	flags.StringVar(&proxy.CAFile, "requestheader-client-ca-file", "",
		"file with authorities, PEM; a proxy with a client certificate by one of them is believed whose a request is")
	flags.StringSliceVar(&proxy.AllowedNames, "requestheader-allowed-names", nil,
		"common names of the certificates of such proxies (default: any)")
	flags.StringSliceVar(&proxy.Headers.Username, "requestheader-username-headers", nil,
		"headers in which proxies name the user, such as X-Remote-User; the first that is there counts")
	flags.StringSliceVar(&proxy.Headers.UID, "requestheader-uid-headers", nil,
		"headers in which proxies say the uid of the user, such as X-Remote-Uid")
	flags.StringSliceVar(&proxy.Headers.Group, "requestheader-group-headers", nil,
		"headers in which proxies name groups of the user, such as X-Remote-Group")
	flags.StringSliceVar(&proxy.Headers.ExtraPrefix, "requestheader-extra-headers-prefix", nil,
		"prefixes of headers in which proxies say more of the user, such as X-Remote-Extra-")
}
