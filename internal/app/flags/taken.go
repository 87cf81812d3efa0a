package flags

import (
	_ "embed"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// kubeFlags are the flags of kube-apiserver without effect here, one per line: the name,
// the type, and the default, which /flagz shows.
//
//go:embed kubeflags.txt
var kubeFlags string

// takenFlags are the flags of kubeFlags.
type takenFlags struct{ flags *pflag.FlagSet }

// add adds the flags. Help does not show them.
func (t *takenFlags) add(to *pflag.FlagSet) {
	t.flags = pflag.NewFlagSet("", pflag.ContinueOnError)
	for line := range strings.Lines(kubeFlags) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, value, _ := strings.Cut(kind, " ")
		const usage = "accepted without effect"
		switch kind {
		case "bool":
			t.flags.Bool(name, false, usage)
		case "duration":
			t.flags.Duration(name, time.Duration(0), usage)
		case "float":
			t.flags.Float64(name, 0, usage)
		case "int":
			t.flags.Int(name, 0, usage)
		case "strings":
			t.flags.StringSlice(name, nil, usage)
		default:
			t.flags.String(name, "", usage)
		}
		if value == "" {
			continue
		}
		f := t.flags.Lookup(name)
		if err := f.Value.Set(value); err != nil {
			panic("kubeflags.txt: " + line + err.Error()) // the file has an invalid line
		}
		f.DefValue = f.Value.String()
	}
	t.flags.VisitAll(func(f *pflag.Flag) {
		f.Hidden = true
		to.AddFlag(f)
	})
}

// given returns the names of the flags that are set.
func (t *takenFlags) given() (names []string) {
	t.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			names = append(names, f.Name)
		}
	})
	return names
}
