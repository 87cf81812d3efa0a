// Package load is a client of any HTTP server that speaks HTTP/2 over TLS. It sends prepared
// requests, counts the answers, and measures their time. It knows nothing of Kubernetes, or of
// the server that it talks to.
//
// It writes HTTP/2 frames itself, so it takes little of the machine that it shares with the
// server, and its source shows exactly what is sent.
package load

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A Target is where requests go.
type Target struct {
	Address string // host:port
	TLS     *tls.Config
	Token   string // a bearer token
}

// A Request is what is sent. The path has the query.
type Request struct {
	Method, Path string
	ContentType  string
	Accept       string // the form of the answer, "" for JSON
	Body         []byte
	Least        int // the answer has at least so many bytes, or it counts as an error
	Refusable    int // a status of 4xx that is an answer as good as any, 0 for none
}

// A Response is what came back. Start is the beginning of the body, and is valid
// until the next request.
type Response struct {
	Status int
	Size   int
	Start  []byte
}

// kept is how much of a body is kept, to say what an error was.
const kept = 2 << 10

// window is how much a server may send before it is told that more is welcome.
const window = 1 << 30

// received is how much is taken from the socket at once, so that what came since the
// last time costs one call of the system, however many records of TLS it is.
const received = 256 << 10

// A gathered connection is a socket of which as much is read as there is.
type gathered struct {
	net.Conn
	in *bufio.Reader
}

func (g gathered) Read(p []byte) (int, error) { return g.in.Read(p) }

// A Conn is one connection. One goroutine uses it at a time.
type Conn struct {
	conn   *tls.Conn
	out    *bufio.Writer
	framer *http2.Framer
	target Target

	header  bytes.Buffer
	encoder *hpack.Encoder
	decoder *hpack.Decoder
	status  int // that the decoder has found

	next      uint32 // the stream of the next request
	allowed   int64  // bytes that may be sent in all streams together
	perStream int64  // ... in a new stream
	largest   int    // frame that the server takes
	taken     uint32 // bytes received that the server does not know of
	keep      int    // how much of a body is kept
	start     []byte
}

// Dial opens a connection.
func Dial(ctx context.Context, t Target) (*Conn, error) {
	config := t.TLS.Clone()
	config.NextProtos = []string{"h2"}
	var dialer net.Dialer
	plain, err := dialer.DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return nil, err
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(t.Address) // it was dialed
	}
	secure := tls.Client(gathered{plain, bufio.NewReaderSize(plain, received)}, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, err
	}
	c := &Conn{
		conn: secure, target: t, next: 1,
		allowed: 65535, perStream: 65535, largest: 16384, keep: kept,
	}
	c.out = bufio.NewWriterSize(c.conn, 32<<10)
	c.framer = http2.NewFramer(c.out, bufio.NewReaderSize(c.conn, 64<<10))
	c.framer.SetReuseFrames()
	c.encoder = hpack.NewEncoder(&c.header)
	c.decoder = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == ":status" {
			c.status, _ = strconv.Atoi(f.Value) // 0 is no status that anybody wants
		}
	})
	if err := c.greet(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// greet sends the preface, and returns when the server has said what it allows.
func (c *Conn) greet() error {
	if _, err := io.WriteString(c.out, http2.ClientPreface); err != nil {
		return err
	}
	settings := []http2.Setting{
		{ID: http2.SettingEnablePush, Val: 0},
		{ID: http2.SettingInitialWindowSize, Val: window},
	}
	if err := c.framer.WriteSettings(settings...); err != nil {
		return err
	}
	if err := c.framer.WriteWindowUpdate(0, window-65535); err != nil {
		return err
	}
	if err := c.out.Flush(); err != nil {
		return err
	}
	f, err := c.framer.ReadFrame()
	if err != nil {
		return err
	}
	return c.own(f)
}

// Close ends the connection and the requests in it.
func (c *Conn) Close() error { return c.conn.Close() }

// Do sends a request and reads the whole answer. An error says that there is none.
func (c *Conn) Do(r *Request) (Response, error) {
	stream, err := c.send(r)
	if err != nil {
		return Response{}, err
	}
	got := Response{}
	c.start = c.start[:0]
	for {
		f, err := c.read()
		if err != nil {
			return got, err
		}
		if f.Header().StreamID != stream {
			continue // what is left of a stream that was given up
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			if got.Status == 0 {
				got.Status = c.status
			}
			if f.StreamEnded() {
				got.Start = c.start
				return got, nil
			}
		case *http2.DataFrame:
			data := f.Data()
			got.Size += len(data)
			c.start = append(c.start, data[:min(len(data), c.keep-len(c.start))]...)
			if f.StreamEnded() {
				got.Start = c.start
				return got, nil
			}
		case *http2.RSTStreamFrame:
			return got, fmt.Errorf("the server gave up a request: %v", f.ErrCode)
		}
	}
}

// send writes a request and returns its stream.
func (c *Conn) send(r *Request) (uint32, error) {
	stream := c.next
	c.next += 2
	c.header.Reset()
	c.field(":method", r.Method)
	c.field(":scheme", "https")
	c.field(":authority", c.target.Address)
	c.field(":path", r.Path)
	c.field("accept", cmp.Or(r.Accept, "application/json"))
	c.field("authorization", "Bearer "+c.target.Token)
	if len(r.Body) > 0 {
		c.field("content-type", r.ContentType)
		c.field("content-length", strconv.Itoa(len(r.Body)))
	}
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: c.header.Bytes(), EndHeaders: true, EndStream: len(r.Body) == 0,
	})
	if err != nil {
		return 0, err
	}
	if err := c.sendBody(stream, r.Body); err != nil {
		return 0, err
	}
	return stream, c.out.Flush()
}

