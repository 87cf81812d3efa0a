package server

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// The HTTP/2 frames that these tests write themselves, because no client misbehaves like this.
const (
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	framePing     = 6

	endOfRequest = 1 | 4 // flags of headers without a body
)

// frames is a connection on which a test writes HTTP/2 frames. It is never read, except by a test
// itself.
type frames struct{ net.Conn }

// frames opens a connection and sends the preface.
func (b *bench) frames() frames {
	c := frames{tls.Client(b.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})}
	if _, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
		b.Fatal(err)
	}
	if err := c.write(frameSettings, 0, 0, nil); err != nil {
		b.Fatal(err)
	}
	return c
}

func (c frames) write(kind, flags byte, stream uint32, payload []byte) error {
	frame := append([]byte{0, 0, byte(len(payload)), kind, flags}, binary.BigEndian.AppendUint32(nil, stream)...)
	_, err := c.Write(append(frame, payload...))
	return err
}

// get sends bob's request for a path.
func (c frames) get(stream uint32, path string) error {
	headers := []byte{0x82, 0x87} // GET, https
	for _, h := range [][2]string{{":authority", "anykind"}, {":path", path}, {"authorization", "Bearer bob"}} {
		headers = append(headers, 0) // a literal, never indexed
		for _, s := range h {
			headers = append(append(headers, byte(len(s))), s...)
		}
	}
	return c.write(frameHeaders, endOfRequest, stream, headers)
}

// "CVE-2023-44487 HTTP/2 rapid reset: stream cap": resetting streams at once does not raise the
// number of requests in progress above the cap, and the server closes the connection of a client
// that goes on.
func TestRapidReset(t *testing.T) {
	measured(t, func(b *bench) {
		release := make(chan struct{})
		var inside atomic.Int64
		b.api = func(http.ResponseWriter, *http.Request) { inside.Add(1); <-release }
		c := b.frames()
		gone := make(chan struct{})
		go func() { defer close(gone); _, _ = io.Copy(io.Discard, c) }()
		for i := range uint32(1000) {
			if c.get(2*i+1, "/apis/g/v1/things") != nil || c.write(frameReset, 0, 2*i+1, []byte{0, 0, 0, 8}) != nil {
				break
			}
		}
		select {
		case <-gone:
		case <-time.After(10 * time.Minute):
			b.Error("it may go on")
		}
		if n := inside.Load(); n != 100 {
			b.Errorf("%d requests are at work", n)
		}
		close(release)
	})
}

// "A slow or dead watcher does not hold memory after it is gone", "request time: 60 s": the
// server closes the connection of a client that reads nothing, however much it sends. Such a
// client would not read a stream reset or a ping either.
func TestDeafClient(t *testing.T) {
	for _, path := range []string{"/apis/g/v1/things", "/apis/g/v1/things?watch=true"} {
		t.Run(path, func(t *testing.T) {
			measured(t, func(b *bench) {
				ended := make(chan struct{})
				b.api = func(w http.ResponseWriter, r *http.Request) {
					var err error
					for data := make([]byte, 16<<10); err == nil; {
						_, err = w.Write(data)
					}
					close(ended)
				}
				c := b.frames()
				if err := c.get(1, path); err != nil {
					b.Fatal(err)
				}
				ctx, stop := context.WithCancel(b.Context())
				defer stop()
				go func() {
					for range time.Tick(time.Second) {
						if ctx.Err() != nil || c.write(framePing, 0, 0, make([]byte, 8)) != nil {
							return
						}
					}
				}()
				select {
				case <-ended:
				case <-time.After(10 * time.Minute):
					b.Error("it holds a handler for ever")
				}
			})
		})
	}
}
