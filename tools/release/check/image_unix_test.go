//go:build unix

package check

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"
)

// image unpacks the image for this machine into an empty root, and runs its program as a container
// would: with that root, as its user, with its arguments. There is nothing else: no /proc, no /dev.
func (r *release) image(t *testing.T) {
	image := r.forThisMachine(t)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		t.Skip("the image is well-formed; only root can give a process another root and another user")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the image is well-formed; its program is for Linux")
	}
	root := t.TempDir()
	for _, dir := range []string{root, filepath.Dir(root)} { // the container's user has to traverse them
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unpack(t, image, root)

	first := startIn(t, root, config.Config)
	first.request(t, http.MethodPost, "/api/v1/namespaces/default/configmaps",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept"}}`, http.StatusCreated)
	first.stop(t)
	second := startIn(t, root, config.Config)
	second.request(t, http.MethodGet, "/api/v1/namespaces/default/configmaps/kept", "", http.StatusOK)
	second.stop(t)

	// Its files belong to its user, and all are in the volume.
	err = filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		owner := strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid))
		inVolume := strings.HasPrefix(p, filepath.Join(root, "data"))
		if user, _, _ := strings.Cut(config.Config.User, ":"); inVolume != (owner == user) {
			t.Errorf("%s is of %s", strings.TrimPrefix(p, root), owner)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (r *release) forThisMachine(t *testing.T) v1.Image {
	t.Helper()
	top, err := layout.ImageIndexFromPath(filepath.Join(r.dist, "image"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	for _, d := range manifest.Manifests {
		if d.Platform.Architecture == runtime.GOARCH {
			image, err := index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("no image for %s in %+v", runtime.GOARCH, manifest)
	return nil
}

func unpack(t *testing.T, image v1.Image, root string) {
	t.Helper()
	in := mutate.Extract(image)
	defer in.Close()
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			var data []byte
			data, err = io.ReadAll(r)
			err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o600))
		}
		if err := errors.Join(err, os.Chown(to, h.Uid, h.Gid), os.Chmod(to, h.FileInfo().Mode())); err != nil {
			t.Fatal(err)
		}
	}
}

// A container is a program with a root of its own.
type container struct {
	*exec.Cmd
	stderr bytes.Buffer
	url    string
	client *http.Client
}

func startIn(t *testing.T, root string, config v1.Config) *container {
	t.Helper()
	user, group, _ := strings.Cut(config.User, ":")
	uid, err := strconv.ParseUint(user, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(group, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	// The image's own arguments, and a free port.
	args := append(append(append([]string{}, config.Entrypoint...), config.Cmd...), "--secure-port=0")
	c := &container{Cmd: &exec.Cmd{
		Path: args[0], Args: args, Dir: config.WorkingDir, Env: config.Env,
		SysProcAttr: &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}},
	}}
	c.Cmd.Stderr = &c.stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "started in") {
		t.Log(lines.Text())
	}
	c.connect(t, filepath.Join(root, "data", "admin.kubeconfig"))
	return c
}

// connect returns a client with the administrator's kubeconfig.
func (c *container) connect(t *testing.T, kubeconfig string) {
	t.Helper()
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err, &c.stderr)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.Users[0].User.Certificate, config.Users[0].User.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.Clusters[0].Cluster.CA)
	c.url = config.Clusters[0].Cluster.Server
	c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}}
	t.Cleanup(c.client.CloseIdleConnections)
}

func (c *container) request(t *testing.T, method, path, body string, want int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err, &c.stderr)
	}
	defer answer.Body.Close()
	if data, _ := io.ReadAll(answer.Body); answer.StatusCode != want {
		t.Errorf("%s %s: %s: %s", method, path, answer.Status, data)
	}
}

// stop stops the program as a container runtime does.
func (c *container) stop(t *testing.T) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v: %s", err, &c.stderr)
	}
}
