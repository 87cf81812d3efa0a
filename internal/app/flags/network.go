package flags

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// networkFlags are the flags of proxies for outgoing connections, and of GOAWAY.
type networkFlags struct {
	egress string
	goaway chance
}

func (f *networkFlags) addEgress(flags *pflag.FlagSet) {
	flags.StringVar(&f.egress, "egress-selector-config-file", "",
		"file with an EgressSelectorConfiguration: proxies, such as Konnectivity, for outgoing connections")
}

func (f *networkFlags) addGoaway(flags *pflag.FlagSet) {
	flags.Var(&f.goaway, "goaway-chance",
		"probability that an HTTP/2 request ends its connection with GOAWAY, so that a load balancer can move the client to another server; at most 0.02; 0 for a single server")
}

// maxChance is the maximum of kube-apiserver.
const maxChance = 0.02

// chance is a pflag.Value.
type chance float64

// Set parses a value between 0 and maxChance.
func (c *chance) Set(value string) error {
	given, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return err
	}
	if !(given >= 0 && given <= maxChance) {
		return fmt.Errorf("it can not be less than 0 or greater than %v", maxChance)
	}
	*c = chance(given)
	return nil
}

func (c *chance) String() string { return strconv.FormatFloat(float64(*c), 'g', -1, 64) }

// Type implements pflag.Value.
func (c *chance) Type() string { return "float" }
