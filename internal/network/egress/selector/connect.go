package selector

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// maxAnswer limits a proxy's answer to CONNECT.
const maxAnswer = http.DefaultMaxHeaderBytes

// connectByTCP sends HTTP CONNECT to a proxy over TLS.
func connectByTCP(proxyAddress string, config *tls.Config) func(context.Context) (proxy, error) {
	return connectBy(proxyAddress, func(ctx context.Context) (net.Conn, error) {
		d := tls.Dialer{Config: config}
		return d.DialContext(ctx, "tcp", proxyAddress)
	})
}

// connectByUDS sends HTTP CONNECT to a proxy over a Unix socket.
func connectByUDS(name string) func(context.Context) (proxy, error) {
	return connectBy(name, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", name)
	})
}

func connectBy(name string, dial func(context.Context) (net.Conn, error)) func(context.Context) (proxy, error) {
	return func(ctx context.Context) (proxy, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, address string) (net.Conn, error) {
			if err := ask(ctx, conn, name, address); err != nil {
				conn.Close()
				return nil, err
			}
			return conn, nil
		}, nil
	}
}

// ask asks a proxy to connect to an address, until ctx ends.
func ask(ctx context.Context, conn net.Conn, proxy, address string) error {
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	failed := func(err error) error {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("reading HTTP response from CONNECT to %s via proxy %s failed: %w", address, proxy, err)
	}
	// The proxy reads only the address. The host equals kube-apiserver's.
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", address); err != nil {
		return failed(err)
	}
	reader := bufio.NewReader(io.LimitReader(conn, maxAnswer))
	answer, err := http.ReadResponse(reader, nil)
	if err != nil {
		return failed(err)
	}
	switch {
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("proxy error from %s while dialing %s, code %d: %s", proxy, address, answer.StatusCode, answer.Status)
	case reader.Buffered() > 0: // in every protocol the client speaks first
		return fmt.Errorf("unexpected %d bytes of buffered data from CONNECT proxy %q", reader.Buffered(), proxy)
	case !stop():
		return failed(ctx.Err())
	}
	return nil
}
