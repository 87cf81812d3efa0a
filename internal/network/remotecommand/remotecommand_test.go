package remotecommand_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/websocket"

	"github.com/anykind/anykind/internal/network/remotecommand"
	"github.com/anykind/anykind/internal/network/spdy/spdytest"
)

// A command is the kubelet's side of a test.
type command struct {
	version string // the protocol that it chooses; "" refuses the upgrade
	outcome string
	seen    chan string // the requested protocols, the streams, and the ends of the input and the sizes
}

func (c *command) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.version == "" {
		http.Error(w, c.outcome, http.StatusForbidden)
		return
	}
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprintf(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: %s\r\n\r\n", c.version)
	_ = both.Flush()
	c.seen <- fmt.Sprint(r.Method, " ", r.Header["Upgrade"], r.Header["X-Stream-Protocol-Version"])
	server := spdytest.New(struct {
		io.Reader
		io.Writer
	}{both, conn})
	c.serve(server)
	for err = nil; err == nil; {
		_, err = server.Next()
	}
	c.seen <- "the connection ended"
}

// serve echoes the input to the output, and then sends the outcome.
func (c *command) serve(server *spdytest.Server) {
	ids := map[string]uint32{}
	size := ""
	for {
		f, err := server.Next()
		if err != nil {
			return
		}
		switch {
		case f.Type == spdytest.SynStream:
			ids[f.Header["streamtype"]] = f.ID
			c.seen <- f.Header["streamtype"]
			_ = server.Send(spdytest.Frame{Type: spdytest.SynReply, ID: f.ID})
		case f.Type != spdytest.Data:
		case f.ID == ids["resize"]:
			size += string(f.Body)
			c.seen <- size
		case f.Flags&spdytest.Fin == 0:
			_ = server.Send(spdytest.Frame{ID: ids["stdout"], Body: f.Body})
		default:
			for name, text := range map[string]string{"stdin": "", "stdout": "", "stderr": "oh", "error": c.outcome} {
				if id := ids[name]; id != 0 {
					_ = server.Send(spdytest.Frame{ID: id, Body: []byte(text), Flags: spdytest.Fin})
				}
			}
			return
		}
	}
}

// A front is a server with a Command for a kubelet.
type front struct {
	*httptest.Server
	metrics *remotecommand.Metrics
	served  chan struct{} // one for each request that was served
}

func start(t *testing.T, kubelet http.Handler, streams remotecommand.Streams) *front {
	behind := httptest.NewServer(kubelet)
	t.Cleanup(behind.Close)
	to, err := url.Parse(behind.URL + "/exec")
	if err != nil {
		t.Fatal(err)
	}
	if kubelet == nil {
		behind.Close()
	}
	f := &front{metrics: remotecommand.NewMetrics(), served: make(chan struct{}, 16)}
	c := remotecommand.Command{
		To: to, Transport: http.DefaultTransport, Streams: streams, Metrics: f.metrics,
		Otherwise: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "otherwise") }),
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.ServeHTTP(w, r)
		f.served <- struct{}{}
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *front) dial(t *testing.T, protocols ...string) (*websocket.Conn, error) {
	config, err := websocket.NewConfig(strings.Replace(f.URL, "http", "ws", 1), "http://client")
	if err != nil {
		t.Fatal(err)
	}
	config.Protocol = protocols
	return config.DialContext(t.Context())
}

// count returns the counted translations.
func (f *front) count(t *testing.T) string {
	all := prometheus.NewRegistry()
	all.MustRegister(f.metrics.Collectors()...)
	families, err := all.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			texts = append(texts, fmt.Sprint(family.GetName(), m.GetLabel()[0].GetValue(), "=", m.GetCounter().GetValue()))
		}
	}
	return strings.Join(texts, " ")
}

const offered = "POST [SPDY/3.1] [v5.channel.k8s.io v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io channel.k8s.io]"

