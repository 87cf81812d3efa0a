package controlplane

import (
	"io"
	"slices"
	"testing"
)

// An error has one line, or several; known errors are not returned.
func TestErrors(t *testing.T) {
	var l log
	io.WriteString(&l, `I1122 19:35:50.000000   11365 one.go:1] "all is well"
E1122 19:35:50.601314   11365 replica_set.go:640] "Unhandled Error" err="sync \"a/b\" failed with read version: 917 is not as new as written version: 1052 for group resource replicasets.apps"
E1122 19:35:55.624524   11365 two.go:2] "Unhandled Error" err=<
	what is wrong
 > logger="UnhandledError"
W1122 19:35:56.000000   11365 three.go:3] "hm"
`)
	got, err := l.errors("kube-controller-manager")
	want := []string{`E1122 19:35:55.624524   11365 two.go:2] "Unhandled Error" err=< what is wrong`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := l.errors("kube-scheduler"); err != nil || len(got) != 2 {
		t.Errorf("what is known of one program is not of another: %q, %v", got, err)
	}
}
