//go:build !race

// The race detector multiplies the processor time of the two tests by ten. They send one request at a time.

package app

import (
	"errors"
	"flag"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/recording"
	"github.com/anykind/anykind/internal/object/gate"
)

var shrink = flag.Bool("shrink", false, "write the kinds that are not served to internal/builtin/testdata")

// Discovery and OpenAPI of the served built-in kinds equal those of kube-apiserver. Kinds that are
// not served are in missing.txt, and intended differences in differences.txt.
func TestPublished(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	ours, err := recording.Record(asking(t, a), func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "builtin", "testdata", "recorded")
	compareFiles(t, dir, recorded(t, dir, nil), ours)
}

// The same applies to versions that --runtime-config enables.
func TestPublishedWhenTurnedOn(t *testing.T) {
	comparePublished(t, "off", Options{RuntimeConfig: builtin.RuntimeConfig{"api/all": "true"}})
}

// The same applies to kinds that need feature gates.
func TestPublishedWithGates(t *testing.T) {
	var gates gate.Flag
	var config builtin.RuntimeConfig
	if err := errors.Join(gates.Set(recording.Gates), config.Set(recording.GatedVersions)); err != nil {
		t.Fatal(err)
	}
	on, err := gates.Gates()
	if err != nil {
		t.Fatal(err)
	}
	comparePublished(t, "gated", Options{RuntimeConfig: config, Gates: on})
}

// comparePublished compares a server with a recording of things that are not there by default.
func comparePublished(t *testing.T, folder string, o Options) {
	t.Helper()
	a := start(t, o)
	defer stop(t, a)
	ours, err := recording.Record(asking(t, a), func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "builtin", "testdata", "recorded")
	usual, dir := recorded(t, dir, nil), filepath.Join(dir, folder)
	theirs := recorded(t, dir, usual)
	delete(ours, "groups.txt") // it has groups with only some of their kinds
	for name, r := range ours {
		ours[name] = r.Only(func(subject string) bool { return theirs[name].Has(subject) || !usual[name].Has(subject) })
	}
	compareFiles(t, dir, theirs, ours)
}

// recorded reads a recording, which may refer to another one.
func recorded(t *testing.T, dir string, other recording.Files) recording.Files {
	t.Helper()
	files := recording.Files{}
	for _, name := range []string{"groups.txt", "kinds.txt", "types.txt"} {
		r, err := recording.Read(read(t, dir, name), other[name])
		if err != nil {
			t.Fatal(err)
		}
		files[name] = r
	}
	return files
}

// lines returns the lines of a file without comments.
func lines(t *testing.T, dir, name string) []string {
	all := strings.Split(read(t, dir, name), "\n")
	return slices.DeleteFunc(all, func(line string) bool { return line == "" || strings.HasPrefix(line, "#") })
}

// compareFiles compares ours with theirs, which is recorded in a folder.
func compareFiles(t *testing.T, dir string, theirs, ours recording.Files) {
	t.Helper()
	missing := map[string]bool{}
	for _, subject := range lines(t, dir, "missing.txt") {
		if !ours["kinds.txt"].Has(subject) {
			missing[subject] = true
		} else if !*shrink {
			t.Errorf("%s is served: run this with -shrink, which takes it out of missing.txt", subject)
		}
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		found = append(found, recording.Differences(theirs[name].Only(expected(theirs, ours, missing)), ours[name])...)
	}
	argued := lines(t, dir, "differences.txt")
	for _, line := range found {
		if !slices.Contains(argued, line) {
			t.Error(line)
		}
	}
	for _, line := range argued {
		if !slices.Contains(found, line) {
			t.Errorf("differences.txt has what is none: %s", line)
		}
	}
	if *shrink {
		var left string
		for _, b := range theirs["kinds.txt"] {
			if missing[b.Subject] {
				left += b.Subject + "\n"
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "missing.txt"), []byte(left), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// expected returns a filter for subjects of kube-apiserver that must exist here. It excludes missing
// resources, and groups, types and parameters that only those need.
func expected(theirs, ours recording.Files, missing map[string]bool) func(string) bool {
	return func(subject string) bool {
		switch {
		case theirs["kinds.txt"].Has(subject):
			return !missing[subject]
		case len(missing) == 0:
			return true
		}
		return slices.ContainsFunc(slices.Collect(maps.Values(ours)), func(r recording.Recording) bool { return r.Has(subject) })
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// asking returns a client of an App.
func asking(t *testing.T, a *App) recording.Server {
	c := client(t, a, admin(t, a))
	return func(method, path, accept, body string) (int, []byte, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, a.URL()+path, strings.NewReader(body))
		if err != nil {
			return 0, nil, err
		}
		r.Header.Set("Accept", accept)
		r.Header.Set("Content-Type", "application/json")
		answer, err := c.Do(r)
		if err != nil {
			return 0, nil, err
		}
		defer answer.Body.Close()
		data, err := io.ReadAll(answer.Body)
		return answer.StatusCode, data, err
	}
}
