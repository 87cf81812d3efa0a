// Package backup saves copies of the store of a running server.
//
// It knows the page of the server that has the copy, and verifies the file. It does not know objects.
package backup

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/store/atomicfile"
)

// A Saved describes a complete backup.
type Saved struct {
	Objects  int
	Revision int64
}

// Save saves a copy of the store of a server. The file is replaced when the copy is complete and verified;
// after an error it is as before.
func Save(ctx context.Context, c *http.Client, url, file string) (s Saved, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/backup", nil)
	if err != nil {
		return s, err
	}
	answer, err := c.Do(r)
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return s, apiclient.Refused(answer)
	}
	part, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*") // as 0600
	if err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part.Name())
		}
	}()
	defer part.Close()
	if _, err := io.Copy(part, answer.Body); err != nil {
		return s, fmt.Errorf("the copy is incomplete: %w", err)
	}
	if err := part.Sync(); err != nil {
		return s, err
	}
	m, err := app.MapStore(part.Name(), resource.Root)
	if err != nil {
		return s, fmt.Errorf("the copy is damaged: %w", err)
	}
	s = Saved{len(m.Records), m.Revision}
	m.Release()
	return s, atomicfile.Rename(part.Name(), file)
}
