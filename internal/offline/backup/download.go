package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/anykind/anykind/internal/offline/apiclient"
)

const (
	// attempts is the number of attempts without progress after which a download fails.
	attempts = 5
	// pause is the time between the first attempts. It doubles each time.
	pause = 500 * time.Millisecond
)

// A download gets a copy, in several answers if it is interrupted.
type download struct {
	client *http.Client
	url    string
	to     *os.File
	pause  time.Duration // between the first attempts; 0 is the constant pause

	tag  string // of the copy in to
	have int64  // bytes of it
}

// errInterrupted is the error of an answer that ends early.
var errInterrupted = errors.New("the copy is incomplete")

// run gets the whole copy.
func (d *download) run(ctx context.Context) error {
	for failed := 0; ; failed++ {
		before := d.have
		err := d.next(ctx)
		if !errors.Is(err, errInterrupted) {
			return err
		}
		if d.have > before {
			failed = 0
		}
		if failed == attempts-1 {
			return err
		}
		select {
		case <-time.After(cmp.Or(d.pause, pause) << failed):
		case <-ctx.Done():
			return err
		}
	}
}

// next gets the rest of the copy, or another whole one if the server no longer has the first. Its error is
// errInterrupted if another attempt may succeed.
func (d *download) next(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return err
	}
	if d.have > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.have))
		r.Header.Set("If-Range", d.tag)
	}
	answer, err := d.client.Do(r)
	switch {
	case err != nil && d.have > 0 && ctx.Err() == nil:
		return fmt.Errorf("%w: %w", errInterrupted, err)
	case err != nil:
		return err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK:
		d.have, d.tag = 0, answer.Header.Get("ETag")
		if err := d.to.Truncate(0); err != nil {
			return err
		}
		if _, err := d.to.Seek(0, io.SeekStart); err != nil {
			return err
		}
	default:
		return apiclient.Refused(answer)
	}
	n, err := io.Copy(d.to, answer.Body)
	d.have += n
	if err != nil {
		return fmt.Errorf("%w: %w", errInterrupted, err)
	}
	return nil
}
