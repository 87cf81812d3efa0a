package pki

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A client certificate can be created while a server has the directory open, and that server
// accepts it.
func TestSignClient(t *testing.T) {
	dir := t.TempDir()
	p, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	jane, err := SignClient(dir, "jane", []string{"devs", "ops"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := jane.Cert.CheckSignatureFrom(p.Authority()); err != nil {
		t.Error(err)
	}
	if s := jane.Cert.Subject; s.CommonName != "jane" || !sameSet(s.Organization, []string{"devs", "ops"}) {
		t.Errorf("of %s", s)
	}
	if left := time.Until(jane.Cert.NotAfter); left > time.Hour || left < 0 {
		t.Errorf("it is good for %v", left)
	}
	long, err := SignClient(dir, "jane", nil, 100*year)
	if err != nil || !long.Cert.NotAfter.Equal(p.Authority().NotAfter) {
		t.Errorf("one that would outlive its authority: %v", err)
	}
}

func TestSignClientWithoutAuthority(t *testing.T) {
	dir := t.TempDir()
	if _, err := SignClient(dir, "jane", nil, time.Hour); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no authority: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it left %v, %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(dir, authorityFile), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := SignClient(dir, "jane", nil, time.Hour); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a bad authority: %v", err)
	}
}
