package egress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// long is more input than the buffers on its path hold.
var long = strings.Repeat("0123456789abcdef", 1<<17)

// kubectl exec, attach, port-forward and logs work through Konnectivity: by WebSocket and by SPDY,
// with a kubelet that accepts WebSockets and with one that does not.
func TestStreams(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"grpc", "http-connect"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			k := newKonnectivity(t, mode, "cluster")
			k.startServer(t)
			k.startAgent(t)
			a := startAPI(t, "--egress-selector-config-file="+k.config, "--disable-admission-plugins=ServiceAccount")
			s := &streams{api: a, echo: startEcho(t)}
			for name, webSockets := range map[string]bool{"both": true, "spdy": false} {
				kubelet := startKubelet(t, k.authority, webSockets)
				s.node(name, kubelet)
				for _, webSocket := range []bool{true, false} {
					t.Run(fmt.Sprintf("kubelet %s, WebSocket %t", name, webSocket), func(t *testing.T) {
						s := s.of(t, name, webSocket)
						s.executes()
						s.attaches()
						s.forwards()
						s.follows()
						if got, want := kubelet.take(), expected(webSocket, webSockets); got != want {
							t.Errorf("the kubelet was asked for %s, want %s", got, want)
						}
					})
				}
				s.resizes(name)
			}
			eventually(t, "no tunnel is left", func() error {
				if now := a.held(); now.tunnels != 0 {
					return fmt.Errorf("the server holds %v", now)
				}
				return nil
			})
		})
	}
}

// expected returns the upgrade protocols in requests to a kubelet. The server translates WebSockets to SPDY for a kubelet that does
// not declare support for them.
func expected(client, kubelet bool) string {
	if client && kubelet {
		return "websocket"
	}
	return "spdy/3.1"
}

// A streams runs kubectl for a pod.
type streams struct {
	*api
	pod, echo   string
	environment []string
}

// of returns a copy for another pod and test.
func (s *streams) of(t *testing.T, pod string, webSocket bool) *streams {
	a := *s.api
	a.T = t
	return &streams{api: &a, echo: s.echo, pod: pod, environment: []string{
		fmt.Sprintf("KUBECTL_REMOTE_COMMAND_WEBSOCKETS=%t", webSocket), fmt.Sprintf("KUBECTL_PORT_FORWARD_WEBSOCKETS=%t", webSocket),
	}}
}

// node creates a Node with a kubelet that only the agent reaches, and a running pod of the same name.
func (s *streams) node(name string, k *kubelet) {
	s.Helper()
	s.apply(fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: %[1]s}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: default}
spec: {nodeName: %[1]s, automountServiceAccountToken: false, containers: [{name: c, image: i, stdin: true, tty: false}]}`, name))
	features := ""
	if k.webSockets {
		features = `,"declaredFeatures":["ExtendWebSocketsToKubelet"]`
	}
	s.status("nodes", "", name, fmt.Sprintf(`{"status":{"addresses":[{"type":"Hostname","address":"kubelet.%s"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%s}}%s}}`, domain, k.port, features))
	s.status("pods", "default", name, `{"status":{"phase":"Running","containerStatuses":[{"name":"c","ready":true,"image":"i","imageID":"i","restartCount":0,"state":{"running":{}}}]}}`)
}

func (s *streams) command(ctx context.Context, args ...string) *exec.Cmd {
	s.Helper()
	path, err := kubectl()
	must(s.T, err)
	c := exec.CommandContext(ctx, path, append([]string{"--kubeconfig", s.kubeconfig}, args...)...)
	c.Env = append(os.Environ(), s.environment...)
	return c
}

// run runs kubectl with input, and compares its output and its exit code.
func (s *streams) run(input, output, errs string, code int, args ...string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), waitTimeout)
	defer cancel()
	c := s.command(ctx, args...)
	var out, said bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &out, &said
	c.Run() // its result is in its state
	if c.ProcessState.ExitCode() != code || out.String() != output || said.String() != errs {
		s.Errorf("kubectl %s: %v, %.200q (%d bytes), %q\nwant %d, %.200q (%d bytes), %q",
			strings.Join(args, " "), c.ProcessState, out.String(), out.Len(), said.String(), code, output, len(output), errs)
	}
}

func (s *streams) executes() {
	s.Helper()
	s.run("", "out\n", "err\ncommand terminated with exit code 7\n", 7, "exec", s.pod, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
	s.run("hello\n", "hello\n", "", 0, "exec", "-i", s.pod, "--", "cat")
	s.run(long, long, "", 0, "exec", "-i", s.pod, "--", "cat")
}

func (s *streams) attaches() {
	s.Helper()
	s.run("hello\n", "attached to c\nhello\n", "", 0, "attach", "--quiet", "-i", s.pod)
}

func (s *streams) follows() {
	s.Helper()
	s.run("", "the first line\n", "", 0, "logs", s.pod)
	ctx, cancel := context.WithTimeout(s.Context(), waitTimeout)
	defer cancel()
	c := s.command(ctx, "logs", "-f", s.pod)
	out, err := c.StdoutPipe()
	must(s.T, err)
	must(s.T, c.Start())
	const want = "the first line\nthe second line\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
		s.Errorf("kubectl logs -f: %q, %v, want %q", got, err, want)
	}
	c.Process.Kill()
	c.Wait()
}

var forwards = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+)`)

