package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/test/program"
)

// assets are two folders for KUBEBUILDER_ASSETS.
type assets struct{ dir, theirs, ours string }

func (a *assets) remove() {
	a.end()
	os.RemoveAll(a.dir)
}

// end kills programs of the folders that still run, as some suites leave them behind. It finds them in
// /proc, if the system has it.
func (a *assets) end() {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(line, []byte(a.dir+string(filepath.Separator))) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			p.Kill() // fails only after the end of the process
		}
	}
}

// fill builds the programs, and fills the folders.
func fill() (*assets, error) {
	built := map[string]string{}
	for name, build := range map[string]func() (string, error){
		"kube-apiserver": program.KubeAPIServer, "etcd": program.Etcd, "kubectl": program.Kubectl, "anykind": program.Anykind,
	} {
		file, err := build()
		if err != nil {
			return nil, err
		}
		built[name] = file
	}
	dir, err := os.MkdirTemp("", "suites")
	if err != nil {
		return nil, err
	}
	a := &assets{dir: dir, theirs: filepath.Join(dir, "theirs"), ours: filepath.Join(dir, "ours")}
	err = os.Mkdir(a.theirs, 0o755)
	for _, name := range []string{"kube-apiserver", "etcd", "kubectl"} {
		if err == nil {
			err = os.Symlink(built[name], filepath.Join(a.theirs, name))
		}
	}
	if err == nil {
		command := exec.Command(built["anykind"], "assets", a.ours)
		command.Env = []string{"PATH=" + filepath.Dir(built["kubectl"])}
		err = command.Run()
	}
	if err != nil {
		a.remove()
		return nil, err
	}
	return a, nil
}

// copied is a writable copy of a module.
type copied struct {
	suite
	version, dir string
	programs     string   // folder of the module for the build of the tests
	environment  []string // variables with the folders of other modules
}

func (c *copied) remove() { os.RemoveAll(c.dir) }

// open copies a module from the module cache.
func open(ctx context.Context, s suite) (*copied, error) {
	top, err := program.Top()
	if err != nil {
		return nil, err
	}
	folder := "test/operators/" + s.built
	wanted := []string{s.module}
	for _, f := range s.folders {
		wanted = append(wanted, f.module)
	}
	modules, err := program.Published(folder, wanted...)
	if err != nil {
		return nil, err
	}
	c, module := &copied{suite: s, programs: filepath.Join(top, filepath.FromSlash(folder))}, modules[s.module]
	c.version = module.Version
	for name, f := range s.folders {
		c.environment = append(c.environment, name+"="+filepath.Join(modules[f.module].Dir, filepath.FromSlash(f.path)))
	}
	if c.dir, err = os.MkdirTemp("", "suite"); err != nil {
		return nil, err
	}
	if err := program.CopyTree(c.dir, module.Dir); err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

func environment() []string { return append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off") }

// build builds the tests of a package.
func (c *copied) build(ctx context.Context, pkg string) (string, error) {
	out := filepath.Join(c.dir, "suite.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags="+c.tags, "-o", out, path.Join(c.module, pkg))
	build.Dir, build.Env = c.programs, environment()
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the tests of %s/%s: %w\n%s", c.module, pkg, err, said)
	}
	return out, nil
}

// A result has the state of each test.
type result struct {
	state map[string]bool
	took  time.Duration
}

func (r *result) passed() (n int) {
	for _, passed := range r.state {
		if passed {
			n++
		}
	}
	return n
}

// test runs the tests of a package with the programs of a folder.
func (c *copied) test(ctx context.Context, binary, pkg, programs string, timeout time.Duration) (*result, error) {
	report := filepath.Join(c.dir, "suite.json")
	args := []string{"-test.v", "-test.timeout", timeout.String()}
	if c.skip != "" {
		args = append(args, "-test.skip", c.skip)
	}
	flags, _ := exec.CommandContext(ctx, binary, "-h").CombinedOutput() // its exit code is always an error
	specs := bytes.Contains(flags, []byte("ginkgo.json-report"))
	if specs {
		args = append(args, "-ginkgo.json-report", report, "-ginkgo.timeout", timeout.String())
	}
	run := exec.CommandContext(ctx, binary, args...)
	run.Dir = filepath.Join(c.dir, filepath.FromSlash(pkg))
	run.Env = append(append(os.Environ(), c.environment...), "KUBEBUILDER_ASSETS="+programs)
	began := time.Now()
	out, err := run.CombinedOutput()
	r := &result{state: map[string]bool{}, took: time.Since(began)}
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %w", pkg, err)
	}
	r.readTests(string(out))
	if specs {
		if err := r.readSpecs(report); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", pkg, err, tail(out))
		}
	}
	return r, ctx.Err()
}

func tail(out []byte) []byte { return out[max(0, len(out)-4000):] }

var ended = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL): (\S+) \(`)

// readTests reads the output of Go's tests. It does not count tests with subtests.
func (r *result) readTests(out string) {
	for _, m := range ended.FindAllStringSubmatch(out, -1) {
		r.state[m[2]] = m[1] == "PASS"
	}
	for _, name := range slices.Collect(maps.Keys(r.state)) {
		if i := strings.LastIndex(name, "/"); i >= 0 {
			delete(r.state, name[:i])
		}
	}
}

// readSpecs reads a report of Ginkgo.
func (r *result) readSpecs(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the package has the flags of Ginkgo, and no specs
	} else if err != nil {
		return err
	}
	defer os.Remove(file)
	var reports []struct {
		SpecReports []struct {
			ContainerHierarchyTexts    []string
			LeafNodeType, LeafNodeText string
			State                      string
		}
	}
	if err := json.Unmarshal(data, &reports); err != nil {
		return err
	}
	for _, report := range reports {
		for _, s := range report.SpecReports {
			if s.LeafNodeType != "It" || s.State == "pending" || s.State == "skipped" {
				continue
			}
			name := strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
			// Specs of a table may have the same name.
			for _, taken := r.state[name]; taken; _, taken = r.state[name] {
				name += "'"
			}
			r.state[name] = s.State == "passed"
		}
	}
	return nil
}
