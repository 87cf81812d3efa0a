// Package webhook is the HTTPS client of the server for all webhooks.
//
// It knows addresses, certificates, connections and limits: the timeout of a call, the size of a
// reply, the concurrent calls to one webhook. It does not know the content of requests and
// replies. No error and no log contains a body, so the server cannot be used to read pages that
// only the server can reach.
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
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/span"
	"github.com/anykind/anykind/internal/object/status"
)

// DefaultMaxCalls limits the concurrent calls to one webhook. It is below the limit of requests
// in flight, so that a webhook that hangs leaves room for requests that do not need it.
const DefaultMaxCalls = 100

// A Config is the address of a webhook and its CAs. Either URL or Service is set.
type Config struct {
	URL     string
	Service Service
	// CABundle has the CAs of the webhook's certificate, as PEM; empty means those of the system.
	CABundle []byte
	// Credentials authenticate the server to the webhook; nil for none.
	Credentials *Credentials
}

// Credentials are those of a user in a kubeconfig file.
type Credentials = kubeconfig.User

// Users maps destinations to Credentials. A destination is HOST or HOST:PORT, where HOST may
// begin with "*." for all subdomains.
type Users map[string]*Credentials

// For returns the Credentials for a webhook, or nil. Port 443 may be omitted in Users.
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

// matching returns the Credentials of the longest match for a host.
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

// A Service is the Service in front of a webhook.
type Service struct {
	Namespace, Name string
	Port            int32 // default 443
	Path            string
}

// host returns the name in the certificate of the Service.
func (s *Service) host() string { return s.Name + "." + s.Namespace + ".svc" }

// Options of a Client. All are optional.
type Options struct {
	// Services connects to webhooks behind a Service, and URLs to others; nil means a zero
	// Dialer.
	Services, URLs *egress.Dialer
	// Gates are the feature gates of the server.
	Gates *gate.Set
	// MaxCalls limits the concurrent calls to one webhook; 0 means DefaultMaxCalls.
	MaxCalls int
	// Before is called before each call, within its timeout. Its error fails the call. May be
	// nil.
	Before func(context.Context) error
}

// A Client posts to webhooks. It keeps a bounded number of connections for a bounded time, and
// has no goroutines besides theirs.
type Client struct {
	options Options
	routes  routes
	metrics *metrics
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
	return &Client{options: o, routes: newRoutes(), metrics: newMetrics()}
}

// Close closes idle connections. Those in use close after their call.
func (c *Client) Close() { c.routes.all.Clear() }

// A Call is one request to a webhook.
type Call struct {
	Body []byte
	// Timeout limits the whole call, including the answer.
	Timeout time.Duration
	// MaxReply limits the bytes of the answer.
	MaxReply int64
}

// A TooLargeError reports that an answer exceeds the limit.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the webhook's response is larger than %d bytes", e.Limit)
}

// A Reply is the answer to a Call.
type Reply struct {
	Body []byte
	// Peer identifies the server that answered: its address, and a digest of its certificate.
	// Another Peer may be another program.
	Peer string
}

// Post makes a call and returns a successful answer. Any other answer is an error in the words of
// client-go; so is a redirect, which is not followed.
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
	sent, err := http.NewRequestWithContext(traced, http.MethodPost, target, bytes.NewReader(call.Body))
	if err != nil {
		return Reply{}, err
	}
	sent.Header.Set("Content-Type", "application/json")
	sent.Header.Set("Accept", "application/json, */*")
	sent.Header.Set("User-Agent", "anykind")
	request.ContinueTrace(ctx, sent.Header)
	if config.Credentials != nil {
		if err := config.Credentials.Sign(sent); err != nil {
			return Reply{}, err
		}
	}
	client := http.Client{Transport: span.Transport(ctx, r), CheckRedirect: stay}
	response, err := c.metrics.do(&client, sent)
	if err != nil {
		return Reply{}, err
	}
	defer response.Body.Close()
	body, err := read(response, call.MaxReply)
	if ctx.Err() != nil {
		// The server may answer only because it sees the cancellation.
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

// stay makes a redirect the final answer.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func read(response *http.Response, limit int64) ([]byte, error) {
	if response.StatusCode < 200 || response.StatusCode > 299 {
		// The body is not quoted.
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

// target returns the URL of the call. Its path is clean, as in client-go: without empty segments,
// which a server redirects, and without a trailing "/".
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

// route returns the connections to a webhook.
func (c *Client) route(config *Config) (*route, error) {
	key := routeKey{url: config.URL, service: config.Service, ca: sha256.Sum256(config.CABundle), credentials: config.Credentials}
	key.service.Path = ""
	return c.routes.get(key, func() (*route, error) { return c.newRoute(config) })
}