// sendBody writes what the server allows, and waits until it allows more.
func (c *Conn) sendBody(stream uint32, body []byte) error {
	allowed := c.perStream
	for len(body) > 0 {
		n := int(min(int64(len(body)), int64(c.largest), allowed, c.allowed))
		if n > 0 {
			if err := c.framer.WriteData(stream, n == len(body), body[:n]); err != nil {
				return err
			}
			body, allowed, c.allowed = body[n:], allowed-int64(n), c.allowed-int64(n)
			continue
		}
		if err := c.out.Flush(); err != nil {
			return err
		}
		f, err := c.read()
		if err != nil {
			return err
		}
		switch f := f.(type) {
		case *http2.WindowUpdateFrame:
			if f.StreamID == stream {
				allowed += int64(f.Increment)
			}
		case *http2.HeadersFrame, *http2.RSTStreamFrame:
			return fmt.Errorf("the server answered %d before it had the request", c.status)
		}
	}
	return nil
}

func (c *Conn) field(name, value string) {
	// The buffer that is written to does not fail.
	_ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: false})
}

// read returns the next frame that is about a stream. It answers what is about the
// connection, and has the status of headers.
func (c *Conn) read() (http2.Frame, error) {
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			return nil, err
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			c.status = 0
			return f, c.decode(f.HeaderBlockFragment(), f.HeadersEnded())
		case *http2.ContinuationFrame:
			if err := c.decode(f.HeaderBlockFragment(), f.HeadersEnded()); err != nil {
				return nil, err
			}
		case *http2.DataFrame:
			c.taken += f.Length
			if c.taken > window/4 {
				if err := c.framer.WriteWindowUpdate(0, c.taken); err != nil {
					return nil, err
				}
				if !f.StreamEnded() {
					if err := c.framer.WriteWindowUpdate(f.StreamID, c.taken); err != nil {
						return nil, err
					}
				}
				c.taken = 0
				if err := c.out.Flush(); err != nil {
					return nil, err
				}
			}
			return f, nil
		default:
			if f.Header().StreamID != 0 {
				return f, nil
			}
			if err := c.own(f); err != nil {
				return nil, err
			}
		}
	}
}

func (c *Conn) decode(block []byte, ended bool) error {
	if _, err := c.decoder.Write(block); err != nil {
		return err
	}
	if ended {
		return c.decoder.Close()
	}
	return nil
}

// own does what a frame about the connection asks for.
func (c *Conn) own(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
			c.perStream = int64(v)
		}
		if v, ok := f.Value(http2.SettingMaxFrameSize); ok {
			c.largest = int(v)
		}
		if err := c.framer.WriteSettingsAck(); err != nil {
			return err
		}
	case *http2.PingFrame:
		if f.IsAck() {
			return nil
		}
		if err := c.framer.WritePing(true, f.Data); err != nil {
			return err
		}
	case *http2.WindowUpdateFrame:
		c.allowed += int64(f.Increment)
		return nil
	case *http2.GoAwayFrame:
		return fmt.Errorf("the server ends the connection: %v", f.ErrCode)
	default:
		return nil
	}
	return c.out.Flush()
}

// Part reads a part of a list. It returns the size of it and the token by which the
// next part is asked for, escaped, "" if there is none.
func (c *Conn) Part(path string) (size int, next string, err error) {
	c.keep = 64 << 20
	defer func() { c.keep = kept }()
	got, err := c.Do(&Request{Method: "GET", Path: path})
	if err != nil {
		return 0, "", err
	}
	if got.Status != 200 {
		return 0, "", fmt.Errorf("GET %s: %d %.300s", path, got.Status, got.Start)
	}
	// The token stands in the metadata of the list: at its end, or before the items.
	_, after, found := bytes.Cut(got.Start[max(0, len(got.Start)-kept):], []byte(`"continue":"`))
	if !found {
		_, after, _ = bytes.Cut(got.Start[:min(len(got.Start), kept)], []byte(`"continue":"`))
	}
	token, _, _ := bytes.Cut(after, []byte{'"'})
	return got.Size, url.QueryEscape(string(token)), nil
}
