package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object/resource"
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
	flags.StringSliceVar(&f.etcdOverrides, "etcd-servers-overrides", nil,
		"refused: all resources are in the etcd of --etcd-servers")
	flags.Lookup("etcd-servers-overrides").Hidden = true
}

// errOverrides is kube-apiserver's error for an invalid value.
var errOverrides = errors.New("--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated")

// refuseOverrides returns an error if the flag moves a resource to an etcd of its own. Invalid
// values have the error of kube-apiserver.
func refuseOverrides(overrides []string) error {
	var moved []string
	for _, override := range overrides {
		resource, servers, _ := strings.Cut(override, "#")
		group, plural, ok := strings.Cut(resource, "/")
		all := strings.Split(servers, ";")
		if !ok || strings.Contains(plural, "/") || strings.Contains(servers, "#") || slices.Contains(all, "") {
			return errOverrides
		}
		moved = append(moved, schema.GroupResource{Group: group, Resource: plural}.String()+" at "+strings.Join(all, ", "))
	}
	if moved == nil {
		return nil
	}
	return fmt.Errorf("--etcd-servers-overrides: anykind reads and writes all resources in the etcd of --etcd-servers, and would not find %s; leave the flag out; docs/scale-out.md says how to move objects, and how to divide a cluster that is too large for one etcd",
		strings.Join(moved, "; "))
}
