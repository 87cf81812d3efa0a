// Package socket has the parts of serving WebSockets that are common to watches, logs, commands and tunnels: the recognition
// of a request for one with its protocols, and the way to its connection. It does not know messages.
package socket

import (
	"bufio"
	"net"
	"net/http"
	"strings"
)

// Wanted reports whether a client asks for a WebSocket.
func Wanted(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// Protocols returns the protocols that a client offers, in its order.
func Protocols(r *http.Request) (protocols []string) {
	for p := range strings.SplitSeq(r.Header.Get("Sec-Websocket-Protocol"), ",") {
		if p = strings.TrimSpace(p); p != "" {
			protocols = append(protocols, p)
		}
	}
	return protocols
}

// Writer returns a ResponseWriter that hijacks the connection below all wrappers.
func Writer(w http.ResponseWriter) http.ResponseWriter {
	return hijacker{w, http.NewResponseController(w)}
}

type hijacker struct {
	http.ResponseWriter
	out *http.ResponseController
}

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.out.Hijack() }