// forwards opens several connections at once through one port, each to an echo server.
func (s *streams) forwards() {
	s.Helper()
	r, err := startCommand(s.command(context.WithoutCancel(s.Context()), "port-forward", "pod/"+s.pod, ":"+s.echo))
	must(s.T, err)
	defer r.kill()
	var at string
	eventually(s.T, "kubectl port-forward listens", func() error {
		m := forwards.FindStringSubmatch(r.String())
		if m == nil {
			return fmt.Errorf("it says %q", r)
		}
		at = m[1]
		return nil
	})
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			want := fmt.Sprint("connection ", i, " ", long)
			if got, err := repeated(at, want); err != nil || got != want {
				s.Errorf("connection %d of a forwarded port: %d bytes came back of %d: %v\n%s", i, len(got), len(want), err, r)
			}
		})
	}
	group.Wait()
}

// repeated sends a text to an echo server and returns the echo.
func repeated(at, text string) (string, error) {
	c, err := net.Dial("tcp", at)
	if err != nil {
		return "", err
	}
	defer c.Close()
	go func() {
		io.WriteString(c, text)
		c.(*net.TCPConn).CloseWrite()
	}()
	got := make([]byte, len(text))
	n, err := io.ReadFull(c, got)
	return string(got[:n]), err
}

// startEcho starts an echo server, and returns its port.
func startEcho(t *testing.T) string {
	t.Helper()
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// size is a terminal whose size does not change.
type size chan remotecommand.TerminalSize

// Next implements remotecommand.TerminalSizeQueue.
func (s size) Next() *remotecommand.TerminalSize {
	if now, more := <-s; more {
		return &now
	}
	return nil
}

// resizes sends a command the size of its terminal. kubectl would need a real terminal, so the test
// uses kubectl's client library.
func (s *streams) resizes(pod string) {
	s.Helper()
	at := s.client.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"size"}, Stdout: true, TTY: true}, scheme.ParameterCodec).URL()
	bySPDY, err := remotecommand.NewSPDYExecutor(s.config, "POST", at)
	must(s.T, err)
	byWebSocket, err := remotecommand.NewWebSocketExecutor(s.config, "GET", at.String())
	must(s.T, err)
	all := map[string]remotecommand.Executor{"SPDY": bySPDY, "WebSocket": byWebSocket}
	for protocol, e := range all {
		terminal := make(size, 1)
		terminal <- remotecommand.TerminalSize{Width: 132, Height: 43}
		var out bytes.Buffer
		err = e.StreamWithContext(s.Context(), remotecommand.StreamOptions{Stdout: &out, Tty: true, TerminalSizeQueue: terminal})
		close(terminal)
		if want := "132 columns, 43 rows, a terminal: true\n"; err != nil || out.String() != want {
			s.Errorf("a terminal by %s: %q, %v, want %q", protocol, out.String(), err, want)
		}
	}
}
