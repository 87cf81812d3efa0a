package envtest

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"google.golang.org/grpc/test/bufconn"
)

// memory is a listener without a socket. Both ends of its connections block durably for
// testing/synctest.
type memory struct {
	*bufconn.Listener
	at *net.TCPAddr
}

// buffer is the number of bytes in a connection before a writer blocks.
const buffer = 1 << 20

func newMemory(at ListenAddr) (*memory, error) {
	ip := net.ParseIP(at.Address)
	port, err := strconv.ParseUint(at.Port, 10, 16)
	if ip == nil || err != nil {
		return nil, fmt.Errorf("a server in memory listens on an IP address and a port, not on %q", at.HostPort())
	}
	return &memory{bufconn.Listen(buffer), &net.TCPAddr{IP: ip, Port: int(port)}}, nil
}

// Addr implements net.Listener.
func (m *memory) Addr() net.Addr { return m.at }

// Accept implements net.Listener.
func (m *memory) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", net.ErrClosed, err) // it fails in no other way
	}
	return addressed{c, m.at}, nil
}

// dial is the Dial of clients. It connects to this server only.
func (m *memory) dial(ctx context.Context, _, address string) (net.Conn, error) {
	if address != m.at.String() {
		return nil, fmt.Errorf("dial %s: only the server at %s can be reached without a network", address, m.at)
	}
	c, err := m.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return addressed{c, m.at}, nil
}

// An addressed connection has addresses of this host.
type addressed struct {
	net.Conn
	at net.Addr
}

// InMemory tells the server that there are no packets to save.
func (addressed) InMemory() {}

func (a addressed) LocalAddr() net.Addr  { return a.at }
func (a addressed) RemoteAddr() net.Addr { return a.at }
