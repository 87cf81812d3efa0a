package rest

import (
	"context"
	"encoding/binary"
	"io"

	"golang.org/x/net/websocket"

	netsocket "github.com/anykind/anykind/internal/network/socket"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/registry"
)

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
	}).ServeHTTP(netsocket.Writer(s.call.w), s.call.Request)
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
		s.sent.add(len(frame))
		if !s.send(frame) {
			return false
		}
	}
	return true
}
