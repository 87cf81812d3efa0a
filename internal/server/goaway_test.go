package server

import (
	"fmt"
	"io"
	"net/http"
	"testing"
)

// After GOAWAY a client makes its next request on another connection. Its watch stays where it
// is. HTTP/1.1 connections stay: a load balancer sees each of their requests.
func TestGoaway(t *testing.T) {
	for _, tt := range []struct{ protocol, connections int }{{2, 3}, {1, 2}} {
		t.Run(fmt.Sprint("HTTP ", tt.protocol), func(t *testing.T) {
			measured(t, func(b *bench) {
				more := make(chan string)
				b.api = func(w http.ResponseWriter, r *http.Request) {
					for line := range more {
						fmt.Fprint(w, line)
						_ = http.NewResponseController(w).Flush()
					}
				}
				c := b.client(tt.protocol)
				done := make(chan struct{})
				go func() { defer close(done); more <- "first\n" }()
				watch, err := b.ask(c, "GET", "/apis/g/v1/things?watch=true", nil)
				if err != nil {
					b.Fatal(err)
				}
				<-done
				for range 2 {
					r, err := b.ask(c, "GET", "/healthz", nil)
					if err != nil {
						b.Fatal(err)
					}
					if got := r.Header.Get("Connection"); got != "" {
						b.Errorf("the client sees Connection: %s", got)
					}
					if _, err := io.ReadAll(r.Body); err != nil {
						b.Error(err)
					}
					r.Body.Close()
				}
				more <- "second\n"
				close(more)
				if got, err := io.ReadAll(watch.Body); string(got) != "first\nsecond\n" || err != nil {
					b.Errorf("the watch got %q, %v", got, err)
				}
				watch.Body.Close()
				// A client that learns of GOAWAY while it dials may open another connection than it uses.
				if got := b.connections(); got < tt.connections || tt.protocol == 1 && got != tt.connections {
					b.Errorf("%d connections, want %d", got, tt.connections)
				}
			}, func(o *Options) { o.GoawayChance = 1 })
		})
	}
}
