package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// maxOthers bounds the issuers of distributed claims that are kept for one issuer.
	maxOthers = 64
	// otherIdle is the idle time after which an issuer of distributed claims is dropped.
	otherIdle = 10 * time.Minute
	// otherPause bounds the backoff between two attempts to discover such an issuer.
	otherPause = 2 * time.Minute
)

// A resolver resolves a distributed claim of OpenID Connect: the token only names an endpoint. The
// endpoint returns a token of another issuer, whose claims are not resolved further.
type resolver struct {
	issuer *issuer
	claim  string

	mu     sync.Mutex
	others map[string]*other // by URL
}

// other is an issuer of distributed claims.
type other struct {
	*discovered
	used   time.Time
	idle   *time.Timer        // drops it
	cancel context.CancelFunc // ends its discovery
}

// claimSource is the source of a claim. Its name is part of kube-apiserver's messages.
type claimSource struct {
	URL         string `json:"endpoint,omitempty"`
	AccessToken string `json:"access_token,omitempty"`
}

// expand adds the claim to c if it is distributed.
func (r *resolver) expand(ctx context.Context, c claims) error {
	if c.has(r.claim) || !c.has("_claim_names") {
		return nil
	}
	var names map[string]string
	if err := c.get("_claim_names", &names); err != nil {
		return fmt.Errorf("oidc: error parsing distributed claim names: %v", err)
	}
	if !c.has("_claim_sources") {
		return fmt.Errorf("oidc: no claim sources")
	}
	var sources map[string]claimSource
	if err := c.get("_claim_sources", &sources); err != nil {
		return fmt.Errorf("oidc: could not parse claim sources: %v", err)
	}
	source, ok := names[r.claim]
	if !ok {
		return nil
	}
	at, ok := sources[source]
	if !ok {
		return fmt.Errorf("id token _claim_names contained a source %s missing in _claims_sources", source)
	}
	if at.URL == "" {
		return nil // It is aggregated.
	}
	value, err := r.resolve(ctx, at)
	if err == nil {
		c[r.claim] = value
	}
	return err
}

func (r *resolver) resolve(ctx context.Context, at claimSource) (json.RawMessage, error) {
	token, err := r.get(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("while getting distributed claim %q: %v", r.claim, err)
	}
	url, err := unverifiedIssuer(token)
	if err != nil {
		return nil, fmt.Errorf("getting untrusted issuer from endpoint %v failed for claim %q: %v", at.URL, r.claim, err)
	}
	keys, err := r.other(url).keys()
	if err != nil {
		return nil, fmt.Errorf("verifying untrusted issuer %v failed: verifier not initialized for issuer: %q", url, url)
	}
	c, err := r.issuer.verify(ctx, url, keys, token)
	if err != nil {
		return nil, fmt.Errorf("verify distributed claim token: %v", err)
	}
	if !c.has(r.claim) {
		return nil, fmt.Errorf("jwt returned by distributed claim endpoint %q did not contain claim: %v", at.URL, r.claim)
	}
	return c[r.claim], nil
}

// other returns the issuer of a URL, and starts discovery of a new one.
func (r *resolver) other(url string) *discovered {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.others[url]
	if o == nil {
		if len(r.others) >= maxOthers {
			r.forget(r.leastUseful())
		}
		ctx, cancel := context.WithCancel(r.issuer.ctx)
		o = &other{discovered: r.issuer.discover(ctx, url, otherPause, nil), cancel: cancel}
		o.idle = time.AfterFunc(otherIdle, func() { r.expire(url, o) })
		if r.others == nil {
			r.others = map[string]*other{}
		}
		r.others[url] = o
	}
	o.used = time.Now()
	o.idle.Reset(otherIdle)
	return o.discovered
}

// leastUseful returns the URL of the least recently used other issuer. An undiscovered issuer comes
// before a discovered one.
func (r *resolver) leastUseful() string {
	least, ready := "", true
	for url, o := range r.others {
		_, err := o.keys()
		found := err == nil
		if least == "" || ready && !found || ready == found && o.used.Before(r.others[least].used) {
			least, ready = url, found
		}
	}
	return least
}

// expire drops an other issuer unless it was replaced.
func (r *resolver) expire(url string, o *other) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.others[url] == o && time.Since(o.used) >= otherIdle {
		r.forget(url)
	}
}

// forget drops an other issuer and ends its discovery. The caller holds the lock.
func (r *resolver) forget(url string) {
	o := r.others[url]
	o.idle.Stop()
	o.cancel()
	delete(r.others, url)
}

// get fetches the token at an endpoint.
func (r *resolver) get(ctx context.Context, at claimSource) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL, nil)
	if err != nil {
		return "", fmt.Errorf("while calling %v: %v", at.URL, err)
	}
	if at.AccessToken != "" {
		request.Header.Set("Authorization", "Bearer "+at.AccessToken)
	}
	response, err := r.issuer.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode < http.StatusOK || response.StatusCode > http.StatusIMUsed {
		return "", fmt.Errorf("error while getting distributed claim JWT: %v", response.Status)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("could not decode distributed claim response")
	}
	return string(body), nil
}
