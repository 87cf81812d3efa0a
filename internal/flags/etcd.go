package flags

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/resource"
)

// addEtcd adds the flags of a store in etcd.
func (f *Serve) addEtcd(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.etcd.Servers, "etcd-servers", nil,
		"store objects in etcd, at these URLs (scheme://host:port, comma separated); several servers can share one etcd")
	flags.StringVar(&f.etcd.CAFile, "etcd-cafile", "",
		"PEM bundle of CAs for the certificates of etcd")
	flags.StringVar(&f.etcd.CertFile, "etcd-certfile", "",
		"PEM file with the client certificate for etcd; needs --etcd-keyfile")
	flags.StringVar(&f.etcd.KeyFile, "etcd-keyfile", "",
		"PEM file with the private key of --etcd-certfile")
	flags.StringVar(&f.etcd.Prefix, "etcd-prefix", strings.TrimSuffix(resource.Root, "/"),
		"prefix of all keys in etcd")
	flags.DurationVar(&f.etcd.CompactionInterval, "etcd-compaction-interval", app.History,
		"interval between compactions of etcd, by one of the servers that share it; 0 disables compaction by this server")
}
