package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/internal/offline/check/checktest"
)

// BenchmarkRun checks manifests of built-in and custom kinds, 10 objects a file.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	const manifests = 10_000
	if err := os.WriteFile(filepath.Join(dir, "crd.yaml"), []byte(checktest.Definition), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := checktest.Manifests(dir, manifests); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		report, err := Run(b.Context(), []string{dir}, nil, Options{AllowPrivileged: true})
		if err != nil {
			b.Fatal(err)
		}
		if s := report.Summary; s.Accepted != manifests+1 {
			b.Fatal(s)
		}
	}
	b.ReportMetric(float64(manifests)*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}
