// Package webhook is the HTTPS client of the server for all webhooks.
//
// It knows addresses, certificates, connections and limits: how long a call may take, how
// much of a reply is read, how many calls one webhook gets at a time. It does not know what
// requests and replies mean. No error and no log contains a body, so nobody can use the
// server to read what only the server can reach.
package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/object/status"
)

// DefaultMaxCalls is how many calls of one webhook may be under way at a time.
// It is less than what the server answers at a time, so that a webhook that
// hangs leaves room for requests that do not need it.
const DefaultMaxCalls = 100

// A Config says where a webhook is and whom to trust. Either URL or Service is
// set.
type Config struct {
	URL     string
	Service Service
	// CABundle has the authorities, as PEM, that the webhook's certificate may
	// come from. Empty means those of the system.
	CABundle []byte
	// Credentials prove to the webhook who asks; nil for none.
	Credentials *Credentials
}

// Credentials are those of a user of a kubeconfig file.
type Credentials = kubeconfig.User

// Users are Credentials by where they are for: HOST or HOST:PORT, where HOST may begin with "*."
// for all that ends so.
type Users map[string]*Credentials

// For returns the Credentials for a webhook, nil for none. Its port need not be named where it is
// that of HTTPS.
func (u Users) For(c Config) *Credentials {
	host := net.JoinHostPort(c.Service.host(), strconv.Itoa(int(c.Service.port())))
	if c.URL != "" {
		parsed, err := url.Parse(c.URL)
		if err != nil {
			return nil
		}
		if host = parsed.Host; parsed.Port() == "" {
			host = net.JoinHostPort(host, "443")
		}
	}
	if found := u.matching(host); found != nil {
		return found
	}
	if name, port, err := net.SplitHostPort(host); err == nil && port == "443" {
		return u.matching(name)
	}
	return nil
}

// matching returns what is for a host, or for what it ends with: the longest counts.
func (u Users) matching(host string) *Credentials {
	if found := u[host]; found != nil {
		return found
	}
	for _, rest, more := strings.Cut(host, "."); more; _, rest, more = strings.Cut(rest, ".") {
		if found := u["*."+rest]; found != nil {
			return found
		}
	}
	return nil
}

// A Service names a webhook by the Service in front of it.
type Service struct {
	Namespace, Name string
	Port            int32 // 443 if 0
	Path            string
}

// host is the name that the certificate of the service is for.
func (s *Service) host() string { return s.Name + "." + s.Namespace + ".svc" }

// Options of a Client. All may be left out.
type Options struct {
	// Services connects to webhooks that are behind a Service, and URLs to the others; a zero
	// Dialer if nil.
	Services, URLs *egress.Dialer
	// MaxCalls of one webhook at a time; DefaultMaxCalls if 0.
	MaxCalls int
	// Before is called before each call, in the time that the call has. A call is not made if it
	// returns an error, which is that of the call then. Nil does nothing.
	Before func(context.Context) error
}

// A Client posts to webhooks. It keeps a bounded number of connections, for a
// bounded time, and has no goroutine but theirs.
type Client struct {
	options Options
	routes  routes
}

// New returns a Client.
func New(o Options) *Client {
	if o.MaxCalls == 0 {
		o.MaxCalls = DefaultMaxCalls
	}
	if o.Services == nil {
		o.Services = &egress.Dialer{}
	}
	if o.URLs == nil {
		o.URLs = &egress.Dialer{}
	}
	return &Client{options: o}
}

// Close closes the connections that are not in use. Those in use are closed when
// their call has ended.
func (c *Client) Close() { c.routes.close() }

// A Call is one request to a webhook.
type Call struct {
	Body []byte
	// Timeout bounds the whole of the call, the answer included.
	Timeout time.Duration
	// MaxReply is how many bytes the answer may have.
	MaxReply int64
}

// A TooLargeError says that an answer has more bytes than are read.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the webhook's response is larger than %d bytes", e.Limit)
}

// A Reply is the answer to a Call.
type Reply struct {
	Body []byte
	// Peer says who answered: the address, and the certificate, of which it has a
	// digest. Another Peer may be another program.
	Peer string
}

