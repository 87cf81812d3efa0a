package rest

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"

	"golang.org/x/net/websocket"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/registry"
)

// wantsSocket reports whether a client asks for a WebSocket.
func wantsSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// A hijacker hijacks the connection below all wrappers of the ResponseWriter.
type hijacker struct {
	http.ResponseWriter
	out *http.ResponseController
}

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.out.Hijack() }

// overSocket serves the watch over a WebSocket. Handshakes without an Origin are rejected, as in
// Kubernetes.
func (s *stream) overSocket(ctx context.Context, refused error) {
	websocket.Handler(func(conn *websocket.Conn) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer conn.Close()
		go func() {
			defer cancel() // the client disconnected
			_, _ = io.Copy(io.Discard, conn)
		}()
		s.socket, s.writeDeadline.out = &socket{conn, s.view.Format.Media}, conn
		s.tell(ctx, refused)
	}).ServeHTTP(hijacker{s.call.w, s.out}, s.call.Request)
}

// A socket is a client that gets each event as one message.
type socket struct {
	conn  *websocket.Conn
	media codec.Media
}

// send sends a frame, and reports whether the client is connected. The length prefix is omitted:
// a WebSocket message has its own.
func (s *socket) send(frame []byte) bool {
	var err error
	switch {
	case len(frame) == 0:
	case s.media == codec.JSON:
		err = websocket.Message.Send(s.conn, string(frame))
	case s.media == codec.Protobuf:
		err = websocket.Message.Send(s.conn, frame[binary.Size(uint32(0)):])
	default:
		err = websocket.Message.Send(s.conn, frame)
	}
	return err == nil
}

// writeMessages writes events, one message each.
func (s *stream) writeMessages(ctx context.Context, events []registry.WatchEvent) bool {
	s.warm(ctx, events)
	for _, e := range events {
		frame, err := s.frame(ctx, e)
		if err != nil {
			s.fail(err)
			return false
		}
		s.written = true
		s.sent.addOne(len(frame))
		if !s.send(frame) {
			return false
		}
	}
	return true
}
