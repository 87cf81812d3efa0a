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
		"keep objects in etcd: its servers, as scheme://host:port, separated by commas; other servers may use the same")
	flags.StringVar(&f.etcd.CAFile, "etcd-cafile", "",
		"file with authorities, PEM, by which etcd's certificates are trusted")
	flags.StringVar(&f.etcd.CertFile, "etcd-certfile", "",
		"file with the client certificate for etcd, PEM; needs --etcd-keyfile")
	flags.StringVar(&f.etcd.KeyFile, "etcd-keyfile", "",
		"file with the private key of --etcd-certfile, PEM")
	flags.StringVar(&f.etcd.Prefix, "etcd-prefix", strings.TrimSuffix(resource.Root, "/"),
		"what all keys in etcd start with")
	flags.DurationVar(&f.etcd.CompactionInterval, "etcd-compaction-interval", app.History,
		"how often etcd is compacted, by one of the servers that use it; 0 leaves that to others")
}
