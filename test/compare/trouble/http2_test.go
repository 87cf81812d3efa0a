package trouble

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/anykind/anykind/test/compare/servers"
)

func dial(address string, config *tls.Config) (net.Conn, error) {
	if config == nil {
		return net.Dial("tcp", address)
	}
	return tls.Dial("tcp", address, config)
}

// A talk is a connection of HTTP/2, frame by frame.
type talk struct {
	*http2.Framer
	conn    net.Conn
	encoded bytes.Buffer
	encoder *hpack.Encoder
}

func newTalk(t *testing.T, address string) *talk {
	t.Helper()
	conn, err := dial(address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	k := &talk{Framer: http2.NewFramer(conn, conn), conn: conn}
	k.AllowIllegalWrites = true
	k.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	k.encoder = hpack.NewEncoder(&k.encoded)
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	if err := k.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return k
}

// block encodes fields as NAME VALUE NAME VALUE.
func (k *talk) block(fields ...string) []byte {
	k.encoded.Reset()
	for i := 0; i < len(fields); i += 2 {
		// The encoder writes to memory, which does not fail.
		_ = k.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(k.encoded.Bytes())
}

func request(method, path string, more ...string) []string {
	return append([]string{":method", method, ":scheme", "https", ":authority", "x", ":path", path, "authorization", "Bearer " + servers.Token}, more...)
}

// open begins a stream.
func (k *talk) open(stream uint32, end bool, fields ...string) {
	_ = k.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: k.block(fields...), EndStream: end, EndHeaders: true})
}

// outcome reads until no more frames arrive, and returns a summary of responses, reset streams and the
// end of the connection. It lists repeated frames once, as their number depends on timing.
func (k *talk) outcome(t *testing.T) string {
	t.Helper()
	var said []string
	for {
		if err := k.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			t.Fatal(err)
		}
		frame, err := k.ReadFrame()
		if err != nil {
			var network net.Error
			if errors.As(err, &network) && network.Timeout() {
				return strings.Join(append(slices.Compact(said), "waits"), "\n")
			}
			return strings.Join(append(slices.Compact(said), "ended"), "\n")
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			said = append(said, fmt.Sprintf("stream %d: %s, ends %v", f.StreamID, f.PseudoValue("status"), f.StreamEnded()))
		case *http2.RSTStreamFrame:
			said = append(said, fmt.Sprintf("stream %d: reset %v", f.StreamID, f.ErrCode))
		case *http2.GoAwayFrame:
			said = append(said, fmt.Sprintf("goes away: last stream %d, %v", f.LastStreamID, f.ErrCode))
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = k.WriteSettingsAck()
			}
		}
	}
}

