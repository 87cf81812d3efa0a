package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// contextsPath is the root of the API servers of a Local.
const contextsPath = "/contexts/"

// protocolToken begins the WebSocket protocol with which Kubernetes' clients in browsers send a bearer token.
const protocolToken = "base64url.bearer.authorization.k8s.io."

// A Local is the server of a console for one user of this machine.
//
// Each request needs the token of the session, except for the files of the pages. A browser gets the token for
// the secret of a link. A secret is valid once. Requests must name this server in Host: DNS rebinding names
// another one. They must not come from another origin.
type Local struct {
	// Review returns the effects of a CustomResourceDefinition on a server, as JSON. With try, it validates all stored
	// objects. Nil for a console without reviews.
	Review func(ctx context.Context, server *kubeconfig.Config, definition []byte, try bool) (any, error)

	host    string // of its URL
	options kubeconfig.Options
	current string // context that the options are for
	token   string
	pages   http.Handler

	mu      sync.Mutex
	secrets map[string]bool // of links that have not been used
	proxies map[string]http.Handler
}

// NewLocal returns the server for a listener at an address, for the contexts that the options select.
func NewLocal(address net.Addr, o kubeconfig.Options) *Local {
	current := kubeconfig.Current(o)
	o.Context = current // also if the file names another one later
	return &Local{host: address.String(), options: o, current: current, token: rand.Text(), pages: Pages(), secrets: map[string]bool{}, proxies: map[string]http.Handler{}}
}

// Link returns a URL that opens the console in one browser.
func (l *Local) Link() string {
	secret := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secrets[secret] = true
	return "http://" + l.host + Root + "#secret=" + secret
}

func (l *Local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !l.here(r):
		refuse(w, http.StatusForbidden, "this request does not come from a page of this console")
	case r.URL.Path == "/":
		http.Redirect(w, r, Root, http.StatusFound)
	case r.URL.Path == Root+"session":
		l.begin(w, r)
	case strings.HasPrefix(r.URL.Path, Root) && !own(r.URL.Path[len(Root):]):
		l.pages.ServeHTTP(w, r)
	case !l.authenticated(r):
		refuse(w, http.StatusUnauthorized, "this browser has no session: open the link that anykind console prints")
	case r.URL.Path == Root+"config":
		answer(w, Config{Contexts: l.contexts(), Reviews: l.Review != nil})
	case r.URL.Path == Root+"review" && r.Method == http.MethodPost && l.Review != nil:
		l.review(w, r)
	case r.URL.Path == Root+"link" && r.Method == http.MethodPost:
		answer(w, map[string]string{"link": l.Link()})
	default:
		l.forward(w, r)
	}
}

// own reports whether a path below Root is no file, but needs a session.
func own(path string) bool { return path == "config" || path == "link" || path == "review" }

// maxReview limits a definition; larger ones do not fit into a store.
const maxReview = 3 << 20

// review answers with the effects of the definition in the body.
func (l *Local) review(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	config, err := kubeconfig.Find(l.of(r.URL.Query().Get("context")))
	if err != nil {
		refuse(w, http.StatusBadGateway, err.Error())
		return
	}
	review, err := l.Review(r.Context(), config, text, r.URL.Query().Get("try") == "true")
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	answer(w, review)
}

// here reports whether a request names this server, and comes from its pages or from no page at all.
func (l *Local) here(r *http.Request) bool {
	_, port, _ := net.SplitHostPort(l.host) // a listener has a port
	if r.Host != l.host && r.Host != net.JoinHostPort("localhost", port) {
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" || origin == "http://"+r.Host
}

// begin answers the secret of a link with the token of the session.
func (l *Local) begin(w http.ResponseWriter, r *http.Request) {
	var body struct{ Secret string }
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusBadRequest, `POST {"secret": "…"} as application/json`)
		return
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	l.mu.Lock()
	valid := l.secrets[body.Secret]
	delete(l.secrets, body.Secret)
	l.mu.Unlock()
	if !valid {
		refuse(w, http.StatusUnauthorized, "this link has been used, or belongs to an earlier start: run anykind console again")
		return
	}
	answer(w, map[string]string{"token": l.token})
}

