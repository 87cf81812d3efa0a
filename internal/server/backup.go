package server

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
)

// backupPath is not below /debug: the copy has all Secrets. Its requests have no timeout.
const backupPath = "/backup"

const (
	// resumeWithin is the time that a client has to resume an interrupted backup.
	resumeWithin = time.Minute
	// maxInterrupted limits the interrupted backups: each keeps a state of the store.
	maxInterrupted = 4
)

// Backups serve copies of a store at one revision. A client that was interrupted gets the rest of its copy: it
// sends Range, and If-Range with the ETag of the first answer.
type backups struct {
	store kv.Backend
	log   *slog.Logger

	mu          sync.Mutex
	interrupted map[string]*interrupted // by ETag
	closed      bool
}

// An interrupted copy waits for its client.
type interrupted struct {
	kv.Copy
	expires *time.Timer
}

func newBackups(b kv.Backend, log *slog.Logger) *backups {
	return &backups{store: b, log: log, interrupted: map[string]*interrupted{}}
}

func (b *backups) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !request.Allows(w, r, http.MethodGet) {
		return
	}
	store, ok := kv.As[kv.Saver](b.store)
	if !ok {
		request.Fail(w, r, status.BadRequest("this store has no backups: etcd has snapshots of its own (etcdctl snapshot save), and an opened file is a backup"))
		return
	}
	tag := r.Header.Get("If-Range")
	file, from := b.resume(tag, r.Header.Get("Range")), int64(0)
	if file != nil {
		from = rangeFrom(r.Header.Get("Range"))
	} else {
		tag = strconv.Quote(string(uuid.NewUUID()))
		var err error
		if file, err = store.Copy(r.Context()); err != nil {
			request.Fail(w, r, err)
			return
		}
	}
	b.send(w, r, file, tag, from)
}

// send answers with a copy from an offset on, and keeps it if the client is interrupted.
func (b *backups) send(w http.ResponseWriter, r *http.Request, file kv.Copy, tag string, from int64) {
	size := file.Size()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(size-from, 10))
	h.Set("Accept-Ranges", "bytes")
	h.Set("ETag", tag)
	if from > 0 {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, size-1, size))
		w.WriteHeader(http.StatusPartialContent)
	}
	err := file.WriteFrom(r.Context(), &prompt{ResponseController: http.NewResponseController(w), to: w}, from)
	if err == nil {
		err = file.Close()
	} else {
		b.keep(tag, file)
	}
	if err != nil {
		b.log.Warn("a backup is incomplete", "error", err)
		panic(http.ErrAbortHandler) // The client must not mistake the part that it has for the whole.
	}
}

// rangeFrom returns the offset of a range without an end; -1 for another one.
func rangeFrom(header string) int64 {
	text, ok := strings.CutPrefix(header, "bytes=")
	text, open := strings.CutSuffix(text, "-")
	from, err := strconv.ParseInt(text, 10, 64)
	if !ok || !open || err != nil || from < 0 {
		return -1
	}
	return from
}

// resume returns the interrupted copy of a tag, if the range is in it, and otherwise nil.
func (b *backups) resume(tag, header string) kv.Copy {
	from := rangeFrom(header)
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.interrupted[tag]
	if i == nil || from < 0 || from >= i.Size() {
		return nil
	}
	delete(b.interrupted, tag)
	i.expires.Stop()
	return i.Copy
}

// keep keeps a copy for its client, for some time.
func (b *backups) keep(tag string, file kv.Copy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.interrupted) >= maxInterrupted {
		b.drop(file)
		return
	}
	b.interrupted[tag] = &interrupted{file, time.AfterFunc(resumeWithin, func() {
		if c := b.resume(tag, "bytes=0-"); c != nil {
			b.drop(c)
		}
	})}
}

func (b *backups) drop(file kv.Copy) {
	if err := file.Close(); err != nil {
		b.log.Warn("a copy of the store could not be closed", "error", err)
	}
}

// close drops all copies, and keeps no other one.
func (b *backups) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for tag, i := range b.interrupted {
		i.expires.Stop()
		delete(b.interrupted, tag)
		b.drop(i.Copy)
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