// Post makes a call and returns the answer, which was a success. An answer of
// another sort is an error in the words of Kubernetes clients; a redirect is one,
// too, and is not followed.
func (c *Client) Post(ctx context.Context, config *Config, call Call) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, call.Timeout)
	defer cancel()
	target, err := config.target(call.Timeout)
	if err != nil {
		return Reply{}, err
	}
	r, err := c.route(config)
	if err != nil {
		return Reply{}, err
	}
	if r.calls.Add(1) > int64(c.options.MaxCalls) {
		r.calls.Add(-1)
		return Reply{}, status.TooManyRequests("too many calls of the webhook are under way, please try again later", 1)
	}
	defer r.calls.Add(-1)
	if c.options.Before != nil {
		if err := c.options.Before(ctx); err != nil {
			return Reply{}, &url.Error{Op: "Post", URL: target, Err: err}
		}
	}
	var address string
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { address = got.Conn.RemoteAddr().String() },
	})
	request, err := http.NewRequestWithContext(traced, http.MethodPost, target, bytes.NewReader(call.Body))
	if err != nil {
		return Reply{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, */*")
	request.Header.Set("User-Agent", "anykind")
	if config.Credentials != nil {
		if err := config.Credentials.Sign(request); err != nil {
			return Reply{}, err
		}
	}
	client := http.Client{Transport: r, CheckRedirect: stay}
	response, err := client.Do(request)
	if err != nil {
		return Reply{}, err
	}
	defer response.Body.Close()
	body, err := read(response, call.MaxReply)
	if ctx.Err() != nil {
		// A server answers, without meaning it, when it sees that we give up.
		return Reply{}, &url.Error{Op: "Post", URL: target, Err: ctx.Err()}
	}
	return Reply{Body: body, Peer: peer(address, response.TLS)}, err
}

func peer(address string, secure *tls.ConnectionState) string {
	if secure == nil || len(secure.PeerCertificates) == 0 {
		return address
	}
	digest := sha256.Sum256(secure.PeerCertificates[0].Raw)
	return address + " " + hex.EncodeToString(digest[:])
}

// stay makes a redirect the answer.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func read(response *http.Response, limit int64) ([]byte, error) {
	if response.StatusCode < 200 || response.StatusCode > 299 {
		// What the body says is for nobody.
		return nil, apierrors.NewGenericServerResponse(response.StatusCode, "post", schema.GroupResource{}, "", "unknown", 0, true)
	}
	if response.ContentLength > limit {
		return nil, &TooLargeError{limit}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading the webhook's response: %w", err)
	}
	if int64(len(body)) > limit {
		return nil, &TooLargeError{limit}
	}
	return body, nil
}

// target is the URL that is posted to. Its path is clean, as clients of Kubernetes make
// theirs: no empty parts, which a server answers with a redirect, and no "/" at the end.
func (c *Config) target(timeout time.Duration) (string, error) {
	query := "timeout=" + timeout.String()
	if c.URL == "" {
		if c.Service.Name == "" {
			return "", errors.New("webhook configuration must have either service or URL")
		}
		host := net.JoinHostPort(c.Service.host(), strconv.Itoa(int(c.Service.port())))
		return (&url.URL{Scheme: "https", Host: host, Path: path.Join("/", c.Service.Path), RawQuery: query}).String(), nil
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", fmt.Errorf("unparsable URL: %w", err)
	}
	if u.Scheme != "https" {
		return "", fmt.Errorf("the URL of a webhook is https, not %q", u.Scheme)
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path.Join("/", u.Path), RawQuery: query}).String(), nil
}

func (s *Service) port() int32 {
	if s.Port == 0 {
		return 443
	}
	return s.Port
}

// route returns the connections to where a webhook is.
func (c *Client) route(config *Config) (*route, error) {
	key := routeKey{url: config.URL, service: config.Service, ca: sha256.Sum256(config.CABundle), credentials: config.Credentials}
	key.service.Path = ""
	return c.routes.get(key, func() (*route, error) { return c.newRoute(config) })
}
