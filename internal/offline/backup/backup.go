// Package backup saves copies of the store of a running server.
//
// It knows the page of the server that has the copy, and verifies the file. It does not know objects.
package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object/resource"
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
		return s, refused(answer)
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
	return s, os.Rename(part.Name(), file)
}

// refused returns the error of an answer.
func refused(answer *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return err
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return fmt.Errorf("the server says: %s", status.Message)
	}
	return fmt.Errorf("the server answers %s", answer.Status)
}
