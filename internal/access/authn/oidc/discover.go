package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// maxBody bounds a response of an issuer.
	maxBody = 4 << 20
	// fetchPause is the minimum time between two fetches of keys. Without it every invalid token
	// would cost a request to the issuer.
	fetchPause = time.Second
)

// discovered is the background discovery of an issuer.
type discovered struct {
	mu    sync.Mutex
	found *keySet
	err   error         // the error of the last attempt
	done  chan struct{} // closed after success
}

// discover fetches the discovery document of an issuer until it succeeds or ctx ends. The backoff
// doubles up to longest.
func (i *issuer) discover(ctx context.Context, url string, longest time.Duration, recorder *recorder) *discovered {
	d := &discovered{err: fmt.Errorf("oidc: authenticator for issuer %q is not initialized", url), done: make(chan struct{})}
	go func() {
		for pause := discoverAgain; ; pause = min(2*pause, longest) {
			at, err := i.locate(ctx, url)
			if err == nil {
				d.mu.Lock()
				d.found, d.err = &keySet{url: at, client: i.client, ctx: i.ctx, recorder: recorder}, nil
				d.mu.Unlock()
				close(d.done)
				return
			}
			if ctx.Err() != nil {
				return
			}
			i.options.Log.Warn("an OIDC issuer is not ready", "issuer", url, "error", err)
			d.mu.Lock()
			d.err = err
			d.mu.Unlock()
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
	}()
	return d
}

// locate returns the URL of an issuer's keys. An error quotes only names of the response: the token
// of a distributed claim may have chosen the server.
func (i *issuer) locate(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+wellKnown, nil)
	if err != nil {
		return "", err
	}
	body, err := answer(i.client, r)
	if err != nil {
		return "", err
	}
	var about struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	switch err := json.Unmarshal(body, &about); {
	case err != nil:
		return "", fmt.Errorf("oidc: failed to decode provider discovery object: %v", err)
	case about.Issuer != url:
		return "", fmt.Errorf("oidc: issuer did not match the issuer returned by provider, expected %q got %q", url, about.Issuer)
	case about.Keys == "":
		return "", errors.New("provider did not return JWKS URL")
	}
	return about.Keys, nil
}

// answer returns the body of a successful response.
func answer(client *http.Client, r *http.Request) ([]byte, error) {
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("unable to read response body: %v", err)
	}
	return body, nil
}

// keys returns the keys of the issuer, or the error of discovery.
func (d *discovered) keys() (*keySet, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found, d.err
}

// A keySet holds the keys of an issuer. It fetches them when a token has a signature of an unknown
// key.
type keySet struct {
	url      string
	client   *http.Client
	ctx      context.Context
	recorder *recorder // nil records nothing

	mu      sync.Mutex
	known   []jose.JSONWebKey
	fetched time.Time // last fetch of known, or last failure
	running *fetch
}

// A fetch is a running fetch.
type fetch struct {
	done chan struct{}
	keys []jose.JSONWebKey
	err  error
}

var errNotSigned = errors.New("failed to verify id token signature")

// verify returns the payload of a token if a key of the issuer verifies its signature.
func (k *keySet) verify(ctx context.Context, signed *jose.JSONWebSignature) ([]byte, error) {
	k.mu.Lock()
	known, recent := k.known, time.Since(k.fetched) < fetchPause
	k.mu.Unlock()
	if payload, ok := check(signed, known); ok {
		return payload, nil
	}
	if recent && k.idle() {
		return nil, errNotSigned
	}
	keys, err := k.fetch(ctx)
	if err != nil {
		return nil, fmt.Errorf("fetching keys %v", err)
	}
	if payload, ok := check(signed, keys); ok {
		return payload, nil
	}
	return nil, errNotSigned
}

// check returns the payload if a key of the token's key ID verifies the signature.
func check(signed *jose.JSONWebSignature, keys []jose.JSONWebKey) ([]byte, bool) {
	id := signed.Signatures[0].Header.KeyID
	for i := range keys {
		if id == "" || keys[i].KeyID == id {
			if payload, err := signed.Verify(&keys[i]); err == nil {
				return payload, true
			}
		}
	}
	return nil, false
}

func (k *keySet) idle() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running == nil
}

// fetch gets the keys. Concurrent callers share one request.
func (k *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	f := k.running
	if f == nil {
		f = &fetch{done: make(chan struct{})}
		k.running = f
		go func() {
			f.keys, f.err = k.get()
			k.mu.Lock()
			defer k.mu.Unlock()
			if f.err == nil {
				k.known = f.keys
			}
			k.fetched, k.running = time.Now(), nil
			close(f.done)
		}()
	}
	k.mu.Unlock()
	select {
	case <-f.done:
		return f.keys, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (k *keySet) get() (keys []jose.JSONWebKey, err error) {
	var body []byte
	defer func() { k.recorder.record(k.ctx, body, err) }()
	r, err := http.NewRequestWithContext(k.ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, fmt.Errorf("oidc: can't create request: %v", err)
	}
	if body, err = answer(k.client, r); err != nil {
		return nil, fmt.Errorf("oidc: get keys failed %v", err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("oidc: failed to decode keys: %v", err)
	}
	return set.Keys, nil
}

// bounded limits the size of response bodies.
type bounded struct{ http.RoundTripper }

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxBody)
	}
	return response, err
}

// elsewhere sends the requests for one URL to another.
type elsewhere struct {
	http.RoundTripper
	from string
	to   *url.URL
}

func (e *elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && r.URL.String() == e.from {
		r = r.Clone(r.Context())
		r.Host, r.URL = "", e.to
	}
	return e.RoundTripper.RoundTrip(r)
}
