// Package spdy is the client of SPDY/3.1 over an upgraded connection, as far as kubelets and container runtimes need it.
//
// The client opens all streams. Flow control is that of the connection, as in those servers: a stream that is not read blocks
// the others.
package spdy

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// openTimeout limits the wait for the reply to a new stream.
	openTimeout = 30 * time.Second
	// pingPeriod is the time between two pings, without which proxies between both ends close an idle connection.
	pingPeriod = 5 * time.Second
	// maxControl limits the body of a control frame that is read.
	maxControl = 64 << 10
)

// The types of control frames, with the version of the protocol.
const (
	version        = 0x8003 // with the bit of control frames
	synStream      = 1
	synReply       = 2
	rstStream      = 3
	ping           = 6
	goAway         = 7
	fin       byte = 1 // a flag
)

var (
	errClosed  = errors.New("the connection is closed")
	errReset   = errors.New("the server reset the stream")
	errTimeout = errors.New("the server did not reply to a new stream in time")
)

// A Conn is the client's end of a connection.
type Conn struct {
	raw   io.ReadWriteCloser
	done  chan struct{}
	pongs chan uint32 // ids of pings of the server

	write   sync.Mutex // guards the fields below, and the order of frames
	next    uint32     // the id of the next stream
	headers *zlib.Writer
	block   bytes.Buffer // the output of headers

	mu      sync.Mutex
	closed  bool
	streams map[uint32]*Stream
}

// New returns a Conn over an upgraded connection. Close ends it.
func New(raw io.ReadWriteCloser) *Conn {
	c := &Conn{raw: raw, done: make(chan struct{}), pongs: make(chan uint32, 1), next: 1, streams: map[uint32]*Stream{}}
	c.headers = zlib.NewWriter(&c.block)
	go c.read()
	go c.ping()
	return c
}

// Close ends the connection and all streams.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	close(c.done)
	for _, s := range c.streams {
		s.end(io.EOF)
	}
	c.mu.Unlock()
	return c.raw.Close()
}

// Open opens a stream with one header, and waits until the server has accepted it.
func (c *Conn) Open(header, value string) (*Stream, error) {
	s, err := c.start(header, value)
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(openTimeout)
	defer late.Stop()
	select {
	case err := <-s.reply:
		return s, err
	case <-c.done:
		return nil, errClosed
	case <-late.C:
		return nil, errTimeout
	}
}

// start sends the frame that opens a stream. Ids of streams increase in the order of these frames.
func (c *Conn) start(header, value string) (*Stream, error) {
	c.write.Lock()
	defer c.write.Unlock()
	id := c.next
	c.next += 2
	r, w := io.Pipe()
	s := &Stream{conn: c, id: id, reply: make(chan error, 1), in: w, Reader: r}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	c.streams[s.id] = s
	c.mu.Unlock()

	// The header block has no preset dictionary: zlib decodes such a block, too.
	pairs := binary.BigEndian.AppendUint32(nil, 1)
	for _, text := range []string{strings.ToLower(header), value} {
		pairs = binary.BigEndian.AppendUint32(pairs, uint32(len(text)))
		pairs = append(pairs, text...)
	}
	c.block.Reset()
	if _, err := c.headers.Write(pairs); err != nil {
		return nil, err
	}
	if err := c.headers.Flush(); err != nil {
		return nil, err
	}
	body := binary.BigEndian.AppendUint32(nil, s.id)
	body = append(body, make([]byte, 6)...) // the associated stream, the priority and a slot
	return s, c.control(synStream, append(body, c.block.Bytes()...))
}

// control writes a control frame. The caller holds c.write.
func (c *Conn) control(kind uint16, body []byte) error {
	frame := binary.BigEndian.AppendUint16(nil, version)
	frame = binary.BigEndian.AppendUint16(frame, kind)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(body)))
	_, err := c.raw.Write(append(frame, body...))
	return err
}

