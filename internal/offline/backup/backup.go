// Package backup saves copies of the store of a running server.
//
// It knows the page of the server that has the copy, and verifies the file. It does not know objects.
package backup

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/atomicfile"
)

// A Saved describes a complete backup.
type Saved struct {
	Objects  int
	Revision int64
}

// Save saves a copy of the store of a server. The file is replaced when the copy is complete and verified;
// after an error it is as before. An interrupted copy is resumed.
func Save(ctx context.Context, c *http.Client, url, file string) (s Saved, err error) {
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
	d := download{client: c, url: url + "/backup", to: part}
	if err := d.run(ctx); err != nil {
		return s, err
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
