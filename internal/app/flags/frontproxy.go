package flags

import "github.com/spf13/pflag"

// addFrontProxy adds the flags of front proxies.
func (f *Serve) addFrontProxy(flags *pflag.FlagSet) {
	proxy := &f.authentication.FrontProxy
	flags.StringVar(&proxy.CAFile, "requestheader-client-ca-file", "",
		"file with authorities, PEM; a proxy with a client certificate by one of them is believed whose a request is (default of serve: one is made, and kept with the data, for the name front-proxy-client)")
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
	flags.StringVar(&proxy.CertFile, "proxy-client-cert-file", "",
		"file with the client certificate, PEM, by which other API servers know this one as such a proxy (default of serve: one is made)")
	flags.StringVar(&proxy.KeyFile, "proxy-client-key-file", "", "file with the key of that certificate, PEM")
}
