package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var (
	whole = flag.Bool("release", false, "make two releases; takes as long as twelve builds of the program")
	cold  = flag.Bool("cold", false, "build the second release with its own build cache")
	made  = flag.String("made", "", "check the release of this commit in this `folder` instead of making one")
)

const top = "../../.."

func TestRelease(t *testing.T) {
	if !*whole && *made == "" {
		t.Skip("this takes long: make release-check")
	}
	dist, commit := *made, head(t) // HEAD may move during the test
	if dist == "" {
		first, second := makeRelease(t, commit), makeRelease(t, commit, secondEnvironment(t)...)
		same(t, first, second)
		dist = first
	}
	r := read(t, dist, commit)
	t.Run("checksums", r.checksums)
	t.Run("programs", r.programs)
	t.Run("start", r.start)
	t.Run("pages", r.pages)
	t.Run("sbom", r.sbom)
	t.Run("image", r.image)
	t.Run("unit", r.unit)
}

// makeRelease makes a release of a clone, in a new folder.
func makeRelease(t *testing.T, commit string, env ...string) (dist string) {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, nil, "git", "clone", "--quiet", "--no-hardlinks", top, clone)
	run(t, nil, "git", "-C", clone, "checkout", "--quiet", "--detach", commit)
	run(t, env, "go", "-C", filepath.Join(clone, "tools", "release"), "run", ".", "-source", clone)
	return filepath.Join(clone, "dist")
}

// secondEnvironment differs from the first environment in settings that must not matter.
func secondEnvironment(t *testing.T) []string {
	env := []string{"TZ=Pacific/Chatham", "LANG=tr_TR.UTF-8", "HOME=" + t.TempDir(), "GOMODCACHE=" + goEnv(t, "GOMODCACHE"), "GOARM64=v8.1", "GOMAXPROCS=3"}
	cache := goEnv(t, "GOCACHE")
	if *cold {
		cache = t.TempDir()
	}
	return append(env, "GOCACHE="+cache)
}

func head(t *testing.T) string {
	return strings.TrimSpace(run(t, nil, "git", "-C", top, "rev-parse", "HEAD"))
}

func goEnv(t *testing.T, name string) string {
	return strings.TrimSpace(run(t, nil, "go", "env", name))
}

func run(t *testing.T, env []string, name string, args ...string) (stdout string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd, err, out, &stderr)
	}
	return string(out)
}

// same compares two folders.
func same(t *testing.T, first, second string) {
	t.Helper()
	one, two := hashes(t, first), hashes(t, second)
	for name, sum := range one {
		if two[name] != sum {
			t.Errorf("%s is %s and %s", name, sum, two[name])
		}
	}
	if len(one) != len(two) {
		t.Errorf("%d files and %d", len(one), len(two))
	}
	t.Logf("%d files are the same, byte by byte", len(one))
}

func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		sum := sha256.Sum256(data)
		all[name] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil || len(all) < 15 {
		t.Fatalf("%s has %d files, %v", dir, len(all), err)
	}
	return all
}
