package selector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

const (
	// tunnelTimeout limits the wait of a tunnel for its reader, and for the acknowledgement of a
	// close. A tunnel that is not read blocks all tunnels of its agent.
	tunnelTimeout = 10 * time.Second
	// ahead limits the packets that are received but not yet read.
	ahead = 10
	// maxData limits the data of a packet.
	maxData = 64 << 10
	// retry is the longest pause between attempts to reach a server.
	retry = time.Second
)

// errBackstop is the error of a dial that exceeds dialTimeout.
var errBackstop = errors.New("dial timeout, backstop")

// openTunnel connects to a Konnectivity server over gRPC, on a Unix socket. Each connection has
// its own stream.
func openTunnel(name string, m *metrics) func(context.Context) (proxy, error) {
	return func(ctx context.Context) (proxy, error) {
		conn, err := dialServer(ctx, name)
		if err != nil {
			return nil, err
		}
		t := &tunnel{
			conn: conn, metrics: m, id: rand.Int64(),
			answered: make(chan dialled, 1), data: make(chan []byte, ahead), closed: make(chan struct{}), done: make(chan struct{}),
		}
		var life context.Context
		life, t.cancel = context.WithCancel(context.Background())
		if t.stream, err = client.NewProxyServiceClient(conn).Proxy(life); err != nil {
			t.cancel()
			return nil, errors.Join(err, conn.Close())
		}
		t.become("created")
		go t.serve()
		return t.dial, nil
	}
}

// dialServer returns once the server answers. It waits for a server that is not there yet.
func dialServer(ctx context.Context, name string) (*grpc.ClientConn, error) {
	var mu sync.Mutex
	var last error
	conn, err := grpc.NewClient("passthrough:///konnectivity",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // access is limited by the permissions of the socket
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: retry / 10, Multiplier: 1.6, Jitter: 0.2, MaxDelay: retry},
			MinConnectTimeout: dialTimeout,
		}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, "unix", name)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				last = err
			}
			return c, err
		}))
	if err != nil {
		return nil, err
	}
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if conn.WaitForStateChange(ctx, state) {
			continue
		}
		mu.Lock()
		defer mu.Unlock()
		err := ctx.Err()
		if last != nil {
			err = fmt.Errorf("%w: connection error: desc = %q", err, fmt.Sprintf("transport: error while dialing: %v", last))
		}
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// A tunnel is a connection to one address. It ends with its stream.
type tunnel struct {
	conn    *grpc.ClientConn
	stream  client.ProxyService_ProxyClient
	cancel  context.CancelFunc // of the stream
	metrics *metrics
	id      int64 // of the request to connect

	answered chan dialled
	data     chan []byte   // received; closed with the tunnel
	closed   chan struct{} // closed by our side
	done     chan struct{} // closed when everything has ended

	sending sync.Mutex
	closing sync.Once
	mu      sync.Mutex
	status  string // label of metrics
}

// dialled is the answer to a dial request.
type dialled struct {
	connectID int64
	err       *dialError
}

// A dialError is the reason of a failed dial, for the client and for metrics.
type dialError struct{ message, reason string }

func (e *dialError) Error() string { return e.message }

// ended is the status of a tunnel that no gauge counts.
const ended = "ended"

// become changes the status of the tunnel.
func (t *tunnel) become(status string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status == ended {
		return
	}
	if t.status != "" {
		t.metrics.tunnels.WithLabelValues(t.status).Dec()
	}
	if t.status = status; status != ended {
		t.metrics.tunnels.WithLabelValues(status).Inc()
	}
}

// dial asks the server to connect to an address. It is called once.
func (t *tunnel) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := t.connect(ctx, address)
	if err == nil {
		return conn, nil
	}
	reason := "unknown"
	if failed := (*dialError)(nil); errors.As(err, &failed) {
		reason = failed.reason
	}
	t.metrics.dialFailures.WithLabelValues(reason).Inc()
	if reason == "timeout" || reason == "context" { // the server may still be connecting
		t.close(&client.Packet{Type: client.PacketType_DIAL_CLS, Payload: &client.Packet_CloseDial{CloseDial: &client.CloseDial{Random: t.id}}})
	} else {
		t.cancel()
	}
	return nil, err
}

