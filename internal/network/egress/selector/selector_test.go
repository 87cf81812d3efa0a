package selector

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/apis/apiserver"
)

// through returns a Selector with a proxy for the cluster at a socket.
func through(t *testing.T, protocol apiserver.ProtocolType, socket string) *Selector {
	t.Helper()
	s, err := newSelector(&apiserver.EgressSelectorConfiguration{EgressSelections: []apiserver.EgressSelection{{
		Name: "cluster", Connection: apiserver.Connection{ProxyProtocol: protocol, Transport: &apiserver.Transport{UDS: &apiserver.UDSTransport{UDSName: socket}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// listen listens on a Unix socket. Paths of sockets must be short.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "egress")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	name := filepath.Join(dir, "s")
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, name
}

// counted returns the metrics as text. For durations it has only their number.
func counted(t *testing.T, s *Selector) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(s.Collectors()...)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		for _, m := range f.Metric {
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if v != 0 {
				fmt.Fprintf(&b, "%s", f.GetName())
				for _, l := range m.Label {
					fmt.Fprintf(&b, " %s=%s", l.GetName(), l.GetValue())
				}
				fmt.Fprintf(&b, " %v\n", v)
			}
		}
	}
	return b.String()
}

// A CONNECT proxy gets the address, and its answer decides.
func TestHTTPConnect(t *testing.T) {
	for _, tt := range []struct{ name, answer, err, metrics string }{
		{"it connects", "HTTP/1.1 200 Connection Established\r\n\r\n", "",
			"apiserver_egress_dialer_dial_duration_seconds protocol=http_connect transport=uds 1\napiserver_egress_dialer_dial_start_total protocol=http_connect transport=uds 1\n"},
		{"it has no way", "HTTP/1.1 500 Internal Server Error\r\n\r\ncurrently no tunnels available",
			"proxy error from SOCKET while dialing pod:443, code 500: 500 Internal Server Error",
			"apiserver_egress_dialer_dial_failure_count protocol=http_connect stage=proxy transport=uds 1\napiserver_egress_dialer_dial_start_total protocol=http_connect transport=uds 1\n"},
		{"it hangs up", "", "reading HTTP response from CONNECT to pod:443 via proxy SOCKET failed: unexpected EOF", ""},
		{"it speaks something else", "SSH-2.0-OpenSSH\r\n\r\n", `reading HTTP response from CONNECT to pod:443 via proxy SOCKET failed: malformed HTTP response "SSH-2.0-OpenSSH"`, ""},
		{"it speaks first", "HTTP/1.1 200 OK\r\n\r\nhello", `unexpected 5 bytes of buffered data from CONNECT proxy "SOCKET"`, ""},
		{"it has no end", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxAnswer), "reading HTTP response from CONNECT to pod:443 via proxy SOCKET failed: ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, socket := listen(t)
			asked := make(chan string, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					asked <- err.Error()
					return
				}
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					asked <- err.Error()
					return
				}
				asked <- r.Method + " " + r.URL.Host
				if _, err := io.WriteString(conn, tt.answer); err == nil && tt.err == "" {
					io.Copy(conn, conn)
				}
			}()
			s := through(t, apiserver.ProtocolHTTPConnect, socket)
			conn, err := s.Dial(Cluster)(t.Context(), "tcp", "pod:443")
			if got := <-asked; got != "CONNECT pod:443" {
				t.Errorf("the proxy was asked %q", got)
			}
			switch want := strings.ReplaceAll(tt.err, "SOCKET", socket); {
			case want == "" && err == nil:
				echoes(t, conn)
				conn.Close()
			case err == nil || !strings.HasPrefix(err.Error(), want):
				t.Errorf("%v, want %s", err, want)
			}
			if got := counted(t, s); tt.metrics != "" && got != tt.metrics {
				t.Errorf("metrics\n%swant\n%s", got, tt.metrics)
			}
		})
	}
}

func echoes(t *testing.T, conn net.Conn) {
	t.Helper()
	const line = "a line to echo"
	if _, err := io.WriteString(conn, line); err != nil {
		t.Error(err)
	}
	back := make([]byte, len(line))
	if _, err := io.ReadFull(conn, back); err != nil || string(back) != line {
		t.Errorf("%q, %v", back, err)
	}
}

// A dial through a proxy that hangs ends with its context.
func TestHTTPConnectThatHangs(t *testing.T) {
	l, socket := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	hung := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			hung <- err
			return
		}
		defer conn.Close()
		said := bufio.NewReader(conn)
		if _, err := http.ReadRequest(said); err != nil {
			hung <- err
			return
		}
		cancel()
		_, err = said.ReadByte()
		hung <- err
	}()
	s := through(t, apiserver.ProtocolHTTPConnect, socket)
	if conn, err := s.Dial(Cluster)(ctx, "tcp", "pod:443"); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("%v, %v", conn, err)
	}
	if err := <-hung; err != io.EOF {
		t.Errorf("the proxy sees %v, want that the connection is closed", err)
	}
}

// Without a proxy the dial fails at once, with an error that says so.
func TestHTTPConnectWithoutProxy(t *testing.T) {
	l, socket := listen(t)
	l.Close()
	s := through(t, apiserver.ProtocolHTTPConnect, socket)
	begun := time.Now()
	if _, err := s.Dial(Cluster)(t.Context(), "tcp", "pod:443"); err == nil || err.Error() != "dial unix "+socket+": connect: no such file or directory" {
		t.Error(err)
	}
	if took := time.Since(begun); took > dialTimeout/2 {
		t.Errorf("it took %v", took)
	}
	const want = "apiserver_egress_dialer_dial_failure_count protocol=http_connect stage=connect transport=uds 1\napiserver_egress_dialer_dial_start_total protocol=http_connect transport=uds 1\n"
	if got := counted(t, s); got != want {
		t.Errorf("metrics\n%swant\n%s", got, want)
	}
}
