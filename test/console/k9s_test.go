package console

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A terminal has a program that runs in tmux.
type terminal struct {
	socket string
	ready  string // pattern of the first page
}

// newTerminal starts k9s with all namespaces, as a new user has it.
func newTerminal(t *testing.T, f *Fixture, k9s string) *terminal {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "manifests"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifests", "fresh.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: fresh\n  namespace: default\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("k9s:\n  skipLatestRevCheck: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := &terminal{socket: filepath.Join(dir, "tmux"), ready: `pods\(all\)\[2\]`}
	k.tmux(t, "-f", "/dev/null", "new-session", "-d", "-s", "one", "-x", "200", "-y", "55", "-e", "K9S_CONFIG_DIR="+dir, "-e", "XDG_DATA_HOME="+dir, "-e", "XDG_STATE_HOME="+dir, "-e", "KUBE_EDITOR=vi", "-e", "EDITOR=vi",

		k9s+" --kubeconfig "+f.Kubeconfig+" -A --splashless")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", k.socket, "kill-server").Run() })
	k.tmux(t, "set-option", "-g", "escape-time", "0")
	k.tmux(t, "set-option", "-g", "remain-on-exit", "on")
	return k
}

func (k *terminal) tmux(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "tmux", append([]string{"-S", k.socket}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (k *terminal) begin(t *testing.T) {
	t.Helper()
	k.tmux(t, "respawn-pane", "-k", "-t", "one")
	if err := k.shows(t, []string{k.ready}); err != nil {
		t.Fatal(err)
	}
}

func (k *terminal) screen(t *testing.T) string {
	t.Helper()
	return strings.Join(strings.Fields(k.tmux(t, "capture-pane", "-p", "-t", "one")), " ")
}

func (k *terminal) shows(t *testing.T, patterns []string) error {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(waiting); ; <-again.C {
		text, all := k.screen(t), true
		for _, p := range patterns {
			all = all && regexp.MustCompile(strings.TrimPrefix(p, "!")).MatchString(text) != strings.HasPrefix(p, "!")
		}
		if all {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%q is not on the screen:\n%s", patterns, k.tmux(t, "capture-pane", "-p", "-t", "one"))
		}
	}
}

func (k *terminal) act(t *testing.T, s step) {
	t.Helper()
	switch s.verb {
	case "key":
		name := strings.NewReplacer("Ctrl+", "C-", "Shift+", "S-").Replace(s.words)
		if letter, ok := strings.CutPrefix(s.words, "Shift+"); ok && len(letter) == 1 {
			name = letter // a capital letter
		}
		k.tmux(t, "send-keys", "-t", "one", name)
	case "type":
		k.tmux(t, "send-keys", "-t", "one", "-l", s.words)
	case "enter":
		k.tmux(t, "send-keys", "-t", "one", "-l", strings.ReplaceAll(s.words, "MANIFESTS", filepath.Join(filepath.Dir(k.socket), "manifests")))
		k.tmux(t, "send-keys", "-t", "one", "Enter")
	default:
		t.Fatalf("there is no step %q", s)
	}
}
