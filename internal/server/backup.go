package server

import (
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
)

// backupPath is not below /debug: the copy has all Secrets. Its requests have no timeout.
const backupPath = "/backup"

// serveBackup answers with a copy of a store at one revision.
func serveBackup(b kv.Backend, log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		store, ok := kv.As[kv.Saver](b)
		if !ok {
			request.Fail(w, r, status.BadRequest("this store has no backups: etcd has snapshots of its own (etcdctl snapshot save), and an opened file is a backup"))
			return
		}
		begun := false
		err := store.Save(r.Context(), func(size int64) io.Writer {
			begun = true
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
			return &prompt{ResponseController: http.NewResponseController(w), to: w}
		})
		switch {
		case err == nil:
		case !begun:
			request.Fail(w, r, err)
		default:
			log.Warn("a backup is incomplete", "error", err)
			panic(http.ErrAbortHandler) // The client must not mistake the part that it has for the whole.
		}
	}
}

// readTimeout limits the time for which a client of a backup does not read: the store keeps the pages of the
// backup until its end, and its file grows with each write.
const readTimeout = time.Minute

// A prompt writer fails when the client does not read.
type prompt struct {
	*http.ResponseController
	to  io.Writer
	set time.Time // when the deadline was set
}

func (p *prompt) Write(data []byte) (int, error) {
	if now := time.Now(); now.Sub(p.set) > readTimeout/10 {
		p.set = now
		_ = p.SetWriteDeadline(now.Add(readTimeout)) // a writer without deadlines, in a test, goes on
	}
	return p.to.Write(data)
}
