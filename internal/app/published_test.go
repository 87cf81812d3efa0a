package app

import (
	"flag"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin/recording"
	"github.com/anykind/anykind/internal/openapi"
)

var shrink = flag.Bool("shrink", false, "write the kinds that are not served to internal/builtin/testdata")

// What clients are told of the built-in kinds is what a kube-apiserver tells them, as far
// as the kinds are served. Those that are not are in missing.txt, and what differs for a
// reason is in differences.txt.
func TestPublished(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	ours, err := recording.Record(asking(t, a), func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "builtin", "testdata", "v"+openapi.Kubernetes)
	missing := map[string]bool{}
	for subject := range strings.FieldsFuncSeq(read(t, dir, "missing.txt"), func(r rune) bool { return r == '\n' }) {
		if !ours["kinds.txt"].Has(subject) {
			missing[subject] = true
		} else if !*shrink {
			t.Errorf("%s is served: run this with -shrink, which takes it out of missing.txt", subject)
		}
	}
	var found []string
	theirs := recording.Files{}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if theirs[name], err = recording.Read(read(t, dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		found = append(found, recording.Differences(theirs[name].Only(expected(theirs, ours, missing)), ours[name])...)
	}
	argued := strings.Split(strings.TrimSpace(read(t, dir, "differences.txt")), "\n")
	argued = slices.DeleteFunc(argued, func(line string) bool { return line == "" || strings.HasPrefix(line, "#") })
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
		var lines string
		for _, b := range theirs["kinds.txt"] {
			if missing[b.Subject] {
				lines += b.Subject + "\n"
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "missing.txt"), []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// expected returns which subjects of a kube-apiserver are to be found here: all but the
// missing resources, and groups, types and parameters that only those need.
func expected(theirs, ours recording.Files, missing map[string]bool) func(string) bool {
	issuer := regexp.MustCompile("^(document )?/?(openid|.well-known)/")
	return func(subject string) bool {
		switch {
		case theirs["kinds.txt"].Has(subject):
			return !missing[subject]
		case len(missing) == 0, issuer.MatchString(subject):
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

// asking asks an App.
func asking(t *testing.T, a *App) recording.Server {
	c := client(t, a, admin(t, a))
	return func(path, accept string) (int, []byte, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+path, nil)
		if err != nil {
			return 0, nil, err
		}
		r.Header.Set("Accept", accept)
		answer, err := c.Do(r)
		if err != nil {
			return 0, nil, err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return answer.StatusCode, body, err
	}
}
