package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"golang.org/x/net/websocket"

	"github.com/anykind/anykind/internal/network/socket"
)

const (
	// spdyUpgrade is the protocol of streams that kubelets know.
	spdyUpgrade = "SPDY/3.1"
	// tunnelPrefix and tunnelSuffix enclose the protocol over SPDY in a WebSocket protocol.
	tunnelPrefix, tunnelSuffix = spdyUpgrade + "+", ".k8s.io"
	// streamVersion is the header with the protocols over SPDY.
	streamVersion = "X-Stream-Protocol-Version"
)

// A Tunnel is a Stream that unwraps SPDY in WebSockets: the server gets the request for SPDY, and the WebSocket carries the bytes of
// that connection. Other requests are forwarded as they are.
type Tunnel struct {
	Stream
	// Answered is called with the code of the answer to such a WebSocket, if the server answers.
	Answered func(code int)
}

// errTunneled reports a tunnel that has ended, so that its response needs nothing more.
var errTunneled = errors.New("the tunnel has ended")

func (t Tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protocols := tunneled(r)
	if len(protocols) == 0 {
		t.Stream.ServeHTTP(w, r)
		return
	}
	forward(w, r, way{
		transport: t.Transport,
		rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Method = t.To, http.MethodPost
			h := p.Out.Header
			for name := range h {
				if strings.HasPrefix(name, "Sec-Websocket-") && name != "Sec-Websocket-Extensions" {
					delete(h, name)
				}
			}
			h.Set("Upgrade", spdyUpgrade)
			h[streamVersion] = protocols
		},
		modify: func(a *http.Response) error { return t.answered(w, r, a) },
		failed: func(w http.ResponseWriter, r *http.Request, err error) {
			if !errors.Is(err, errTunneled) {
				failed(w, r, err)
			}
		},
	})
}

// tunneled returns the protocols over SPDY that a client wants to speak in a WebSocket.
func tunneled(r *http.Request) (protocols []string) {
	if !socket.Wanted(r) {
		return nil
	}
	for _, p := range socket.Protocols(r) {
		if strings.HasPrefix(p, tunnelPrefix) && strings.HasSuffix(p, tunnelSuffix) {
			protocols = append(protocols, strings.TrimPrefix(p, tunnelPrefix))
		}
	}
	return protocols
}

// answered connects the WebSocket of the client to the upgraded connection. Answers that are no upgrade go to the client.
func (t Tunnel) answered(w http.ResponseWriter, r *http.Request, a *http.Response) error {
	if a.StatusCode != http.StatusSwitchingProtocols {
		if a.StatusCode >= http.StatusBadRequest {
			t.Answered(a.StatusCode)
		}
		return refuseOther(a)
	}
	backend, ok := a.Body.(io.ReadWriteCloser)
	if !ok || !strings.EqualFold(a.Header.Get("Upgrade"), spdyUpgrade) {
		t.Answered(http.StatusInternalServerError)
		http.Error(w, "unable to upgrade: missing upgrade headers in response", http.StatusInternalServerError)
		return errTunneled
	}
	code := http.StatusInternalServerError // of a handshake that fails
	websocket.Server{
		Handshake: func(c *websocket.Config, _ *http.Request) error {
			chosen := tunnelPrefix + strings.TrimSpace(a.Header.Get(streamVersion))
			if c.Protocol = nil; slices.Contains(socket.Protocols(r), chosen) {
				c.Protocol = []string{chosen}
			}
			return nil
		},
		Handler: func(c *websocket.Conn) {
			code = http.StatusSwitchingProtocols
			t.Answered(code)
			c.PayloadType = websocket.BinaryFrame
			join(r.Context(), c, backend)
		},
	}.ServeHTTP(socket.Writer(w), r)
	if code != http.StatusSwitchingProtocols {
		t.Answered(code)
	}
	return errTunneled
}

// join copies bytes in both directions until one side closes, or ctx ends.
func join(ctx context.Context, a, b io.ReadWriteCloser) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := context.AfterFunc(ctx, func() {
		a.Close()
		b.Close()
	})
	defer end()
	back := make(chan struct{})
	go func() {
		defer close(back)
		defer cancel()
		_, _ = io.Copy(b, a) // the end of either side is the end of both
	}()
	_, _ = io.Copy(a, b)
	cancel()
	<-back
}
