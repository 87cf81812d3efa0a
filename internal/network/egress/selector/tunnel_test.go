package selector

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// A server is a Konnectivity server without agents. The test answers each packet.
type server struct {
	client.UnimplementedProxyServiceServer
	streams sync.WaitGroup // that are open
	answer  func(p *client.Packet, send func(*client.Packet)) (more bool)
}

func (s *server) Proxy(stream client.ProxyService_ProxyServer) error {
	s.streams.Add(1)
	defer s.streams.Done()
	var mu sync.Mutex
	send := func(p *client.Packet) {
		mu.Lock()
		defer mu.Unlock()
		stream.Send(p)
	}
	for {
		p, err := stream.Recv()
		if err != nil {
			return nil
		}
		if !s.answer(p, send) {
			return nil
		}
	}
}

// serve starts a server, and returns it, a Dial through it, and a function that stops it.
func serve(t *testing.T, answer func(*client.Packet, func(*client.Packet)) bool) (*server, *Selector, func()) {
	t.Helper()
	l, socket := listen(t)
	s := &server{answer: answer}
	g := grpc.NewServer()
	client.RegisterProxyServiceServer(g, s)
	go g.Serve(l)
	t.Cleanup(g.Stop)
	return s, through(t, apiserver.ProtocolGRPC, socket), g.Stop
}

func dialResponse(id int64, err string) *client.Packet {
	return &client.Packet{Type: client.PacketType_DIAL_RSP, Payload: &client.Packet_DialResponse{DialResponse: &client.DialResponse{Random: id, ConnectID: 7, Error: err}}}
}

func data(b []byte) *client.Packet {
	return &client.Packet{Type: client.PacketType_DATA, Payload: &client.Packet_Data{Data: &client.Data{ConnectID: 7, Data: b}}}
}

func closeResponse() *client.Packet {
	return &client.Packet{Type: client.PacketType_CLOSE_RSP, Payload: &client.Packet_CloseResponse{CloseResponse: &client.CloseResponse{ConnectID: 7}}}
}

// echo accepts every dial, and sends data back.
func echo(p *client.Packet, send func(*client.Packet)) bool {
	switch p.Type {
	case client.PacketType_DIAL_REQ:
		send(dialResponse(p.GetDialRequest().Random, ""))
	case client.PacketType_DATA:
		send(data(p.GetData().Data))
	case client.PacketType_CLOSE_REQ:
		send(closeResponse())
		return false
	}
	return true
}

// A tunnel carries data to the address of the dial; closing it releases everything.
func TestTunnel(t *testing.T) {
	s, way, _ := serve(t, echo)
	conn, err := way.Dial(Cluster)(t.Context(), "tcp", "pod:443")
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.RemoteAddr().String(); got != "pod:443" {
		t.Errorf("the connection says that it leads to %q", got)
	}
	echoes(t, conn)
	large := bytes.Repeat([]byte("0123456789abcdef"), maxData/4) // four packets
	go conn.Write(large)
	back := make([]byte, len(large))
	if _, err := io.ReadFull(conn, back); err != nil || !bytes.Equal(back, large) {
		t.Errorf("what was too long for one packet came back otherwise: %v", err)
	}
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := conn.Read(back); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := conn.Write(back); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	s.streams.Wait()
	awaitEnd(t, conn)
	const want = `apiserver_egress_dialer_dial_duration_seconds protocol=grpc transport=uds 1
apiserver_egress_dialer_dial_start_total protocol=grpc transport=uds 1
konnectivity_network_proxy_client_stream_packets_total packet_type=CLOSE_REQ segment=from_client 1
konnectivity_network_proxy_client_stream_packets_total packet_type=CLOSE_RSP segment=to_client 1
konnectivity_network_proxy_client_stream_packets_total packet_type=DATA segment=from_client 5
konnectivity_network_proxy_client_stream_packets_total packet_type=DATA segment=to_client 5
konnectivity_network_proxy_client_stream_packets_total packet_type=DIAL_REQ segment=from_client 1
konnectivity_network_proxy_client_stream_packets_total packet_type=DIAL_RSP segment=to_client 1
`
	if got := counted(t, way); got != want {
		t.Errorf("metrics\n%swant\n%s", got, want)
	}
}

// awaitEnd waits for the end of a tunnel.
func awaitEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	select {
	case <-conn.(*tunnelConn).done:
	case <-time.After(tunnelTimeout / 2):
		t.Error("the tunnel did not end")
	}
}

// The error of a dial has its actual cause, and a failed dial leaves no tunnel.
func TestTunnelThatLeadsNowhere(t *testing.T) {
	for _, tt := range []struct {
		name, err, reason string
		answer            func(p *client.Packet, send func(*client.Packet)) bool
	}{
		{"the agent cannot connect", "dial tcp 10.0.0.1:443: connect: connection refused", "endpoint", func(p *client.Packet, send func(*client.Packet)) bool {
			send(dialResponse(p.GetDialRequest().Random, "dial tcp 10.0.0.1:443: connect: connection refused"))
			return true
		}},
		{"the server gives it up", "dial closed", "dialclosed", func(p *client.Packet, send func(*client.Packet)) bool {
			send(&client.Packet{Type: client.PacketType_DIAL_CLS, Payload: &client.Packet_CloseDial{CloseDial: &client.CloseDial{Random: p.GetDialRequest().Random}}})
			return true
		}},
		{"the server ends", "tunnel closed", "tunnelclosed", func(*client.Packet, func(*client.Packet)) bool { return false }},
		{"the answer is another's", "tunnel closed", "tunnelclosed", func(p *client.Packet, send func(*client.Packet)) bool {
			send(dialResponse(p.GetDialRequest().Random+1, ""))
			return true
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, way, _ := serve(t, tt.answer)
			if _, err := way.Dial(Cluster)(t.Context(), "tcp", "pod:443"); err == nil || err.Error() != tt.err {
				t.Errorf("%v, want %s", err, tt.err)
			}
			s.streams.Wait()
			got := counted(t, way)
			for _, want := range []string{
				"apiserver_egress_dialer_dial_failure_count protocol=grpc stage=proxy transport=uds 1\n",
				"konnectivity_network_proxy_client_dial_failure_total reason=" + tt.reason + " 1\n",
			} {
				if !strings.Contains(got, want) {
					t.Errorf("metrics\n%swant %s", got, want)
				}
			}
		})
	}
}