// Invalid frames get the same responses from both servers.
func TestHTTP2(t *testing.T) {
	p := start(t, "--anonymous-auth=true")
	for _, tt := range []struct {
		name string
		do   func(k *talk)
	}{
		{"get", func(k *talk) { k.open(1, true, request("GET", "/version")...) }},
		{"trailers", func(k *talk) {
			k.open(1, false, request("POST", collection, "content-type", "application/json")...)
			_ = k.WriteData(1, false, []byte(strings.ReplaceAll(configMap, "NAME", "t1")))
			_ = k.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: k.block("x", "y"), EndStream: true, EndHeaders: true})
		}},
		{"trailers that do not end the stream", func(k *talk) {
			k.open(1, false, request("POST", collection, "content-type", "application/json")...)
			_ = k.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: k.block("x", "y"), EndHeaders: true})
		}},
		{"a pseudo field in trailers", func(k *talk) {
			k.open(1, false, request("POST", collection)...)
			_ = k.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: k.block(":path", "/"), EndStream: true, EndHeaders: true})
		}},
		{"no path", func(k *talk) { k.open(1, true, ":method", "GET", ":scheme", "https", ":authority", "x") }},
		{"an empty path", func(k *talk) { k.open(1, true, request("GET", "")...) }},
		{"a path without a slash", func(k *talk) { k.open(1, true, request("GET", "version")...) }},
		{"a path that is *", func(k *talk) { k.open(1, true, request("OPTIONS", "*")...) }},
		{"two methods", func(k *talk) { k.open(1, true, append(request("GET", "/version"), ":method", "GET")...) }},
		{"an unknown pseudo field", func(k *talk) { k.open(1, true, append([]string{":bogus", "x"}, request("GET", "/version")...)...) }},
		{"a name in capitals", func(k *talk) { k.open(1, true, request("GET", "/version", "X-Y", "z")...) }},
		{"connection", func(k *talk) { k.open(1, true, request("GET", "/version", "connection", "close")...) }},
		{"te", func(k *talk) { k.open(1, true, request("GET", "/version", "te", "gzip")...) }},
		{"transfer-encoding", func(k *talk) { k.open(1, true, request("GET", "/version", "transfer-encoding", "chunked")...) }},
		{"upgrade", func(k *talk) { k.open(1, true, request("GET", "/version", "upgrade", "websocket")...) }},
		{"extended CONNECT", func(k *talk) {
			k.open(1, true, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":path", collection, ":authority", "x")
		}},
		{"CONNECT", func(k *talk) { k.open(1, true, ":method", "CONNECT", ":authority", "x:443") }},
		{"expect", func(k *talk) {
			k.open(1, false, request("POST", collection, "expect", "100-continue", "content-type", "application/json")...)
			_ = k.WriteData(1, true, []byte(strings.ReplaceAll(configMap, "NAME", "x1")))
		}},
		{"less than its length", func(k *talk) {
			k.open(1, false, request("POST", collection, "content-type", "application/json", "content-length", "900")...)
			_ = k.WriteData(1, true, []byte("{}"))
		}},
		{"more than its length", func(k *talk) {
			k.open(1, false, request("POST", collection, "content-type", "application/json", "content-length", "1")...)
			_ = k.WriteData(1, true, []byte("{}"))
		}},
		{"a length on nothing", func(k *talk) { k.open(1, true, request("POST", collection, "content-length", "5")...) }},
		{"data on a stream that is not open", func(k *talk) { _ = k.WriteData(7, true, []byte("x")) }},
		{"data on stream 0", func(k *talk) { _ = k.WriteData(0, true, []byte("x")) }},
		{"a stream with an even number", func(k *talk) { k.open(2, true, request("GET", "/version")...) }},
		{"a stream that is past", func(k *talk) {
			// The request stays incomplete, so neither server responds early.
			k.open(5, false, request("POST", collection, "content-type", "application/json")...)
			k.open(3, true, request("GET", "/version")...)
		}},
		{"reset of a stream that is not open", func(k *talk) { _ = k.WriteRSTStream(9, http2.ErrCodeCancel) }},
		{"a frame that is too long", func(k *talk) {
			k.open(1, false, request("POST", collection)...)
			_ = k.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 2<<20))
		}},
		{"more data than the window", func(k *talk) {
			k.open(1, false, request("POST", collection, "content-type", "application/json")...)
			for range 400 {
				_ = k.WriteData(1, false, make([]byte, 16<<10))
			}
		}},
		{"a window of zero more", func(k *talk) { _ = k.WriteWindowUpdate(0, 0) }},
		{"a window beyond its end", func(k *talk) { _ = k.WriteWindowUpdate(0, 1<<31-1); _ = k.WriteWindowUpdate(0, 1<<31-1) }},
		{"a setting that cannot be", func(k *talk) { _ = k.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1}) }},
		{"a window in settings that cannot be", func(k *talk) {
			_ = k.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
		}},
		{"a promise", func(k *talk) {
			_ = k.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: k.block(request("GET", "/version")...), EndHeaders: true})
		}},
		{"an unknown frame", func(k *talk) {
			_ = k.WriteRawFrame(0xbb, 0, 0, []byte("x"))
			k.open(1, true, request("GET", "/version")...)
		}},
		{"a stream that depends on itself", func(k *talk) { _ = k.WritePriority(1, http2.PriorityParam{StreamDep: 1}) }},
		{"fields that do not decode", func(k *talk) {
			_ = k.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff}, EndStream: true, EndHeaders: true})
		}},
		{"something between fields", func(k *talk) {
			_ = k.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: k.block(request("GET", "/version")...), EndStream: true})
			_ = k.WritePing(false, [8]byte{})
		}},
		{"a goodbye, then a request", func(k *talk) {
			_ = k.WriteGoAway(0, http2.ErrCodeNo, nil)
			k.open(1, true, request("GET", "/version")...)
		}},
		{"half a frame", func(k *talk) { _, _ = k.conn.Write([]byte{0, 0, 9, 1, 5, 0, 0, 0, 1, 0x82}) }},
		{"no preface", func(k *talk) { _, _ = k.conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said [2]string
			for i, c := range clients(p) {
				k := newTalk(t, c.Host())
				tt.do(k)
				said[i] = k.outcome(t)
			}
			if d, ok := onPurpose[tt.name]; ok {
				said[0] = strings.Replace(said[0], d[0], d[1], 1)
			}
			if said[0] != said[1] {
				t.Errorf("%s:\n%s\n%s:\n%s", names[0], said[0], names[1], said[1])
			}
		})
	}
}

