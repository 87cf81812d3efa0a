package controller_test

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/controller"
)

func TestSelect(t *testing.T) {
	all := []controller.Descriptor{
		{Name: "namespace-controller", Alias: "namespace"}, {Name: "garbage-collector-controller"}, {Name: "serviceaccount-controller"},
		{Name: "token-cleaner-controller", Alias: "tokencleaner", Off: true},
	}
	for _, test := range []struct {
		names, want, err string
	}{
		{names: "*", want: "namespace-controller garbage-collector-controller serviceaccount-controller"},
		{names: "", want: ""},
		{names: "namespace-controller", want: "namespace-controller"},
		{names: "namespace", want: "namespace-controller"},
		{names: "*,-namespace-controller", want: "garbage-collector-controller serviceaccount-controller"},
		{names: "-namespace,*", want: "garbage-collector-controller serviceaccount-controller"},
		{names: "-namespace-controller", want: ""},
		// The first entry wins.
		{names: "namespace,-namespace-controller", want: "namespace-controller"},
		{names: "-namespace,namespace", want: ""},
		{names: "serviceaccount-controller,namespace-controller", want: "namespace-controller serviceaccount-controller"},
		// A controller that is off needs its name.
		{names: "*,tokencleaner", want: "namespace-controller garbage-collector-controller serviceaccount-controller token-cleaner-controller"},
		{names: "token-cleaner-controller", want: "token-cleaner-controller"},
		{names: "*,-foo", err: `"foo" is not in the list of known controllers`},
		{names: "Namespace", err: `"Namespace" is not in the list of known controllers`},
		{names: "-*", err: `"*" is not in the list of known controllers`},
		{names: "*,", err: `"" is not in the list of known controllers`},
	} {
		t.Run(test.names, func(t *testing.T) {
			names := []string{}
			if test.names != "" {
				names = strings.Split(test.names, ",")
			}
			selected, err := controller.Select(all, names)
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range selected {
				got = append(got, d.Name)
			}
			if g := strings.Join(got, " "); g != test.want {
				t.Errorf("on are %q, want %q", g, test.want)
			}
		})
	}
	if selected, err := controller.Select(all, nil); err != nil || len(selected) != len(all)-1 {
		t.Errorf("of no names at all on are %d, %v, want all that are not off", len(selected), err)
	}
}
