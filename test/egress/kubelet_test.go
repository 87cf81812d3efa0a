package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	upgrade "k8s.io/apimachinery/pkg/util/proxy"
	translator "k8s.io/apiserver/pkg/util/proxy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/exec"
)

// A kubelet serves logs and streams as the published kubelet does: it forwards each stream to the
// published streaming server of container runtimes. Its containers are processes of this machine.
type kubelet struct {
	*httptest.Server
	port string
	// webSockets makes the kubelet translate WebSockets, as the feature ExtendWebSocketsToKubelet
	// does. Without it, the kubelet accepts SPDY only.
	webSockets bool
	streams    streaming.Server

	mu        sync.Mutex
	protocols map[string]bool // requested upgrade protocols
}

func startKubelet(t *testing.T, a *authority, webSockets bool) *kubelet {
	t.Helper()
	runtime := httptest.NewUnstartedServer(nil)
	k := &kubelet{webSockets: webSockets, protocols: map[string]bool{}}
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: runtime.Listener.Addr().String(), Path: "/cri/"}
	var err error
	k.streams, err = streaming.NewServer(config, containers{})
	must(t, err)
	runtime.Config.Handler = k.streams
	runtime.Start()
	t.Cleanup(runtime.Close)

	k.Server = httptest.NewUnstartedServer(k)
	k.TLS = &tls.Config{Certificates: []tls.Certificate{*a.sign(t, "kubelet").TLS()}}
	k.Config.ErrorLog = log.New(io.Discard, "", 0)
	k.StartTLS()
	t.Cleanup(k.Close)
	_, k.port, _ = net.SplitHostPort(k.Listener.Addr().String())
	return k
}

// take returns the protocols since the last call.
func (k *kubelet) take() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Sorted(maps.Keys(k.protocols))
	clear(k.protocols)
	return strings.Join(all, " ")
}

func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // operation, namespace, pod, container
	if part[0] == "containerLogs" {
		logs(w, r)
		return
	}
	k.mu.Lock()
	k.protocols[strings.ToLower(r.Header.Get("Upgrade"))] = true
	k.mu.Unlock()
	options := remotecommand.Options{}
	at, err := "", error(nil)
	if part[0] == "portForward" {
		var answer *runtimeapi.PortForwardResponse
		if answer, err = k.streams.GetPortForward(&runtimeapi.PortForwardRequest{PodSandboxId: part[2]}); err == nil {
			at = answer.Url
		}
	} else {
		at, options, err = k.command(r, part)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	location, err := url.Parse(at)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	k.forward(location, part[0], options, r).ServeHTTP(w, r)
}

// command returns the URL at which the runtime serves an exec or attach.
func (k *kubelet) command(r *http.Request, part []string) (string, remotecommand.Options, error) {
	o, err := remotecommand.NewOptions(r)
	if err != nil {
		return "", remotecommand.Options{}, err
	}
	if part[0] == "attach" {
		answer, err := k.streams.GetAttach(&runtimeapi.AttachRequest{ContainerId: part[3], Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY})
		return answer.GetUrl(), *o, err
	}
	answer, err := k.streams.GetExec(&runtimeapi.ExecRequest{
		ContainerId: part[3], Cmd: r.URL.Query()["command"], Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY,
	})
	return answer.GetUrl(), *o, err
}

// forward returns the handler that connects a request to the runtime.
func (k *kubelet) forward(location *url.URL, what string, o remotecommand.Options, r *http.Request) http.Handler {
	handler := http.Handler(upgrade.NewUpgradeAwareHandler(location, nil, false, true, upgrade.NewErrorResponder(discard{})))
	switch {
	case !k.webSockets:
	case what == "portForward" && wsstream.IsWebSocketRequestWithTunnelingProtocol(r):
		handler = translator.NewTunnelingHandler(handler)
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(r):
		handler = translator.NewStreamTranslatorHandler(location, nil, 0, translator.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY})
	}
	return handler
}

// discard drops errors of connections, which the client sees.
type discard struct{}

func (discard) Error(error) {}

// logs writes a line, and a second one with follow. The client then disconnects.
func logs(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, "the first line")
	if r.URL.Query().Get("follow") != "true" {
		return
	}
	http.NewResponseController(w).Flush()
	fmt.Fprintln(w, "the second line")
	http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// containers runs commands as processes of this machine.
type containers struct{}

func (containers) Exec(ctx context.Context, _ string, command []string, in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	if len(command) == 1 && command[0] == "size" { // of the terminal, from the client's first message
		select {
		case size := <-resize:
			_, err := fmt.Fprintf(out, "%d columns, %d rows, a terminal: %t\n", size.Width, size.Height, tty)
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c := exec.New().CommandContext(ctx, command[0], command[1:]...)
	if in != nil {
		c.SetStdin(in)
	}
	if out != nil {
		c.SetStdout(out)
	}
	if errs != nil {
		c.SetStderr(errs)
	}
	return c.Run()
}

// Attach writes a greeting, and echoes the input until it ends.
func (containers) Attach(_ context.Context, container string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	fmt.Fprintln(out, "attached to", container)
	_, err := io.Copy(out, in)
	return err
}

func (containers) PortForward(ctx context.Context, _ string, port int32, stream io.ReadWriteCloser) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		return err
	}
	defer c.Close()
	var group sync.WaitGroup
	var sent error
	group.Go(func() {
		_, sent = io.Copy(c, stream)
		sent = errors.Join(sent, c.(*net.TCPConn).CloseWrite())
	})
	_, err = io.Copy(stream, c)
	stream.Close()
	group.Wait()
	return errors.Join(err, sent)
}
