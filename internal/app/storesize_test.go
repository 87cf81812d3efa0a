package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// Metrics say how large the file of the store is. A store in memory has none.
func TestStoreSize(t *testing.T) {
	size := regexp.MustCompile(`(?m)^apiserver_storage_size_bytes\{storage_cluster_id="etcd-0"\} (\S+)$`)
	shown := func(o Options) []string {
		a := start(t, o)
		defer stop(t, a)
		_, metrics := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+"/metrics", "", "")
		return size.FindStringSubmatch(metrics)
	}
	dir := t.TempDir()
	said := shown(Options{Dir: dir})
	if said == nil {
		t.Fatal("metrics do not have the size of the store")
	}
	bytes, err := strconv.ParseFloat(said[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	found := false
	for _, name := range files {
		info, err := os.Stat(name)
		found = found || err == nil && float64(info.Size()) == bytes
	}
	if !found {
		t.Errorf("no file has %s bytes", said[1])
	}
	if said := shown(Options{}); said != nil {
		t.Errorf("a store in memory has a size: %v", said)
	}
}
