package flags

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// kubeFlags are the flags of kube-apiserver v1.37 that mean nothing here, a line each: the name,
// the type, or that it is refused because who gives it relies on what it does, and the default, which
// /flagz shows.
//
//go:embed kubeflags.txt
var kubeFlags string

// takenFlags are those flags of kube-apiserver.
type takenFlags struct{ flags *pflag.FlagSet }

// add adds them. Help does not show them.
func (t *takenFlags) add(to *pflag.FlagSet) {
	t.flags = pflag.NewFlagSet("", pflag.ContinueOnError)
	for line := range strings.Lines(kubeFlags) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, value, _ := strings.Cut(kind, " ")
		const usage = "accepted, and changes nothing"
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
			t.flags.String(name, "", kind)
		}
		if value == "" {
			continue
		}
		f := t.flags.Lookup(name)
		if err := f.Value.Set(value); err != nil {
			panic("kubeflags.txt: " + line + err.Error()) // a line of the file is wrong
		}
		f.DefValue = f.Value.String()
	}
	t.flags.VisitAll(func(f *pflag.Flag) {
		f.Hidden = true
		to.AddFlag(f)
	})
}

// given returns the names of those that were given.
func (t *takenFlags) given() (names []string) {
	t.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			names = append(names, f.Name)
		}
	})
	return names
}

// refused returns an error if one was given that must not be without effect.
func (t *takenFlags) refused() (err error) {
	t.flags.VisitAll(func(f *pflag.Flag) {
		if f.Usage == "refused" && f.Changed && f.Value.String() != "" && err == nil {
			err = fmt.Errorf("--%s: anykind does not do this yet; leave it out", f.Name)
		}
	})
	return err
}
