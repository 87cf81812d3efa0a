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
	// patience is how long a tunnel waits for its reader, and for the other side when it is closed.
	// All tunnels through one agent wait for one that does not read.
	patience = 10 * time.Second
	// ahead is how many packets have arrived that nobody has read yet.
	ahead = 10
	// maxData is how much one packet has.
	maxData = 64 << 10
	// retry is how long to wait at most before a server that was not there is tried again.
	retry = time.Second
)

// errBackstop says that a connection took too long, whoever wants it.
var errBackstop = errors.New("dial timeout, backstop")

// openTunnel speaks gRPC with a Konnectivity server, on a socket of this machine. Each connection has
// a tunnel, which is a stream, of its own.
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

// dialServer returns when the server answers. A server that is not there is waited for.
func dialServer(ctx context.Context, name string) (*grpc.ClientConn, error) {
	var mu sync.Mutex
	var last error
	conn, err := grpc.NewClient("passthrough:///konnectivity",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // it is a socket: who may write to it says the file
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

// A tunnel leads to one address. It ends with the stream.
type tunnel struct {
	conn    *grpc.ClientConn
	stream  client.ProxyService_ProxyClient
	cancel  context.CancelFunc // of the stream
	metrics *metrics
	id      int64 // of the request to connect

	answered chan dialled
	data     chan []byte   // that has arrived; closed with the tunnel
	closed   chan struct{} // by our side
	done     chan struct{} // when all has ended

	sending sync.Mutex
	closing sync.Once
	mu      sync.Mutex
	status  string // as metrics name it
}

// dialled is the answer to a request to connect.
type dialled struct {
	connectID int64
	err       *dialError
}

// A dialError says why there is no connection, to the client and to metrics.
type dialError struct{ message, reason string }

func (e *dialError) Error() string { return e.message }

// ended is the status of a tunnel that is counted no more.
const ended = "ended"

// become moves the tunnel to another status.
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

// dial has the server connect to an address. A tunnel is dialled once.
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
	if reason == "timeout" || reason == "context" { // the server still tries
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
		case a = <-t.answered: // and then it ended
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

// serve receives what comes until the tunnel ends.
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

// take reports whether there may be more.
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

// answer reports whether it is the first.
func (t *tunnel) answer(a dialled) bool {
	select {
	case t.answered <- a:
		return true
	default:
		return false
	}
}

// deliver waits for the reader.
func (t *tunnel) deliver(data []byte) bool {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case t.data <- data:
	case <-t.closed: // nobody reads it, and the other side will know
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

// close says good-bye, and ends the tunnel when the other side has heard it, or does not listen. It
// does not wait for that.
func (t *tunnel) close(last *client.Packet) {
	t.closing.Do(func() {
		close(t.closed)
		go func() {
			defer time.AfterFunc(patience, t.cancel).Stop()
			select {
			case <-t.done:
				return
			default:
			}
			t.become("closing")
			t.send(last) // fails if the tunnel has ended, which is as well
			t.sending.Lock()
			t.stream.CloseSend()
			t.sending.Unlock()
			<-t.done
		}()
	})
}

// A tunnelConn is the connection that a tunnel is.
type tunnelConn struct {
	*tunnel
	connectID int64
	address   tunnelled
	rest      []byte // of what was received
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

// A tunnel has no times.
func (c *tunnelConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *tunnelConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *tunnelConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// The address is that at the other end of the tunnel. Of ours, nobody knows.
func (c *tunnelConn) RemoteAddr() net.Addr { return c.address }
func (c *tunnelConn) LocalAddr() net.Addr  { return tunnelled("") }

// tunnelled is host:port.
type tunnelled string

func (tunnelled) Network() string  { return "tcp" }
func (a tunnelled) String() string { return string(a) }
