package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/anykind/anykind/test/process"
)

// A watcher follows all records, across restarts of the server.
type watcher struct {
	seen     map[string]version
	all      map[int64]string // every event except deletions: the write at a revision
	revision int64            // of the last event, from which it resumes
	events   int
}

func newWatcher() *watcher {
	return &watcher{seen: map[string]version{}, all: map[int64]string{}}
}

type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// follow watches until the connection breaks, or until an event of the object named until. Its error
// is a violation.
func (w *watcher) follow(ctx context.Context, api process.API, until string) error {
	defer api.Client.CloseIdleConnections()
	url := fmt.Sprintf("%s%s?watch=true&resourceVersion=%d", api.URL, path, w.revision)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := api.Client.Do(r)
	if err != nil {
		return nil // killed
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(response.Body)
		return fmt.Errorf("the watch from %d was refused: %s %s", w.revision, response.Status, said)
	}
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // a truncated line is no event
		}
		name, err := w.see(line)
		if err != nil {
			return err
		}
		if name == until {
			return nil
		}
	}
}

// see processes one event and returns the name of its object.
func (w *watcher) see(line []byte) (string, error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return "", fmt.Errorf("the watch sent what is no event: %w: %.200s", err, line)
	}
	var r record
	if err := json.Unmarshal(e.Object, &r); err != nil {
		return "", err
	}
	revision, err := r.revision()
	if err != nil || e.Type == "ERROR" {
		return "", fmt.Errorf("the watch from %d sent %.400s", w.revision, line)
	}
	if revision <= w.revision {
		return "", fmt.Errorf("the watch sent %s of %s at revision %d after revision %d", e.Type, r.Metadata.Name, revision, w.revision)
	}
	if err := r.check(); err != nil {
		return "", err
	}
	was := w.seen[r.Metadata.Name]
	if (e.Type == "ADDED") == was.present || e.Type == "BOOKMARK" {
		return "", fmt.Errorf("the watch sent %s of %s at revision %d, which was %s", e.Type, r.Metadata.Name, revision, was)
	}
	w.revision = revision
	w.events++
	if e.Type == "DELETED" {
		delete(w.seen, r.Metadata.Name)
	} else {
		w.seen[r.Metadata.Name] = version{present: true, value: r.Spec.Value, revision: revision}
		w.all[revision] = writeOf(r.Metadata.Name, r.Spec.Value)
	}
	return r.Metadata.Name, nil
}

// compare returns an error for a difference between the events and the stored objects.
func (w *watcher) compare(stored map[string]version) error {
	for name, v := range stored {
		if w.seen[name] != v {
			return fmt.Errorf("%s is %s, the watch has seen %s last", name, v, w.seen[name])
		}
	}
	for name, v := range w.seen {
		if !stored[name].present {
			return fmt.Errorf("%s is absent, the watch has seen %s last", name, v)
		}
	}
	return nil
}