// The outcome of a command is the last message of its client.
func TestOutcomes(t *testing.T) {
	const v4, v2 = "v4.channel.k8s.io", "v2.channel.k8s.io"
	internal := func(message string) string {
		return fmt.Sprintf(`{"metadata":{},"status":"Failure","message":"Internal error occurred: %s","reason":"InternalError","details":{"causes":[{"message":"%s"}]},"code":500}`, message, message)
	}
	const success = `{"metadata":{},"status":"Success"}`
	for _, tt := range []struct {
		version, outcome string
		want             string
		code             int
	}{
		{v4, success, success, 200},
		{"v5.channel.k8s.io", "", success, 200},
		{v4, `{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`,
			`{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`, 200},
		{v4, `{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"x"}]}}`, internal(`error stream protocol error: invalid exit code value \"x\"`), 500},
		{v4, `{"status":"Failure","reason":"NonZeroExitCode"}`, internal("error stream protocol error: details must be set"), 500},
		{v4, `{"status":"Failure","reason":"NonZeroExitCode","details":{}}`, internal("error stream protocol error: no ExitCode cause given"), 500},
		{v4, `{"status":"Failure","message":"no such container"}`, internal("no such container"), 500},
		{v4, `{}`, internal("error stream protocol error: unknown error"), 500},
		{v2, "exit 1", internal("error executing remote command: exit 1"), 500},
		{"", `{"message":"Forbidden"}`, internal("unable to upgrade connection: Forbidden"), 500},
		{"", " plain ", internal("unable to upgrade connection: plain"), 500},
		{"", "", internal("unable to upgrade connection: empty server response"), 500},
	} {
		t.Run(tt.version+" "+tt.outcome, func(t *testing.T) {
			k := &command{version: tt.version, outcome: tt.outcome, seen: make(chan string, 16)}
			f := start(t, k, remotecommand.Streams{Stdin: true, Stdout: true, Stderr: true})
			c, err := f.dial(t, "other", "v5.channel.k8s.io", "v4.channel.k8s.io")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for _, message := range []string{"\x00hello", "", "\x07no such channel", "\x04" + `{"Width":1,"Height":2}`, "\xff\x00"} {
				if tt.version == "" {
					break // the outcome may come first
				}
				if err := websocket.Message.Send(c, []byte(message)); err != nil {
					t.Fatal(err)
				}
			}
			got := map[byte]string{}
			for {
				var message []byte
				if err := websocket.Message.Receive(c, &message); err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					break
				}
				got[message[0]] += string(message[1:])
			}
			want := map[byte]string{1: "hello", 2: "oh", 3: tt.want}
			if tt.version == "" {
				want[1], want[2] = "", ""
			}
			for _, channel := range []byte{1, 2, 3} {
				if got[channel] != want[channel] {
					t.Errorf("channel %d has %s\nwant %s", channel, got[channel], want[channel])
				}
			}
			if tt.version != "" {
				for _, want := range []string{offered, "error", "stdin", "stdout", "stderr"} {
					if got := <-k.seen; got != want {
						t.Errorf("the kubelet saw %s, want %s", got, want)
					}
				}
			}
			<-f.served
			if got, want := f.count(t), fmt.Sprint("apiserver_stream_translator_requests_total", tt.code, "=1"); got != want {
				t.Errorf("counted %s, want %s", got, want)
			}
		})
	}
}

// A terminal has no separate errors, and a size. A client that disconnects ends its command.
func TestTerminal(t *testing.T) {
	k := &command{version: "v4.channel.k8s.io", seen: make(chan string, 16)}
	c, err := start(t, k, remotecommand.Streams{Stdin: true, Stderr: true, TTY: true}).dial(t, "v5.channel.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	if err := websocket.Message.Receive(c, &first); err != nil || string(first) != "\x02" {
		t.Errorf("the first message is %q, %v", first, err)
	}
	for _, part := range []string{`{"Width":132,`, `"Height":43}`} {
		if err := websocket.Message.Send(c, []byte("\x04"+part)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{offered, "error", "stdin", "resize", `{"Width":132,"Height":43}` + "\n"} {
		if got := <-k.seen; got != want {
			t.Errorf("the kubelet saw %q, want %q", got, want)
		}
	}
	c.Close()
	for got := ""; got != "the connection ended"; {
		got = <-k.seen
	}
}

// A kubelet that cannot be reached is an outcome, too.
func TestUnreachable(t *testing.T) {
	c, err := start(t, nil, remotecommand.Streams{}).dial(t, "v5.channel.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []string{"\x03", `Internal error occurred: error sending request: Post \"http://127.0.0.1:`} {
		var message []byte
		if err := websocket.Message.Receive(c, &message); err != nil || !strings.Contains(string(message), want) {
			t.Errorf("%q, %v, want %q", message, err, want)
		}
	}
}

// Other protocols are not translated, and neither are other requests.
func TestOtherwise(t *testing.T) {
	f := start(t, nil, remotecommand.Streams{})
	for _, protocol := range []string{"", "v4.channel.k8s.io"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if protocol != "" {
			r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {protocol}}
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		if line, err := bufio.NewReader(a.Body).ReadString(0); line != "otherwise" {
			t.Errorf("%q: %q, %v", protocol, line, err)
		}
	}
}