func (t *tunnel) connect(ctx context.Context, address string) (net.Conn, error) {
	t.become("dialing")
	err := t.send(&client.Packet{Type: client.PacketType_DIAL_REQ, Payload: &client.Packet_DialRequest{
		DialRequest: &client.DialRequest{Protocol: "tcp", Address: address, Random: t.id},
	}})
	if err != nil {
		return nil, err
	}
	var a dialled
	select {
	case a = <-t.answered:
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errBackstop) {
			return nil, &dialError{errBackstop.Error(), "timeout"}
		}
		return nil, &dialError{"dial timeout, context", "context"}
	case <-t.done:
		select {
		case a = <-t.answered: // the tunnel ended after the answer
		default:
			return nil, &dialError{"tunnel closed", "tunnelclosed"}
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	t.become("ok")
	return &tunnelConn{tunnel: t, connectID: a.connectID, address: tunnelled(address)}, nil
}

// serve receives packets until the tunnel ends.
func (t *tunnel) serve() {
	defer func() {
		t.cancel()
		t.conn.Close()
		t.become(ended)
		close(t.data)
		close(t.done)
	}()
	for t.take(t.receive()) {
	}
}

// take handles a packet, and reports whether more may follow.
func (t *tunnel) take(p *client.Packet, err error) bool {
	if err != nil {
		return false
	}
	switch p.Type {
	case client.PacketType_DIAL_RSP:
		r := p.GetDialResponse()
		a := dialled{connectID: r.ConnectID}
		if r.Error != "" {
			a.err = &dialError{r.Error, "endpoint"}
		}
		return r.Random == t.id && t.answer(a) && a.err == nil
	case client.PacketType_DIAL_CLS:
		t.answer(dialled{err: &dialError{"dial closed", "dialclosed"}})
		return false
	case client.PacketType_DATA:
		return t.deliver(p.GetData().Data)
	case client.PacketType_CLOSE_RSP:
		return false
	}
	return true
}

// answer records the answer to the dial, and reports whether it is the first.
func (t *tunnel) answer(a dialled) bool {
	select {
	case t.answered <- a:
		return true
	default:
		return false
	}
}

// deliver passes data to the reader, and waits for it.
func (t *tunnel) deliver(data []byte) bool {
	late := time.NewTimer(tunnelTimeout)
	defer late.Stop()
	select {
	case t.data <- data:
	case <-t.closed: // not read, and the other side learns of the close
	case <-late.C:
		return false
	}
	return true
}

func (t *tunnel) receive() (*client.Packet, error) {
	const segment = "to_client"
	p, err := t.stream.Recv()
	switch {
	case err == nil:
		t.metrics.packets.WithLabelValues(segment, p.Type.String()).Inc()
	case !errors.Is(err, io.EOF):
		t.metrics.streamErrors.WithLabelValues(segment, status.Code(err).String(), "Unknown").Inc()
	}
	return p, err
}

func (t *tunnel) send(p *client.Packet) error {
	const segment = "from_client"
	t.sending.Lock()
	defer t.sending.Unlock()
	t.metrics.packets.WithLabelValues(segment, p.Type.String()).Inc()
	err := t.stream.Send(p)
	if err != nil && !errors.Is(err, io.EOF) {
		t.metrics.streamErrors.WithLabelValues(segment, status.Code(err).String(), p.Type.String()).Inc()
	}
	return err
}

// close sends last, and ends the tunnel once the other side acknowledges it or a timeout passes.
// It does not wait for that.
func (t *tunnel) close(last *client.Packet) {
	t.closing.Do(func() {
		close(t.closed)
		go func() {
			defer time.AfterFunc(tunnelTimeout, t.cancel).Stop()
			select {
			case <-t.done:
				return
			default:
			}
			t.become("closing")
			t.send(last) // an error means that the tunnel has ended
			t.sending.Lock()
			t.stream.CloseSend()
			t.sending.Unlock()
			<-t.done
		}()
	})
}

// A tunnelConn is the net.Conn of a tunnel.
type tunnelConn struct {
	*tunnel
	connectID int64
	address   tunnelled
	rest      []byte // of received data
}

func (c *tunnelConn) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		select {
		case <-c.closed:
			return 0, net.ErrClosed
		default:
		}
		var more bool
		select {
		case c.rest, more = <-c.data:
			if !more {
				return 0, io.EOF
			}
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *tunnelConn) Write(b []byte) (int, error) {
	for n := 0; n < len(b); {
		part := b[n:min(n+maxData, len(b))]
		select {
		case <-c.closed:
			return n, net.ErrClosed
		default:
		}
		err := c.send(&client.Packet{Type: client.PacketType_DATA, Payload: &client.Packet_Data{
			Data: &client.Data{ConnectID: c.connectID, Data: part},
		}})
		if err != nil {
			return n, err
		}
		n += len(part)
	}
	return len(b), nil
}

func (c *tunnelConn) Close() error {
	c.close(&client.Packet{Type: client.PacketType_CLOSE_REQ, Payload: &client.Packet_CloseRequest{
		CloseRequest: &client.CloseRequest{ConnectID: c.connectID},
	}})
	return nil
}

// SetDeadline and the like return an error: a tunnel has no deadlines.
func (c *tunnelConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *tunnelConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *tunnelConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// RemoteAddr returns the address at the other end of the tunnel. The local one is unknown.
func (c *tunnelConn) RemoteAddr() net.Addr { return c.address }
func (c *tunnelConn) LocalAddr() net.Addr  { return tunnelled("") }

// A tunnelled address is host:port.
type tunnelled string

func (tunnelled) Network() string  { return "tcp" }
func (a tunnelled) String() string { return string(a) }