// onPurpose has kube-apiserver's outcomes where anykind's intentionally differ.
var onPurpose = map[string][2]string{
	"less than its length": {"stream 1: 500", "stream 1: 400"}, // it is an error of the client
}

// A client that floods a connection loses it, or is served. Other clients are not affected.
func TestFloods(t *testing.T) {
	p := start(t, "--anonymous-auth=true")
	for _, tt := range []struct {
		name string
		do   func(k *talk)
	}{
		{"streams that are reset at once", func(k *talk) {
			for i := range uint32(20_000) {
				k.open(2*i+1, true, request("GET", "/api/v1/namespaces")...)
				if k.WriteRSTStream(2*i+1, http2.ErrCodeCancel) != nil {
					return
				}
			}
		}},
		{"fields without end", func(k *talk) {
			_ = k.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: k.block(request("GET", "/version")...), EndStream: true})
			for range 20_000 {
				if k.WriteContinuation(1, false, k.block("x", strings.Repeat("y", 1000))) != nil {
					return
				}
			}
		}},
		{"continuations of nothing", func(k *talk) {
			_ = k.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: k.block(request("GET", "/version")...), EndStream: true})
			for range 100_000 {
				if k.WriteContinuation(1, false, nil) != nil {
					return
				}
			}
		}},
		{"pings", func(k *talk) {
			for range 100_000 {
				if k.WritePing(false, [8]byte{}) != nil {
					return
				}
			}
		}},
		{"settings", func(k *talk) {
			for range 100_000 {
				if k.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535}) != nil {
					return
				}
			}
		}},
		{"empty data", func(k *talk) {
			k.open(1, false, request("POST", collection)...)
			for range 100_000 {
				if k.WriteData(1, false, nil) != nil {
					return
				}
			}
		}},
		{"more streams than are allowed", func(k *talk) {
			for i := range uint32(2000) {
				k.open(2*i+1, true, request("GET", "/api/v1/namespaces?watch=true")...)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, c := range clients(p) {
				k := newTalk(t, c.Host())
				if err := k.conn.SetWriteDeadline(time.Now().Add(20 * time.Second)); err != nil {
					t.Fatal(err)
				}
				tt.do(k)
				k.conn.Close()
				other := newTalk(t, c.Host())
				other.open(1, true, request("GET", "/version")...)
				if said := other.outcome(t); !strings.HasPrefix(said, "stream 1: 200") {
					t.Errorf("%s says to the next client:\n%s", names[i], said)
				}
			}
		})
	}
}
