package flags

import (
	"net"

	"github.com/spf13/pflag"
)

// addServing adds the flags of the listener and its certificates. address is the default of
// --bind-address.
func (f *Serve) addServing(flags *pflag.FlagSet, address net.IP) {
	flags.IPVar(&f.bindAddress, "bind-address", address,
		"IP address to listen on; 0.0.0.0 or :: for all interfaces")
	flags.Uint16Var(&f.securePort, "secure-port", 6443,
		"port to listen on; 0 for any free port")
	flags.StringVar(&f.certFile, "tls-cert-file", "",
		"PEM file with the serving certificate and its intermediates; needs --tls-private-key-file (default: a generated certificate)")
	flags.StringVar(&f.keyFile, "tls-private-key-file", "",
		"PEM file with the private key of --tls-cert-file")
	flags.Var(&f.named, "tls-sni-cert-key",
		"PEM files of a certificate and its key for clients that request certain server names (SNI): CERT,KEY or CERT,KEY:NAME,NAME; *.NAME is a wildcard; repeatable")
	f.protocol.add(flags)
	f.network.addGoaway(flags)
}
