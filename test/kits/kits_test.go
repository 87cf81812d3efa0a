package kits

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/program"
)

var download = flag.Bool("download", false, "install client libraries from their registries, for the tests that use them")

// A kit is a copy of a folder of kits, with the program for its tests.
type kit struct {
	*testing.T
	dir string
	env []string
}

// open copies the kit of a language. It skips the test if a program of the language is missing.
func open(t *testing.T, language string, programs ...string) kit {
	t.Helper()
	t.Parallel()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not in PATH: install it to test kits/%s", p, language)
		}
	}
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	top, err := program.Top()
	if err != nil {
		t.Fatal(err)
	}
	k := kit{t, t.TempDir(), append(os.Environ(), "ANYKIND="+anykind)}
	if err := os.CopyFS(k.dir, os.DirFS(filepath.Join(top, "kits", language))); err != nil {
		t.Fatal(err)
	}
	return k
}

// run runs a command in the copy, and returns its output.
func (k kit) run(name string, args ...string) string {
	k.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(k.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = k.dir, k.env, &out, &out
	if err := cmd.Run(); err != nil {
		k.Fatalf("%s: %v\n%s", cmd, err, &out)
	}
	return out.String()
}

var (
	ranPython = regexp.MustCompile(`Ran (\d+) tests`)
	ranNode   = regexp.MustCompile(`# pass (\d+)`)
	ranRust   = regexp.MustCompile(`([1-9]\d*) passed; 0 failed`)
	ranJava   = regexp.MustCompile(`(\d+) tests passed`)
)

// ran fails if the output does not report tests, and logs the skipped ones.
func (k kit) ran(out string, count *regexp.Regexp) {
	k.Helper()
	if m := count.FindStringSubmatch(out); m == nil || m[1] == "0" {
		k.Errorf("no test ran:\n%s", out)
	}
	for line := range strings.Lines(out) {
		if low := strings.ToLower(line); strings.Contains(low, "# skip ") || strings.Contains(low, "skipped '") {
			k.Log(strings.TrimSpace(line))
		}
	}
}

func TestPython(t *testing.T) {
	python := "python3"
	if p := os.Getenv("PYTHON"); p != "" {
		python = p
	}
	k := open(t, "python", python)
	k.ran(k.run(python, "-B", "-m", "unittest", "-v"), ranPython)
}

func TestTypeScript(t *testing.T) {
	k := open(t, "typescript", "node")
	if version := strings.TrimSpace(k.run("node", "--version")); major(version) < 20 {
		t.Skipf("node is %s: install version 20 or newer to test kits/typescript", version)
	}
	if *download {
		k.run("npm", "install", "--no-fund", "--no-audit")
		k.run("npx", "tsc")
	}
	k.ran(k.run("node", "--test", "--test-reporter=tap", "test/anykind.test.js"), ranNode)
}

func TestJava(t *testing.T) {
	k := open(t, "java", "javac", "java")
	if version := k.run("javac", "-version"); major(strings.TrimPrefix(version, "javac ")) < 17 {
		t.Skipf("%s: install version 17 or newer to test kits/java", strings.TrimSpace(version))
	}
	var sources []string
	for _, folder := range []string{"main", "test"} {
		found, err := filepath.Glob(filepath.Join(k.dir, "src", folder, "java", "dev", "anykind", "*.java"))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, found...)
	}
	classes := filepath.Join(k.dir, "classes")
	k.run("javac", append([]string{"-Xlint:all", "-Werror", "-d", classes}, sources...)...)
	k.ran(k.run("java", "-cp", classes, "dev.anykind.KitTest"), ranJava)
}

// debianCrates selects Debian's packages of crates, librust-ureq-dev and others, instead of crates.io.
var debianCrates = []string{
	"--config", `source.crates-io.replace-with="debian"`,
	"--config", `source.debian.directory="/usr/share/cargo/registry"`,
}

func TestRust(t *testing.T) {
	k := open(t, "rust", "cargo")
	args := []string{"--offline"}
	switch {
	case k.succeeds("cargo", "fetch", "--offline"):
	case k.succeeds("cargo", append([]string{"fetch", "--offline"}, debianCrates...)...):
		args = append(args, debianCrates...)
	case *download:
		k.run("cargo", "fetch")
	default:
		t.Skip("the crates of kits/rust are not on this machine: make kits downloads them")
	}
	k.ran(k.run("cargo", append([]string{"test"}, args...)...), ranRust)
}

// succeeds reports whether a command succeeds in the copy.
func (k kit) succeeds(name string, args ...string) bool {
	cmd := exec.CommandContext(k.Context(), name, args...)
	cmd.Dir, cmd.Env = k.dir, k.env
	return cmd.Run() == nil
}

// major returns the first number of a version.
func major(version string) int {
	first, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// Each example in docs/kits.md is the one in the README of its kit.
func TestExamplesAreEqual(t *testing.T) {
	top, err := program.Top()
	if err != nil {
		t.Fatal(err)
	}
	page := read(t, top, "docs/kits.md")
	for folder, language := range map[string]string{"python": "python", "typescript": "typescript", "java": "java", "rust": "rust"} {
		readme := read(t, top, fmt.Sprintf("kits/%s/README.md", folder))
		example := regexp.MustCompile("(?s)```" + language + "\n.*?```\n").FindString(readme)
		if example == "" || !strings.Contains(page, example) {
			t.Errorf("docs/kits.md does not have the example of kits/%s/README.md:\n%s", folder, example)
		}
	}
}

func read(t *testing.T, top, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
