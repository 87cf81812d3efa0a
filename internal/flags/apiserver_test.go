package flags

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// What is accepted without effect is named, and what is as it is anyway is not.
func TestTakenFlags(t *testing.T) {
	var taken takenFlags
	var gates kubernetesGates
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	taken.add(flags)
	flags.Var(&gates, "feature-gates", "")
	err := flags.Parse([]string{
		"--audit-log-path=-", "--enable-priority-and-fairness=false", "--max-requests-inflight=0",
		"--feature-gates=kube:WatchList=true,CBORServingAndStorage=true", "--feature-gates", "AllAlpha=true",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := taken.given(), []string{"audit-log-path", "enable-priority-and-fairness", "max-requests-inflight"}; !slices.Equal(got, want) {
		t.Errorf("given: %v, want %v", got, want)
	}
	if !slices.Equal(gates.unchanged, []string{"AllAlpha"}) || !gates.offer.CBOR {
		t.Errorf("gates: %v", gates)
	}
}

// Nothing is kept that a kube-apiserver does not keep.
func TestNoFiles(t *testing.T) {
	var f APIServer
	f.Add(pflag.NewFlagSet("", pflag.ContinueOnError))
	o, err := f.Options(slog.New(slog.DiscardHandler), "")
	if err != nil || o.Dir != "" || o.Kubeconfig != "" {
		t.Errorf("%q, %q, %v", o.Dir, o.Kubeconfig, err)
	}
}

// A certificate is made where there is none, and used where there is one.
func TestCertDir(t *testing.T) {
	f := APIServer{certDir: filepath.Join(t.TempDir(), "certs")}
	f.bindAddress = net.IPv4(127, 0, 0, 1)
	read := func() string {
		t.Helper()
		f.certFile, f.keyFile = "", ""
		if err := f.certificate(); err != nil {
			t.Fatal(err)
		}
		if _, err := tls.LoadX509KeyPair(f.certFile, f.keyFile); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(f.certFile)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if first := read(); first != read() {
		t.Error("another certificate was made")
	}
}
