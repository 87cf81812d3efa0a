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
	flags.StringVar(&f.etcd.MediaType, "storage-media-type", app.StorageProtobuf,
		"form of built-in kinds in etcd: application/vnd.kubernetes.protobuf or application/json")
	flags.StringSliceVar(&f.etcdOverrides, "etcd-servers-overrides", nil,
		"rejected: all resources are in the etcd of --etcd-servers")
	flags.Lookup("etcd-servers-overrides").Hidden = true
}

// checkMediaType returns an error for a form that app.Etcd does not have.
func checkMediaType(media string) error {
	if known := []string{app.StorageJSON, app.StorageProtobuf}; media != "" && !slices.Contains(known, media) {
		return fmt.Errorf("--storage-media-type %q invalid, allowed values: %s", media, strings.Join(known, ", "))
	}
	return nil
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
