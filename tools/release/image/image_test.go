package image

import (
	"archive/tar"
	"crypto/x509"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/anykind/anykind/tools/release/archive"
)

func written(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	err := Image{
		Name: "localhost/thing", Version: "v1.0.0", Created: time.Unix(1_700_000_000, 0),
		Labels: map[string]string{"org.opencontainers.image.version": "v1.0.0"},
		Files:  archive.Under("licenses", []archive.File{{Name: "LICENSE", Data: []byte("free"), Mode: 0o644}}),
		Programs: []Program{
			{OS: "linux", Architecture: "amd64", Data: []byte("for amd64")},
			{OS: "linux", Architecture: "arm64", Variant: "v8", Data: []byte("for arm64")},
		},
	}.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// images reads a layout as clients of registries do, and returns the images by platform.
func images(t *testing.T, dir string) map[string]ggcr.Image {
	t.Helper()
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v: want one thing with a name", manifest, err)
	}
	named := manifest.Manifests[0]
	if named.Annotations["org.opencontainers.image.ref.name"] != "v1.0.0" || named.Annotations["io.containerd.image.name"] != "localhost/thing:v1.0.0" {
		t.Errorf("its name is %v", named.Annotations)
	}
	index, err := top.ImageIndex(named.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	all := map[string]ggcr.Image{}
	for _, d := range manifest.Manifests {
		if all[d.Platform.String()], err = index.Image(d.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestImagesOfPlatforms(t *testing.T) {
	all := images(t, written(t))
	if len(all) != 2 || all["linux/amd64"] == nil || all["linux/arm64/v8"] == nil {
		t.Fatalf("the platforms are %v", all)
	}
	config, err := all["linux/arm64/v8"].ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	said, _ := json.Marshal(config.Config)
	want := `{"Cmd":["serve","--data-dir=/data","--bind-address=0.0.0.0"],"Entrypoint":["/anykind"],"Env":["PATH=/","HOME=/data"],` +
		`"Labels":{"org.opencontainers.image.version":"v1.0.0"},"User":"65532:65532","Volumes":{"/data":{}},"WorkingDir":"/",` +
		`"ExposedPorts":{"6443/tcp":{}},"StopSignal":"SIGTERM"}`
	if string(said) != want || config.Architecture != "arm64" || config.Variant != "v8" || config.OS != "linux" {
		t.Errorf("%s for %s", said, config.Platform())
	}
}

// The root of a container has the program and its surroundings, with the right owners.
func TestRoot(t *testing.T) {
	root := mutate.Extract(images(t, written(t))["linux/amd64"])
	defer root.Close()
	found := map[string]*tar.Header{}
	content := map[string]string{}
	for r := tar.NewReader(root); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(r)
		name := strings.TrimSuffix(h.Name, "/")
		found[name], content[name] = h, string(data)
	}
	for name, want := range map[string]struct {
		mode int64
		uid  int
	}{
		"anykind": {0o755, 0}, "data": {0o700, 65532}, "tmp": {0o1777, 0}, "etc/passwd": {0o644, 0}, "licenses/LICENSE": {0o644, 0},
	} {
		if h := found[name]; h == nil || h.Mode != want.mode || h.Uid != want.uid || h.Gid != want.uid {
			t.Errorf("%s: %+v, want %+v", name, h, want)
		}
	}
	if content["anykind"] != "for amd64" {
		t.Errorf("the program is %q", content["anykind"])
	}
	pool := x509.NewCertPool()
	if pem := content["etc/ssl/certs/ca-certificates.crt"]; !pool.AppendCertsFromPEM([]byte(pem)) || strings.Count(pem, "BEGIN") < 100 {
		t.Errorf("%d authorities", strings.Count(pem, "BEGIN"))
	}
}

func TestSameBytes(t *testing.T) {
	one, two := digests(t, written(t)), digests(t, written(t))
	if !slices.Equal(one, two) || len(one) != 10 {
		t.Errorf("%q\n%q", one, two)
	}
}

// digests returns the files of a layout: a blob has its digest as its name, and the index lists the
// digests.
func digests(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		entry := strings.TrimPrefix(p, dir)
		if filepath.Ext(p) == ".json" {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			entry += string(data)
		}
		list = append(list, entry)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
