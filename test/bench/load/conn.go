// Package load is a client of any HTTP server that speaks HTTP/2 over TLS. It sends prepared requests,
// counts the responses and measures their latency. It knows nothing of Kubernetes or of the server
// under test.
//
// It writes HTTP/2 frames itself: the client takes little of the machine that it shares with the
// server, and its source shows exactly the bytes that it sends.
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

// A Target is a server to which a client sends requests.
type Target struct {
	Address string // host:port
	TLS     *tls.Config
	Token   string // a bearer token
}

// A Request is one prepared HTTP request. The path includes the query.
type Request struct {
	Method, Path string
	ContentType  string
	Accept       string // media type of the response, "" for JSON
	Body         []byte
	Least        int // a response with fewer bytes counts as an error
	Refusable    int // a 4xx status that counts as success, 0 for none
}

// A Response is the result of a request. Start is the beginning of the body, and is valid until the
// next request.
type Response struct {
	Status int
	Size   int
	Start  []byte
}

// kept is the number of bytes of a body that are kept for error messages.
const kept = 2 << 10

// window is the flow-control window: the bytes that a server may send before a WINDOW_UPDATE.
const window = 1 << 30

// received is the size of a read from the socket: one system call takes all TLS records that have
// arrived.
const received = 256 << 10

// A gathered connection reads as much from its socket as is available.
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
	status  int // found by the decoder

	next      uint32 // the stream of the next request
	allowed   int64  // send window of the connection, in bytes
	perStream int64  // initial send window of a new stream
	largest   int    // largest frame that the server accepts
	taken     uint32 // bytes received and not yet credited to the server
	keep      int    // number of bytes of a body to keep
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
		config.ServerName, _, _ = net.SplitHostPort(t.Address) // the address that was dialed
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
			c.status, _ = strconv.Atoi(f.Value) // 0 is not a valid status
		}
	})
	if err := c.greet(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// greet sends the preface, and returns once the server has sent its settings.
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

// Close closes the connection and cancels its requests.
func (c *Conn) Close() error { return c.conn.Close() }

// Do sends a request and reads the whole response. It fails if there is no response.
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
			continue // rest of a stream that was given up
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

// sendBody writes within the flow-control window, and waits for the window to grow.
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
	// Writes to the buffer do not fail.
	_ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: false})
}

// read returns the next frame of a stream. It handles frames of the connection itself, and decodes the
// status from headers.
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

// own handles a frame of the connection.
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

// Part reads one chunk of a list. It returns its size and the continue token of the next chunk,
// escaped, or "" at the end.
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
	// The continue token is in the metadata of the list: at the end, or before the items.
	_, after, found := bytes.Cut(got.Start[max(0, len(got.Start)-kept):], []byte(`"continue":"`))
	if !found {
		_, after, _ = bytes.Cut(got.Start[:min(len(got.Start), kept)], []byte(`"continue":"`))
	}
	token, _, _ := bytes.Cut(after, []byte{'"'})
	return got.Size, url.QueryEscape(string(token)), nil
}
