package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/anykind/anykind/internal/access/authn/tokenreview"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/egress/selector"
	"github.com/anykind/anykind/internal/network/review"
)

// A TokenWebhook authenticates tokens by a webhook.
type TokenWebhook struct {
	ConfigFile string // kubeconfig; "" disables the webhook
	Version    string // of TokenReview
	CacheTTL   time.Duration
}

// open reads the kubeconfig. It returns nil if there is none.
func (h *TokenWebhook) open(by *egress.Dialer, log *slog.Logger) (*review.Client, error) {
	if h.ConfigFile == "" {
		return nil, nil
	}
	if err := tokenreview.CheckVersion(h.Version); err != nil {
		return nil, err
	}
	if h.CacheTTL > 0 && h.CacheTTL < tokenSuccess {
		log.Warn("the webhook cache ttl is shorter than the overall cache ttl for successful token authentication attempts", "webhook", h.CacheTTL, "overall", tokenSuccess)
	}
	return review.Open(h.ConfigFile, "", by.DialContext, review.Timeout)
}

const (
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
)

// transport returns the transport for requests to an issuer of tokens.
func (a *App) transport(config *tls.Config, through egress.Dial) http.RoundTripper {
	d := egress.Dialer{Through: through}
	t := &http.Transport{
		DialContext: d.DialContext, Proxy: d.Proxy, TLSClientConfig: config, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout,
	}
	context.AfterFunc(a.parts.ctx, t.CloseIdleConnections)
	return t
}

// ways returns the dialers to issuers of tokens, by egress selection; nil without an egress
// configuration.
func (a *App) ways() func(name string) egress.Dial {
	if !a.egress.Configured() {
		return nil
	}
	return func(name string) egress.Dial { return a.egress.Dial(selector.Name(name)) }
}
