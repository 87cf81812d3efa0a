package server

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// A restriction excludes clients without a version, cipher suite or key exchange in common.
func TestProtocol(t *testing.T) {
	const suite = tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
	both := []string{"h2", "http/1.1"}
	for name, c := range map[string]struct {
		server  Protocol
		client  *tls.Config
		refused string
		next    string // the negotiated protocol
	}{
		"the default":             {client: &tls.Config{NextProtos: both}, next: "h2"},
		"no TLS 1.1":              {client: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, refused: "protocol version"},
		"TLS 1.1, if allowed":     {server: Protocol{MinVersion: tls.VersionTLS10, HTTP1: true}, client: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}},
		"TLS 1.2":                 {client: &tls.Config{MaxVersion: tls.VersionTLS12, NextProtos: both}, next: "h2"},
		"TLS 1.3 only":            {server: Protocol{MinVersion: tls.VersionTLS13}, client: &tls.Config{MaxVersion: tls.VersionTLS12}, refused: "protocol version"},
		"a suite in common":       {server: Protocol{CipherSuites: []uint16{suite}}, client: &tls.Config{MaxVersion: tls.VersionTLS12, NextProtos: both}, next: "h2"},
		"no suite in common":      {server: Protocol{CipherSuites: []uint16{suite}}, client: &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}}, refused: "handshake failure"},
		"a key exchange":          {server: Protocol{Curves: []tls.CurveID{tls.CurveP256}}, client: &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP384, tls.CurveP256}}},
		"no key exchange":         {server: Protocol{Curves: []tls.CurveID{tls.CurveP256}}, client: &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP384}}, refused: "handshake failure"},
		"HTTP/1.1 only":           {server: Protocol{HTTP1: true}, client: &tls.Config{NextProtos: both}, next: "http/1.1"},
		"HTTP/2 against HTTP/1.1": {server: Protocol{HTTP1: true}, client: &tls.Config{NextProtos: both[:1]}, refused: "no application protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serveWith(t, c.server)
			c.client.InsecureSkipVerify = true
			conn, err := tls.Dial("tcp", address, c.client)
			if err != nil {
				if c.refused == "" || !strings.Contains(err.Error(), c.refused) {
					t.Fatal(err)
				}
				return
			}
			defer conn.Close()
			if c.refused != "" {
				t.Fatalf("connected by %x, want %s", conn.ConnectionState().Version, c.refused)
			}
			if got := conn.ConnectionState().NegotiatedProtocol; got != c.next {
				t.Errorf("%q is negotiated, want %q", got, c.next)
			}
		})
	}
}

// The settings of an HTTP/2 connection have the number of its streams.
func TestStreamsOfConnection(t *testing.T) {
	for streams, want := range map[int]uint32{0: defaultStreams, 7: 7} {
		conn, err := tls.Dial("tcp", serveWith(t, Protocol{Streams: streams}), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := (frames{conn}).write(frameSettings, 0, 0, nil); err != nil {
			t.Fatal(err)
		}
		if got := allowedStreams(t, conn); got != want {
			t.Errorf("%d: the server allows %d streams, want %d", streams, got, want)
		}
	}
}

// allowedStreams returns SETTINGS_MAX_CONCURRENT_STREAMS of the first frame of a server.
func allowedStreams(t *testing.T, from io.Reader) uint32 {
	t.Helper()
	head := make([]byte, 9)
	if _, err := io.ReadFull(from, head); err != nil || head[3] != frameSettings {
		t.Fatalf("the first frame is %x, %v", head, err)
	}
	settings := make([]byte, head[2])
	if _, err := io.ReadFull(from, settings); err != nil {
		t.Fatal(err)
	}
	for ; len(settings) > 0; settings = settings[6:] {
		if binary.BigEndian.Uint16(settings) == 3 {
			return binary.BigEndian.Uint32(settings[2:])
		}
	}
	t.Fatal("the setting is missing")
	return 0
}

// serveWith serves with a protocol, and returns the address.
func serveWith(t *testing.T, p Protocol) string {
	t.Helper()
	o := everyone(nothing)
	o.TLS, _ = certificate(t)
	o.Protocol = p
	return listening(t, New(o))
}

// listening serves until the end of the test, and returns the address.
func listening(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Drain(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}