// authenticated takes the token out of a request, and reports whether it is that of the session.
func (l *Local) authenticated(r *http.Request) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	r.Header.Del("Authorization")
	const header = "Sec-Websocket-Protocol"
	var others []string
	for protocol := range strings.SplitSeq(strings.Join(r.Header.Values(header), ","), ",") {
		protocol = strings.TrimSpace(protocol)
		if encoded, ok := strings.CutPrefix(protocol, protocolToken); ok {
			decoded, _ := base64.RawURLEncoding.DecodeString(encoded) // else the token is wrong
			token = string(decoded)
		} else if protocol != "" {
			others = append(others, protocol)
		}
	}
	r.Header.Del(header)
	if len(others) > 0 {
		r.Header.Set(header, strings.Join(others, ", "))
	}
	return subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) == 1
}

// contexts returns all contexts of the kubeconfig.
func (l *Local) contexts() (all []Context) {
	names, err := kubeconfig.Known(l.options)
	current := l.current
	if err != nil || len(names.Contexts) == 0 || l.options.Server != "" {
		names.Contexts = []string{current} // a server without a kubeconfig
	} else if current != "" && !slices.Contains(names.Contexts, current) {
		names.Contexts = append(names.Contexts, current) // removed from the file: its error is shown
	}
	for _, name := range names.Contexts {
		c := Context{Name: name, Current: name == current}
		if config, err := kubeconfig.Find(l.of(name)); err != nil {
			c.Error = err.Error()
		} else {
			c.Server, c.Namespace = config.URL, config.Namespace
		}
		all = append(all, c)
	}
	return all
}

// of returns the options for a context. The credentials of other flags are for the current one.
func (l *Local) of(name string) kubeconfig.Options {
	if name == l.current {
		return l.options
	}
	return kubeconfig.Options{Files: l.options.Files, Context: name}
}

// forward sends a request to the API server of a context.
func (l *Local) forward(w http.ResponseWriter, r *http.Request) {
	escaped, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), contextsPath), "/")
	name, err := url.PathUnescape(escaped)
	if !ok || err != nil || !strings.HasPrefix(r.URL.Path, contextsPath) {
		refuse(w, http.StatusNotFound, "there is no such path: an API server is below "+contextsPath+"NAME/")
		return
	}
	proxy, err := l.proxy(name)
	if err != nil {
		refuse(w, http.StatusBadGateway, err.Error())
		return
	}
	to := *r.URL
	to.RawPath = "/" + rest
	if to.Path, err = url.PathUnescape(to.RawPath); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	r.URL = &to
	proxy.ServeHTTP(w, r)
}

// proxy returns the handler for a context. It keeps its connections.
func (l *Local) proxy(name string) (http.Handler, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.proxies[name]; p != nil {
		return p, nil
	}
	config, err := kubeconfig.Find(l.of(name))
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(config.URL)
	if err != nil {
		return nil, err
	}
	p := &httputil.ReverseProxy{
		Transport:     config.Client().Transport,
		FlushInterval: -1, // a watch waits for each event
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			for _, name := range []string{"Cookie", "Referer", "Origin"} {
				p.Out.Header.Del(name)
			}
			if p.In.Header.Get("Upgrade") != "" { // Kubernetes rejects handshakes without an Origin
				p.Out.Header.Set("Origin", to.Scheme+"://"+to.Host)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			for name := range r.Header {
				if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
					r.Header.Del(name)
				}
			}
			harden(r.Header, "default-src 'none'; sandbox")
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, err.Error())
		},
	}
	l.proxies[name] = p
	return p, nil
}

// refuse answers with an error of the console itself, in the form of those of Kubernetes. The reason tells the pages
// the two apart.
func refuse(w http.ResponseWriter, code int, message string) {
	harden(w.Header(), "default-src 'none'")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Console", "code": code, "message": message}) // the client is gone
}
