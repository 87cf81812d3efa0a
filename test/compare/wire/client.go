package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// patience limits the wait for a response.
const patience = 20 * time.Second

// most limits the size of a stored response.
const most = 32 << 20

// A Client sends requests to one server.
type Client struct {
	host   string
	base   string // precedes all paths
	token  string
	header []Field // for every request without them
	two    *http.Client
	one    *http.Client
}

// An Answer is a response.
type Answer struct {
	Failed  string // reason for a missing response, "" if there is one
	Code    int
	Header  http.Header
	Trailer http.Header
	Body    []byte
	Stream  *Stream // of an accepted watch
}

// NewClient returns a client of the server at an URL.
func NewClient(at string, config *tls.Config, token string) (*Client, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	transport := func(forceTwo bool) *http.Transport {
		t := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: forceTwo, DisableCompression: true, MaxIdleConnsPerHost: 16}
		if !forceTwo {
			t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		return t
	}
	asIs := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		host:   u.Host,
		base:   u.Path,
		token:  token,
		header: []Field{{"User-Agent", "compare/1"}, {"Authorization", "Bearer " + token}},
		two:    &http.Client{Transport: transport(true), CheckRedirect: asIs},
		one:    &http.Client{Transport: transport(false), CheckRedirect: asIs},
	}, nil
}

// Close closes the connections.
func (c *Client) Close() {
	c.two.CloseIdleConnections()
	c.one.CloseIdleConnections()
}

// Host is host:port of the server.
func (c *Client) Host() string { return c.host }

// Token is the token of the client.
func (c *Client) Token() string { return c.token }

// Do sends a request and returns the response. For an accepted watch it does not wait for the end.
func (c *Client) Do(ctx context.Context, s Step) *Answer {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(patience, cancel)
	r, err := c.request(ctx, s)
	if err != nil {
		cancel()
		return &Answer{Failed: "cannot be sent: " + err.Error()}
	}
	client := c.two
	if s.HTTP1 {
		client = c.one
	}
	response, err := client.Do(r)
	if err != nil {
		cancel()
		return &Answer{Failed: failure(err)}
	}
	a := &Answer{Code: response.StatusCode, Header: response.Header}
	if s.Watch && a.Code == http.StatusOK {
		late.Stop()
		a.Stream = newStream(response, cancel)
		return a
	}
	defer cancel()
	defer late.Stop()
	defer response.Body.Close()
	a.Body, err = io.ReadAll(io.LimitReader(response.Body, most))
	a.Trailer = response.Trailer
	if err != nil {
		a.Failed = failure(err)
	}
	return a
}

// request returns a step as an http.Request with an unmodified path.
func (c *Client) request(ctx context.Context, s Step) (*http.Request, error) {
	body := s.Body
	if s.Gzip {
		var compressed bytes.Buffer
		w := gzip.NewWriter(&compressed)
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		body = compressed.Bytes()
	}
	opaque := "//" + c.host + c.base + s.Path
	if s.HTTP1 && strings.HasPrefix(s.Path, "/") && !strings.HasPrefix(s.Path, "//") {
		opaque = c.base + s.Path // the request target of HTTP/1.1
	}
	r := (&http.Request{
		Method: s.Method, Host: c.host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		URL: &url.URL{Scheme: "https", Host: c.host, Opaque: opaque},
	}).WithContext(ctx)
	if len(body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		// For a retry after the server closed an idle connection.
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	for _, f := range c.header {
		r.Header.Set(f.Name, f.Value)
	}
	own := map[string]bool{}
	for _, f := range s.Header {
		name := http.CanonicalHeaderKey(f.Name)
		if !own[name] {
			r.Header.Del(name)
			own[name] = true
		}
		r.Header[name] = append(r.Header[name], f.Value)
	}
	return r, nil
}

// failure returns a short reason for a missing response, equal for equal reasons.
func failure(err error) string {
	var reset http2.StreamError
	var network net.Error
	text := err.Error()
	switch {
	case errors.Is(err, context.Canceled), errors.As(err, &network) && network.Timeout():
		return "no answer in time"
	case errors.As(err, &reset):
		return "stream reset: " + reset.Code.String()
	case strings.Contains(text, "stream error"):
		return "stream reset"
	case strings.Contains(text, "GOAWAY"):
		return "connection ended: GOAWAY"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(text, "connection reset"):
		return "connection ended"
	}
	return text
}

// A Stream is the response to a watch, as far as it was read.
type Stream struct {
	end    context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	frames [][]byte
	failed string // reason for an abnormal end
}

func newStream(response *http.Response, end context.CancelFunc) *Stream {
	s := &Stream{end: end, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer response.Body.Close()
		next := frames(response.Header.Get("Content-Type"), plain(response))
		for {
			frame, err := next()
			s.mu.Lock()
			if err == nil {
				s.frames = append(s.frames, frame)
			} else if !errors.Is(err, io.EOF) {
				s.failed = failure(err)
			}
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

// plain returns the body of a response, unpacked.
func plain(response *http.Response) io.Reader {
	if response.Header.Get("Content-Encoding") == "gzip" {
		return &unpacked{body: response.Body}
	}
	return response.Body
}

// unpacked unpacks a body. The header of gzip may come with the first frame.
type unpacked struct {
	body io.Reader
	zip  *gzip.Reader
}

func (u *unpacked) Read(p []byte) (n int, err error) {
	if u.zip == nil {
		if u.zip, err = gzip.NewReader(u.body); err != nil {
			return 0, err
		}
	}
	return u.zip.Read(p)
}

// Len returns the number of frames so far, and whether the server ended the stream.
func (s *Stream) Len() (n int, ended bool) {
	select {
	case <-s.done:
		ended = true
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.frames), ended
}

// Frames returns the frames so far.
func (s *Stream) Frames() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames[:len(s.frames):len(s.frames)]
}

// Failed returns the reason for an abnormal end of the stream, or "".
func (s *Stream) Failed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Close ends the stream and waits for its reader.
func (s *Stream) Close() {
	s.end()
	<-s.done
}
