package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/anykind/anykind/internal/authn/tokenreview"
	"github.com/anykind/anykind/internal/egress"
	"github.com/anykind/anykind/internal/review"
)

// A TokenWebhook is asked whose a token is.
type TokenWebhook struct {
	ConfigFile string // kubeconfig; "" is for nobody
	Version    string // of TokenReview
	CacheTTL   time.Duration
}

// open reads the kubeconfig. It returns nil if there is none.
func (h *TokenWebhook) open(log *slog.Logger) (*review.Client, error) {
	if h.ConfigFile == "" {
		return nil, nil
	}
	if err := tokenreview.CheckVersion(h.Version); err != nil {
		return nil, err
	}
	if h.CacheTTL > 0 && h.CacheTTL < tokenSuccess {
		log.Warn("the webhook cache ttl is shorter than the overall cache ttl for successful token authentication attempts", "webhook", h.CacheTTL, "overall", tokenSuccess)
	}
	var direct egress.Dialer
	return review.Open(h.ConfigFile, "", direct.DialContext, review.Timeout)
}

const (
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
)

// transport returns what makes requests to an issuer of tokens.
func (a *App) transport(config *tls.Config) http.RoundTripper {
	var direct egress.Dialer
	t := &http.Transport{
		DialContext: direct.DialContext, Proxy: direct.Proxy, TLSClientConfig: config, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout,
	}
	context.AfterFunc(a.parts.ctx, t.CloseIdleConnections)
	return t
}
