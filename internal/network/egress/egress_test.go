package egress_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/egress"
)

// listen returns an address at which every connection is accepted and closed.
func listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// closed returns an address without a listener.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A Service is reached if one of the first addresses accepts.
func TestDialService(t *testing.T) {
	good, bad := listen(t), closed(t)
	service := egress.Service{Namespace: "default", Name: "hook", Port: 443}
	for _, tt := range []struct {
		name    string
		resolve egress.Resolver
		err     string // "" for success
	}{
		{"no resolver", nil, "services cannot be resolved"},
		{"no address", func(context.Context, egress.Service) ([]string, error) { return nil, nil }, "the service has no address"},
		{"an error", func(context.Context, egress.Service) ([]string, error) { return nil, errors.New("no such service") }, "no such service"},
		{"an address", func(_ context.Context, s egress.Service) ([]string, error) {
			if s != service {
				t.Errorf("resolved %v, want %v", s, service)
			}
			return []string{good}, nil
		}, ""},
		{"two of three do not answer", func(context.Context, egress.Service) ([]string, error) { return []string{bad, good, bad}, nil }, ""},
		{"none answers", func(context.Context, egress.Service) ([]string, error) { return []string{bad, bad}, nil }, "connection refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := egress.Dialer{Resolve: tt.resolve}
			conn, err := d.DialService(t.Context(), "tcp", service)
			switch {
			case err == nil && tt.err == "":
				if got := conn.RemoteAddr().String(); got != good {
					t.Errorf("connected to %s, want %s", got, good)
				}
				conn.Close()
			case err == nil || tt.err == "" || !strings.Contains(err.Error(), tt.err):
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
}

// All connections go through a tunnel if there is one, including those to Services.
func TestThrough(t *testing.T) {
	service := egress.Service{Namespace: "default", Name: "hook", Port: 443}
	var asked []string
	d := egress.Dialer{
		Resolve: func(context.Context, egress.Service) ([]string, error) { return []string{"10.0.0.1:443"}, nil },
		Through: func(_ context.Context, _, address string) (net.Conn, error) {
			asked = append(asked, address)
			return nil, errors.New("no agent available")
		},
	}
	if _, err := d.DialService(t.Context(), "tcp", service); err == nil || err.Error() != "no agent available" {
		t.Error(err)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "pod:80"); err == nil || err.Error() != "no agent available" {
		t.Error(err)
	}
	if got := strings.Join(asked, " "); got != "10.0.0.1:443 pod:80" {
		t.Errorf("the tunnel was asked for %s", got)
	}
}