// A canceled dial is reported to the server, which can drop it.
func TestTunnelThatIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan *client.Packet, 2)
	s, way, _ := serve(t, func(p *client.Packet, _ func(*client.Packet)) bool {
		heard <- p
		cancel()
		return true
	})
	if _, err := way.Dial(Cluster)(ctx, "tcp", "pod:443"); err == nil || err.Error() != "dial timeout, context" {
		t.Error(err)
	}
	if asked, last := <-heard, <-heard; last.GetCloseDial().GetRandom() != asked.GetDialRequest().Random {
		t.Errorf("after %v the server heard %v", asked, last)
	}
	s.streams.Wait()
}

// The connection ends when the server or the other end disconnects.
func TestTunnelThatBreaks(t *testing.T) {
	t.Run("the other end", func(t *testing.T) {
		_, way, _ := serve(t, func(p *client.Packet, send func(*client.Packet)) bool {
			if p.Type == client.PacketType_DATA {
				send(data([]byte("bye")))
				send(closeResponse())
				return false
			}
			return echo(p, send)
		})
		conn, err := way.Dial(Cluster)(t.Context(), "tcp", "pod:443")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "hello")
		if got, err := io.ReadAll(conn); string(got) != "bye" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		conn.Close()
	})
	t.Run("the server", func(t *testing.T) {
		_, way, stop := serve(t, echo)
		conn, err := way.Dial(Cluster)(t.Context(), "tcp", "pod:443")
		if err != nil {
			t.Fatal(err)
		}
		stop()
		if got, err := io.ReadAll(conn); len(got) != 0 || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		awaitEnd(t, conn)
		if _, err := io.WriteString(conn, "hello"); err == nil {
			t.Error("a write to a closed tunnel succeeded")
		}
		conn.Close()
		if got := counted(t, way); strings.Contains(got, "client_connections") {
			t.Errorf("a tunnel is left:\n%s", got)
		}
	})
}

// A server that comes back is used, also by dials that already wait.
func TestServerThatIsNotThereYet(t *testing.T) {
	l, socket := listen(t)
	l.Close()
	way := through(t, apiserver.ProtocolGRPC, socket)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	want := `context deadline exceeded: connection error: desc = "transport: error while dialing: dial unix ` + socket + `: connect: no such file or directory"`
	if _, err := way.Dial(Cluster)(ctx, "tcp", "pod:443"); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if got := counted(t, way); !strings.Contains(got, "apiserver_egress_dialer_dial_failure_count protocol=grpc stage=connect transport=uds 1\n") {
		t.Errorf("metrics\n%s", got)
	}
	connected := make(chan error, 1)
	go func() {
		conn, err := way.Dial(Cluster)(t.Context(), "tcp", "pod:443")
		if err == nil {
			conn.Close()
		}
		connected <- err
	}()
	again, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	client.RegisterProxyServiceServer(g, &server{answer: echo})
	go g.Serve(again)
	defer g.Stop()
	if err := <-connected; err != nil {
		t.Error(err)
	}
}

// An HTTP client works over a tunnel.
func TestTunnelCarriesHTTP(t *testing.T) {
	there := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	defer there.Close()
	s, way, _ := serve(t, forward(there.Listener.Addr().String()))
	transport := there.Client().Transport.(*http.Transport).Clone()
	transport.DialContext = way.Dial(Cluster)
	for range 3 {
		answer, err := (&http.Client{Transport: transport}).Post("https://example.com", "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(answer.Body); string(got) != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		answer.Body.Close()
	}
	transport.CloseIdleConnections()
	s.streams.Wait()
}

// forward connects one tunnel to a fixed address, whatever the dial asks for.
func forward(to string) func(*client.Packet, func(*client.Packet)) bool {
	var conn net.Conn
	return func(p *client.Packet, send func(*client.Packet)) bool {
		switch p.Type {
		case client.PacketType_DIAL_REQ:
			var err error
			if conn, err = net.Dial("tcp", to); err != nil {
				send(dialResponse(p.GetDialRequest().Random, err.Error()))
				return false
			}
			send(dialResponse(p.GetDialRequest().Random, ""))
			go func() {
				b := make([]byte, 4096)
				for {
					n, err := conn.Read(b)
					if err != nil {
						return
					}
					send(data(bytes.Clone(b[:n])))
				}
			}()
		case client.PacketType_DATA:
			conn.Write(p.GetData().Data)
		case client.PacketType_CLOSE_REQ:
			conn.Close()
			send(closeResponse())
			return false
		}
		return true
	}
}
