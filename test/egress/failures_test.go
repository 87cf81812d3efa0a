package egress

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A story is a list of steps, each with the error of a client and the changed metrics.
type story struct {
	*api
	before map[string]string
	text   strings.Builder
}

// compare compares the story with its golden file.
func (s *story) compare(t *testing.T, name string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		must(t, os.WriteFile(file, []byte(s.text.String()), 0o644))
	}
	if got, want := s.text.String(), read(t, file); got != want {
		t.Errorf("the story is another one than that in %s:\n%s", file, difference(want, got))
	}
}

// tell records the outcome of a request, and the changed metrics.
func (s *story) tell(step string, err error) {
	s.Helper()
	s.said(step, err)
	now, moved := s.counted(s.before)
	s.before = now
	for _, series := range moved {
		fmt.Fprintf(&s.text, "  %s\n", series)
	}
}

// said records the outcome of a request.
func (s *story) said(step string, err error) {
	said := "ok"
	if err != nil {
		said = varies.ReplaceAllString(strings.TrimSpace(err.Error()), "")
		for find, replace := range same {
			said = find.ReplaceAllString(said, replace)
		}
	}
	fmt.Fprintf(&s.text, "# %s\n%s\n", step, said)
}

// varies matches parts of an error that depend on the machine, and same those that differ each time.
var (
	varies = regexp.MustCompile(` on [0-9a-f.:\[\]]+:53`)
	same   = map[*regexp.Regexp]string{
		regexp.MustCompile(`/[^ "]*konnectivity-server\.socket`): "SOCKET",
		regexp.MustCompile(`\.test:\d+`):                         ".test:PORT",
		regexp.MustCompile(`\.svc:\d+`):                          ".svc:PORT",
		regexp.MustCompile(`127\.0\.0\.1:\d+`):                   "127.0.0.1:PORT",
		// kube-apiserver reports such an object as corrupt: docs/differences.md.
		regexp.MustCompile(`StorageError: corrupt object, .* object not decodable revision=\d+: `): "",
	}
)

