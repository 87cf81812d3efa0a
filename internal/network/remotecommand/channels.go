package remotecommand

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"golang.org/x/net/websocket"
)

// The channels of a WebSocket. Each message begins with its channel. The channel closing has the number of the one that the client
// closes.
const (
	stdin   = 0
	stdout  = 1
	stderr  = 2
	failure = 3 // the outcome
	resize  = 4
	closing = 255
)

const (
	// idle is the time without messages after which the connection ends.
	idle = 4 * time.Hour
	// finishTimeout limits the write of the outcome.
	finishTimeout = 10 * time.Second
)

// channels are the client's side of a command.
type channels struct {
	ctx      context.Context // ends when the client disconnects, or the server ends
	conn     *websocket.Conn
	stdin    *io.PipeReader
	sizes    *io.PipeReader
	toStdin  *io.PipeWriter
	toResize *io.PipeWriter
}

func newChannels(ctx context.Context, conn *websocket.Conn, s Streams) *channels {
	c := &channels{ctx: ctx, conn: conn}
	c.stdin, c.toStdin = io.Pipe()
	c.sizes, c.toResize = io.Pipe()
	if !s.Stdin {
		c.stdin.Close() // its messages are dropped
	}
	if !s.TTY {
		c.sizes.Close()
	}
	return c
}

// send sends a message on a channel. A client that does not read blocks it, until finishTimeout after the end of ctx.
func (c *channels) send(channel byte, data []byte) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(idle)) // the connection is closed if this fails
	defer context.AfterFunc(c.ctx, func() { _ = c.conn.SetWriteDeadline(time.Now().Add(finishTimeout)) })()
	return websocket.Message.Send(c.conn, append([]byte{channel}, data...))
}

// A channelWriter sends each write as a message.
type channelWriter struct {
	*channels
	channel byte
}

func (w channelWriter) Write(data []byte) (int, error) {
	if err := w.send(w.channel, data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// read reads messages until the client disconnects or violates the protocol. Data on other channels is dropped, and so is data that
// is no longer read.
func (c *channels) read() {
	defer c.toStdin.Close()
	defer c.toResize.Close()
	for {
		_ = c.conn.SetReadDeadline(time.Now().Add(idle)) // the connection is closed if this fails
		var data []byte
		if err := websocket.Message.Receive(c.conn, &data); err != nil {
			return
		}
		switch {
		case len(data) == 0:
		case data[0] == stdin:
			_, _ = c.toStdin.Write(data[1:])
		case data[0] == resize:
			_, _ = c.toResize.Write(data[1:])
		case data[0] != closing:
		case len(data) != 2 || data[1] > resize:
			return
		case data[1] == stdin:
			c.toStdin.Close()
		case data[1] == resize:
			c.toResize.Close()
		}
	}
}

// resizes sends sizes of the terminal to the command, as long as they are valid.
func (c *channels) resizes(to io.Writer) {
	defer c.sizes.Close()
	from, out := json.NewDecoder(c.sizes), json.NewEncoder(to)
	for {
		var size struct{ Width, Height uint16 }
		if from.Decode(&size) != nil || out.Encode(size) != nil {
			return
		}
	}
}

// finish sends the outcome and disconnects the client.
func (c *channels) finish(outcome []byte) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(finishTimeout)) // the connection is closed if this fails
	_ = websocket.Message.Send(c.conn, append([]byte{failure}, outcome...))
	c.stdin.Close()
	c.sizes.Close()
	c.conn.Close()
}
