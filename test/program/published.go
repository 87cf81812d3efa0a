package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Module is a published Go module, in the module cache.
type Module struct{ Path, Version, Dir string }

// Published returns the modules that the go.mod in a folder of the repository requires, by
// their paths. They are downloaded unless they are there. What is downloaded is checked
// against go.sum.
func Published(folder string) (map[string]Module, error) {
	top, err := Top()
	if err != nil {
		return nil, err
	}
	download := exec.Command("go", "mod", "download", "-json")
	download.Dir = filepath.Join(top, filepath.FromSlash(folder))
	download.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var said strings.Builder
	download.Stderr = &said
	out, failed := download.Output()
	modules := map[string]Module{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var m struct {
			Module
			Error string
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("what go mod download says: %w", err)
		}
		if m.Error != "" {
			said.WriteString(m.Error)
		}
		modules[m.Path] = m.Module
	}
	if failed != nil {
		return nil, fmt.Errorf("downloading published modules, in %s: %w: %s", download.Dir, failed, said.String())
	}
	return modules, nil
}