// Clients get kube-apiserver's error for a broken connection, and the metrics count it as there. The
// first request after the repair succeeds.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"grpc", "http-connect"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			k := newKonnectivity(t, mode, "cluster", "controlplane")
			h := startHook(t, k.authority, "hook.only-the-agent.test", "hook.default.svc", "closed.default.svc", "missing.default.svc")
			users := k.authority.put(t, "users.kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: hook, cluster: {server: "https://hook.only-the-agent.test:%s/", certificate-authority: %q}}]
users: [{name: server, user: {}}]
contexts: [{name: hook, context: {cluster: hook, user: server}}]
current-context: hook
`, h.port, k.authority.file))
			s := &story{api: startAPI(t, "--egress-selector-config-file="+k.config, "--disable-admission-plugins=ServiceAccount", "--authentication-token-webhook-config-file="+users)}
			closed, err := freePorts(1)
			must(t, err)
			s.populate(h, k.authority.CertPEM(), closed[0], domain)
			k.startServer(t)
			k.startAgent(t)
			// The webhook takes effect in a kube-apiserver a moment later.
			eventually(t, "the webhook is asked", func() error {
				if err := s.ask("hook"); err != nil {
					return err
				}
				if err := s.convert(fmt.Sprint("first-", h.asked.Load())); err != nil {
					return err
				}
				if h.asked.Load() == 0 {
					return errors.New("not yet")
				}
				return nil
			})
			s.before, _ = s.counted(nil)
			s.run(t, k, h)

			s.compare(t, mode)
		})
	}
}

// An aggregated API server behind an agent is available exactly while an agent runs. The metrics
// depend on the frequency of the availability checks.
func TestAggregated(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"grpc", "http-connect"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			k := newKonnectivity(t, mode, "cluster")
			k.startServer(t)
			k.startAgent(t)
			h := startHook(t, k.authority, "hook.default.svc")
			s := &story{api: startAPI(t, "--egress-selector-config-file="+k.config)}
			s.apply(behind("hook", "hook."+domain, h.port, k.authority.CertPEM()))
			s.apply(elsewhere(h.port, k.authority.CertPEM()))
			eventually(t, "the API server is available", s.aggregated)
			s.said("another API server", s.aggregated())
			k.killAgent(t)
			s.said("no agent", s.aggregated())
			k.startAgent(t)
			eventually(t, "the API server is available again", s.aggregated)
			s.said("an agent", s.aggregated())
			k.server.kill()
			if mode == "http-connect" { // it takes half a minute until a tunnel times out
				s.said("no server", s.aggregated())
			}
			k.startServer(t)
			k.awaitAgents(t)
			eventually(t, "the API server is available again", s.aggregated)
			s.compare(t, "aggregated-"+mode)
		})
	}
}

// drain waits for pending connections of a request that has ended, and drops their counts.
func (s *story) drain() {
	s.Helper()
	eventually(s.T, "connections have been made", func() error {
		s.before, _ = s.counted(nil)
		open := 0
		for series, value := range s.before {
			n, err := strconv.Atoi(value)
			switch {
			case err != nil:
				return err
			case strings.Contains(series, "dial_start_total"):
				open += n
			case strings.HasPrefix(series, "apiserver_egress"):
				open -= n
			}
		}
		if open != 0 {
			return fmt.Errorf("%d are not", open)
		}
		return nil
	})
}

func (s *story) run(t *testing.T, k *konnectivity, h *hook) {
	s.tell("a webhook behind a Service", s.ask("hook"))
	s.tell("a webhook at a URL", s.ask("url"))
	s.tell("a conversion", s.convert("second"))
	s.tell("a kubelet", s.logs())
	s.tell("whose a token is", s.user("one"))
	s.tell("connection refused", s.ask("closed"))
	s.tell("no such host", s.ask("missing"))
	h.hangs.Store(true)
	s.tell("it does not answer", s.ask("hook"))
	h.hangs.Store(false)
	s.tell("it answers again", s.ask("hook"))

	k.startAgent(t)
	k.killAgent(t)
	s.tell("one of two agents is left", s.ask("hook"))
	k.killAgent(t)
	s.tell("no agent: a webhook behind a Service", s.ask("hook"))
	s.tell("no agent: a webhook at a URL", s.ask("url"))
	s.tell("no agent: a kubelet", s.logs())
	s.tell("no agent: a pod", s.podProxy())
	s.tell("no agent: whose a token is", s.user("another"))
	k.startAgent(t)
	s.tell("an agent: a webhook", s.ask("hook"))
	s.tell("an agent: a kubelet", s.logs())

	k.restartServer(t)
	s.tell("the server was restarted", s.ask("hook"))
	k.server.kill()
	s.tell("no server: a webhook", s.ask("hook"))
	k.startServer(t)
	k.awaitAgents(t)
	s.drain()
	s.tell("a server: a webhook", s.ask("hook"))
	s.tell("a server: a kubelet", s.logs())
	// From here on a kube-apiserver retries, for its cache.
	k.killAgent(t)
	s.tell("no agent: a conversion", s.convert("third"))
}

// difference returns the lines that only one text has, in order, with their steps.
func difference(want, got string) string {
	var b strings.Builder
	w, g := steps(want), steps(got)
	for _, step := range w.order {
		if g.of[step] != w.of[step] {
			fmt.Fprintf(&b, "# %s\n- %s\n+ %s\n", step, w.of[step], g.of[step])
		}
	}
	for _, step := range g.order {
		if _, known := w.of[step]; !known {
			fmt.Fprintf(&b, "# %s\n+ %s\n", step, g.of[step])
		}
	}
	return b.String()
}

type parts struct {
	order []string
	of    map[string]string
}

func steps(text string) parts {
	p := parts{of: map[string]string{}}
	for step := range strings.SplitSeq(text, "# ") {
		name, said, _ := strings.Cut(step, "\n")
		if name != "" {
			p.order = append(p.order, name)
			p.of[name] = strings.ReplaceAll(strings.TrimSpace(said), "\n", "\n  ")
		}
	}
	return p
}
