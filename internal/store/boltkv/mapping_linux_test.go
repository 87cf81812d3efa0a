package boltkv

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
)

// However much is written and read, little of the file is resident.
func TestMappingIsEmptied(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const most = 8 * mappedBytes // and the file is of four times that
	for i := range 32 {
		if _, err := s.Commit(t.Context(), kv.Write{Key: fmt.Sprint(i), Value: make([]byte, 1<<20)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := resident(t, filepath.Join(dir, FileName)); n > most {
		t.Errorf("after writing, %d bytes of the file are resident", n)
	}
	page, err := s.List(t.Context(), kv.Range{})
	if err != nil || len(page.Records) != 32 {
		t.Fatal(len(page.Records), err)
	}
	if n := resident(t, filepath.Join(dir, FileName)); n > most {
		t.Errorf("after reading, %d bytes of the file are resident", n)
	}
}

// resident returns the resident bytes of the mappings of a file.
func resident(t *testing.T, path string) (bytes int64) {
	t.Helper()
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer maps.Close()
	inside, found := false, false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Text()
		if first, _, _ := strings.Cut(line, " "); !strings.HasSuffix(first, ":") {
			inside = strings.HasSuffix(line, path)
			found = found || inside
		}
		var n int64
		if _, err := fmt.Sscanf(line, "Rss: %d kB", &n); err == nil && inside {
			bytes += n << 10
		}
	}
	if !found {
		t.Fatalf("%s is not mapped", path)
	}
	return bytes
}
