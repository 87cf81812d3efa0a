package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
)

// startKubelet starts a kubelet that writes logs and runs commands, for a Node of the fixture.
func startKubelet(t *testing.T, f *Fixture) {
	t.Helper()
	exec := &websocket.Server{
		Handshake: func(c *websocket.Config, _ *http.Request) error {
			c.Protocol = c.Protocol[:1]
			return nil
		},
		Handler: func(c *websocket.Conn) {
			if terminals(c) {
				return
			}
			command := c.Request().URL.Query()["command"]
			send := func(channel byte, text string) {
				_ = websocket.Message.Send(c, append([]byte{channel}, text...)) // the page reads it, or the test fails
			}
			send(1, "\x1b[32mran\x1b[0m "+strings.Join(command, " ")+"\n")
			send(2, "a warning\n")
			if strings.HasSuffix(command[2], "false") {
				send(3, `{"status":"Failure","reason":"NonZeroExitCode","message":"command terminated with non-zero exit code: exit status 1"}`)
				return
			}
			send(3, `{"status":"Success"}`)
		},
	}
	k := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/exec/"):
			exec.ServeHTTP(w, r)
		case r.URL.Query().Get("previous") != "":
			fmt.Fprintln(w, "the run before")
		default:
			fmt.Fprint(w, "\x1b[31mfirst line\x1b[0m of ", r.URL.Path, "\n")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}
	}))
	t.Cleanup(k.CloseClientConnections)
	u, err := url.Parse(k.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.Create(t, "/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node"}}`)
	f.Patch(t, "/api/v1/nodes/node/status", `{"status":{"declaredFeatures":["ExtendWebSocketsToKubelet"],"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":`+u.Port()+`}}}}`)
}

// podOnNode is a pod with two containers on the Node of the kubelet.
const podOnNode = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"node","automountServiceAccountToken":false,"containers":[{"name":"a","image":"i"},{"name":"b","image":"i"}]}}`

// Logs follow, those of the run before are read, and commands run in a container. Sequences for terminals are removed.
func TestLogsAndCommands(t *testing.T) {
	f := Start(t)
	startKubelet(t, f)
	f.Create(t, pods, podOnNode)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/object/-/pods/default/p?tab=logs")
	p.Sees("first line of /containerLogs/default/p/a")
	p.Type("[aria-label=Container]", "b")
	p.Sees("first line of /containerLogs/default/p/b")
	p.Click(".logview input[type=checkbox]")
	p.Sees("the run before")
	if !f.Own {
		return // kube-apiserver speaks SPDY to this kubelet
	}
	p.Tab("Run")
	run := func(command string) {
		p.Type(".command", command)
		p.Key("Enter")
	}
	run("ls -l")
	p.Sees("$ ls -l ran sh -c ls -l a warning")
	run("false")
	p.Sees("command terminated with non-zero exit code")
	if shown := Eval[string](p, `document.querySelector(".logs").textContent`); strings.Contains(shown, "\x1b") || strings.Contains(shown, "[32m") {
		t.Errorf("%q", shown)
	}
}
