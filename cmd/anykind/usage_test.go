package main

import (
	"strings"
	"testing"
)

// Help lists every flag once, in the section that it belongs to, on lines that fit a terminal.
func TestUsageBySections(t *testing.T) {
	cmd, _ := command(t, "serve", "--help")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	section, seen := "", map[string]string{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutSuffix(line, " flags:"); ok {
			section = title
		}
		if len(line) > usageWidth+len(usageIndent) {
			t.Errorf("%d columns: %s", len(line), line)
		}
		if _, name, ok := strings.Cut(line, "  --"); ok && section != "" && strings.HasPrefix(line, "  --") {
			name, _, _ = strings.Cut(name, " ")
			if before, twice := seen[name]; twice {
				t.Errorf("--%s is in %s and in %s", name, before, section)
			}
			seen[name] = section
		}
	}
	for name, want := range map[string]string{
		"data-dir": "Storage", "etcd-servers": "Etcd", "secure-port": "Secure serving", "oidc-client-id": "OpenID Connect",
		"authorization-mode": "Authorization", "controllers": "Controllers", "kubelet-timeout": "Outgoing connections",
	} {
		if seen[name] != want {
			t.Errorf("--%s is in %q, want %q", name, seen[name], want)
		}
	}
	if _, _, global := strings.Cut(string(out), "\nGlobal flags:\n  -h, --help\n"); !global || len(seen) < 80 {
		t.Errorf("%d flags: %s", len(seen), out)
	}
}
