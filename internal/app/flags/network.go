package flags

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// networkFlags configure outgoing connections, and the reconnects of clients.
type networkFlags struct {
	egress string
	goaway chance
}

func (f *networkFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.egress, "egress-selector-config-file", "",
		"file with an EgressSelectorConfiguration: which proxies, such as that of Konnectivity, lead to what the server calls")
	flags.Var(&f.goaway, "goaway-chance",
		"how likely a request by HTTP/2 is the last one on its connection, so that a load balancer sends the client somewhere else; 0.02 at most, and 0 for a server that has no other beside it")
}

// maxChance is the maximum of kube-apiserver.
const maxChance = 0.02

// chance is a pflag.Value.
type chance float64

// Set accepts 0 to maxChance.
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
