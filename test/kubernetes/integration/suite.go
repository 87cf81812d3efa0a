package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/test/kubernetes/published"
)

const (
	tests     = published.Module + "/test/integration"
	fixture   = published.Module + "/cmd/kube-apiserver/app/testing"
	copied    = published.Module + "/copied" // internal packages of Kubernetes can be imported there
	here      = "github.com/anykind/anykind/test"
	startFunc = "func StartTestServer("
)

// A suite is a copy of the tests, ready to run.
type suite struct {
	dir    string // the top folder
	module string // of the copy, inside dir
	server string // anykind under the name kube-apiserver
	etcd   string // path of the program
}

// prepare makes the copy.
func prepare(folder, dir, anykind, etcd string) (*suite, error) {
	source, err := published.Source()
	if err != nil {
		return nil, err
	}
	// The fixture searches for its package below the folder of all sources.
	s := &suite{dir: dir, module: filepath.Join(dir, "src", filepath.FromSlash(copied)), server: filepath.Join(dir, "path", "kube-apiserver")}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := published.Copy(s.module, source, "test/integration", "cmd/kube-apiserver/app/testing", "hack/testdata", "api/openapi-spec"); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(s.server), 0o755); err != nil {
		return nil, err
	}
	for from, to := range map[string]string{anykind: "kube-apiserver", etcd: "etcd"} {
		if err := os.Symlink(from, filepath.Join(filepath.Dir(s.server), to)); err != nil {
			return nil, err
		}
	}
	// Fixtures of other modules write certificates beside their source, so the folder has to exist here.
	if err := os.MkdirAll(filepath.Join(dir, "src", "k8s.io", "apiextensions-apiserver@"+kubernetes.Modules, "pkg", "cmd", "server", "testing", "testdata"), 0o755); err != nil {
		return nil, err
	}
	for from, to := range map[string]string{"testing": "cmd/kube-apiserver/app/testing", "framework": "test/integration/framework"} {
		if err := s.glue(filepath.Join(folder, "integration", "glue", from), filepath.Join(s.module, filepath.FromSlash(to))); err != nil {
			return nil, err
		}
	}
	if err := s.rewrite(); err != nil {
		return nil, err
	}
	return s, s.writeModule(folder)
}

// glue adds our files to a package, and renames the function that they replace.
func (s *suite) glue(from, to string) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := renameStart(to); err != nil {
		return err
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, "anykind_"+f.Name()), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// renameStart renames the one function that starts the server.
func renameStart(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	renamed := 0
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if !bytes.Contains(data, []byte("\n"+startFunc)) {
			continue
		}
		renamed++
		data = bytes.Replace(data, []byte("\n"+startFunc), []byte("\nfunc startPublished("), 1)
		if err := os.WriteFile(f, data, 0o644); err != nil {
			return err
		}
	}
	if renamed != 1 {
		return fmt.Errorf("%s has %q in %d files, not in one", dir, startFunc, renamed)
	}
	return nil
}

// rewrite changes the imports of the copies to the copies.
func (s *suite) rewrite() error {
	moved := strings.NewReplacer(`"`+tests, `"`+copied+"/test/integration", `"`+fixture, `"`+copied+"/cmd/kube-apiserver/app/testing")
	return filepath.WalkDir(s.module, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(moved.Replace(string(data))), 0o644)
	})
}

// relative finds the folders of replaced modules.
var relative = regexp.MustCompile(`(?m)=> \.\.\S*$`)

// writeModule writes a go.mod that requires this module, with the same requirements.
func (s *suite) writeModule(folder string) error {
	module := filepath.Dir(folder)
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return err
	}
	text := strings.Replace(string(mod), "module "+here, "module "+copied, 1)
	text = relative.ReplaceAllStringFunc(text, func(to string) string { return "=> " + filepath.Join(module, strings.TrimPrefix(to, "=> ")) })
	text += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", here, module)
	if err := os.WriteFile(filepath.Join(s.module, "go.mod"), []byte(text), 0o644); err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.module, "go.sum"), sum, 0o644)
}

// build builds the test program of a package.
func (s *suite) build(name string) error {
	return published.TestProgram(s.program(name), s.module, "./test/integration/"+name, "-tags=copied", "-mod=mod")
}

func (s *suite) program(name string) string {
	return filepath.Join(s.dir, strings.ReplaceAll(name, "/", "-")+".test")
}

// startEtcd starts the etcd of all tests. Each server has a prefix of its own there.
func (s *suite) startEtcd(program string) (stop func(), err error) {
	var urls []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		urls = append(urls, "http://"+l.Addr().String())
	}
	s.etcd = urls[0]
	cmd := exec.Command(program, "--data-dir", filepath.Join(s.dir, "etcd"), "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
		"--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1], "--initial-cluster", "default="+urls[1])
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	for timeout := time.After(time.Minute); ; {
		if c, err := net.Dial("tcp", strings.TrimPrefix(urls[0], "http://")); err == nil {
			c.Close()
			return stop, nil
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("it ended: %w", err)
		case <-timeout:
			stop()
			return nil, fmt.Errorf("it does not listen at %s", urls[0])
		case <-time.After(50 * time.Millisecond):
		}
	}
}
