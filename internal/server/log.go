package server

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/anykind/anykind/internal/object/request"
)

// levelAccess is the level of the access log.
const levelAccess = slog.LevelDebug

// attributes describes an answered request. It omits the query, which may contain secrets,
// headers and bodies.
func (x *exchange) attributes(r *http.Request, elapsed time.Duration) []slog.Attr {
	return []slog.Attr{
		slog.String("verb", x.Info.Verb),
		slog.String("path", r.URL.Path),
		slog.String("user", nameOf(x.User)),
		slog.String("impersonator", nameOf(x.Impersonator)),
		slog.Int("code", x.answered()),
		slog.Int64("bytes", x.size),
		slog.Duration("elapsed", elapsed),
		slog.String("protocol", r.Proto),
		slog.String("client", r.RemoteAddr),
		slog.String("agent", r.UserAgent()),
		slog.String("auditID", x.AuditID),
		slog.Any("annotations", x.Annotations),
	}
}

func nameOf(u *request.User) string {
	if u == nil {
		return ""
	}
	return u.Name
}
