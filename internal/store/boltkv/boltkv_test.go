package boltkv_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
)

// openIn opens the store in a directory. That the disk fails is never expected.
func openIn(t testing.TB, dir string) kv.Backend {
	t.Helper()
	s, err := boltkv.Open(dir, boltkv.Options{
		Fatal: func(err error) { t.Errorf("fatal: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openNew(t testing.TB) kv.Backend { return openIn(t, t.TempDir()) }

func TestContract(t *testing.T) {
	kvtest.Run(t, openNew, kvtest.ValueLimit(kv.DefaultMaxValueBytes))
}

func TestDurable(t *testing.T) {
	kvtest.RunDurable(t, openIn)
}

func BenchmarkContract(b *testing.B) {
	kvtest.Bench(b, openNew)
}

// BenchmarkOpen opens a store that is there already.
func BenchmarkOpen(b *testing.B) {
	for _, records := range []int{0, 100, 100_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			dir := b.TempDir()
			s := openIn(b, dir)
			kvtest.Fill(b, s, bytes.Repeat([]byte("v"), 1700), 0, records)
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(dir, boltkv.FileName))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := openIn(b, dir).Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(info.Size())/1e6, "MB")
		})
	}
}

// BenchmarkOpenNew creates a store.
func BenchmarkOpenNew(b *testing.B) {
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		if err := openIn(b, filepath.Join(dir, fmt.Sprint(i))).Close(); err != nil {
			b.Fatal(err)
		}
	}
}
