package flags

import "github.com/spf13/pflag"

// addFrontProxy adds the flags of front proxies, whose headers name the user of a request.
func (f *Serve) addFrontProxy(flags *pflag.FlagSet) {
	proxy := &f.authentication.FrontProxy
	flags.StringVar(&proxy.CAFile, "requestheader-client-ca-file", "",
		"PEM bundle of CAs for client certificates of front proxies; headers of a front proxy name the user of its requests (default of serve: a generated CA, for the name front-proxy-client)")
	flags.StringSliceVar(&proxy.AllowedNames, "requestheader-allowed-names", nil,
		"accepted common names of front proxies (default: any)")
	flags.StringSliceVar(&proxy.Headers.Username, "requestheader-username-headers", nil,
		"headers with the name of the user, such as X-Remote-User; the first one present counts")
	flags.StringSliceVar(&proxy.Headers.UID, "requestheader-uid-headers", nil,
		"headers with the uid of the user, such as X-Remote-Uid")
	flags.StringSliceVar(&proxy.Headers.Group, "requestheader-group-headers", nil,
		"headers with groups of the user, such as X-Remote-Group")
	flags.StringSliceVar(&proxy.Headers.ExtraPrefix, "requestheader-extra-headers-prefix", nil,
		"prefixes of headers with extra fields of the user, such as X-Remote-Extra-")
	flags.StringVar(&proxy.CertFile, "proxy-client-cert-file", "",
		"PEM file with the client certificate of this server as the front proxy of other API servers (default of serve: a generated certificate)")
	flags.StringVar(&proxy.KeyFile, "proxy-client-key-file", "", "PEM file with the private key of --proxy-client-cert-file")
}
