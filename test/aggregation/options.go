package aggregation

import (
	"flag"

	"github.com/anykind/anykind/test/script"
)

// aggregationOptions are the flags of the tests.
type aggregationOptions struct {
	script    *script.Options
	reference *bool
	logs      *string
}

func newOptions(f *flag.FlagSet) *aggregationOptions {
	return &aggregationOptions{
		script:    script.Flags(f),
		reference: f.Bool("reference", false, "run the scripts against kube-apiserver with etcd and kube-controller-manager, in the place of anykind"),
		logs:      f.String("logs", "", "keep the logs of the programs in this `folder`"),
	}
}