// data writes a data frame.
func (c *Conn) data(id uint32, flags byte, data []byte) error {
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 8+len(data)), id)
	frame = binary.BigEndian.AppendUint32(frame, uint32(flags)<<24|uint32(len(data)))
	c.write.Lock()
	defer c.write.Unlock()
	_, err := c.raw.Write(append(frame, data...))
	return err
}

// ping sends pings, and replies to those of the server, until the connection is closed. Replies to its own are not awaited.
func (c *Conn) ping() {
	each := time.NewTicker(pingPeriod)
	defer each.Stop()
	own := uint32(1)
	for {
		var id uint32
		select {
		case <-c.done:
			return
		case id = <-c.pongs:
		case <-each.C:
			id, own = own, own+2
		}
		c.write.Lock()
		err := c.control(ping, binary.BigEndian.AppendUint32(nil, id))
		c.write.Unlock()
		if err != nil {
			return
		}
	}
}

// read reads frames until the connection ends.
func (c *Conn) read() {
	defer c.Close()
	in := bufio.NewReader(c.raw)
	for {
		var head [8]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		first, flags := binary.BigEndian.Uint32(head[:]), head[4]
		size := int64(binary.BigEndian.Uint32(head[4:]) & 0xffffff)
		var err error
		if first>>31 == 0 {
			err = c.received(first, flags, size, in)
		} else {
			err = c.controlled(uint16(first), flags, size, in)
		}
		if err != nil {
			return
		}
	}
}

func (c *Conn) stream(id uint32) *Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// received passes the body of a data frame to its stream. Data for no stream, and that for one that is no longer read, is
// dropped.
func (c *Conn) received(id uint32, flags byte, size int64, in io.Reader) error {
	body := &io.LimitedReader{R: in, N: size}
	s := c.stream(id)
	if s != nil {
		_, _ = io.Copy(s.in, body) // an error of the connection shows below
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	if body.N > 0 {
		return io.ErrUnexpectedEOF
	}
	if s != nil && flags&fin != 0 {
		s.end(io.EOF)
	}
	return nil
}

// controlled handles a control frame. It skips headers, settings and other frames that need no answer.
func (c *Conn) controlled(kind uint16, flags byte, size int64, in io.Reader) error {
	if size > maxControl {
		return fmt.Errorf("a control frame has %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(in, body); err != nil {
		return err
	}
	if kind == goAway {
		return io.EOF
	}
	if len(body) < 4 {
		return nil
	}
	id := binary.BigEndian.Uint32(body)
	if kind == ping {
		if id%2 == 0 { // otherwise it is a reply
			select {
			case c.pongs <- id:
			default: // reads do not wait for writes: the server may wait for reads
			}
		}
		return nil
	}
	s := c.stream(id)
	switch {
	case s == nil:
	case kind == rstStream:
		s.accept(errReset)
		s.end(io.EOF)
	case kind == synReply:
		s.accept(nil)
		if flags&fin != 0 {
			s.end(io.EOF)
		}
	}
	return nil
}

// A Stream carries bytes in both directions. Reads end with io.EOF when the server has closed its direction, and when the
// connection ends.
type Stream struct {
	io.Reader
	conn  *Conn
	id    uint32
	in    *io.PipeWriter
	reply chan error

	finish sync.Once
}

// accept notes the first reply of the server.
func (s *Stream) accept(err error) {
	select {
	case s.reply <- err:
	default: // the stream had a reply
	}
}

// end ends reads.
func (s *Stream) end(err error) { _ = s.in.CloseWithError(err) } // it never fails

// Write writes to the server.
func (s *Stream) Write(data []byte) (int, error) {
	const most = 1 << 20 // less than a frame could have
	for rest := data; len(rest) > 0; {
		part := rest[:min(len(rest), most)]
		if err := s.conn.data(s.id, 0, part); err != nil {
			return len(data) - len(rest), err
		}
		rest = rest[len(part):]
	}
	return len(data), nil
}

// Close closes the direction to the server. The other one stays open.
func (s *Stream) Close() (err error) {
	s.finish.Do(func() { err = s.conn.data(s.id, fin, nil) })
	return err
}
