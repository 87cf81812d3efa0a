package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/tools/release/archive"
	"github.com/anykind/anykind/tools/release/image"
	"github.com/anykind/anykind/tools/release/sbom"
)

// small returns a release of fake programs, and its input.
func small(t *testing.T) (*release, []program, []archive.File, parts) {
	t.Helper()
	r := &release{
		source: "../..", out: t.TempDir(), base: "https://example.com/v1.2.3", version: "v1.2.3",
		commit: commit{"abc", time.Unix(1_700_000_000, 0)},
	}
	all := parts{
		standard:          {Module: sbom.Module{Path: standard, Version: "1.26.0", License: "BSD-3-Clause"}, texts: []sbom.Text{{Name: "LICENSE", Data: []byte("be free")}}},
		"example.com/one": {Module: sbom.Module{Path: "example.com/one", Version: "v0.1.0"}},
		image.Roots:       {Module: sbom.Module{Path: image.Roots, Version: "v0.2.0"}},
	}
	var programs []program
	for _, p := range platforms {
		path := filepath.Join(t.TempDir(), p.program())
		if err := os.WriteFile(path, []byte("for "+p.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		programs = append(programs, program{p, path, &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/one", Version: "v0.1.0"}}}})
	}
	pages := []archive.File{
		{Name: manuals + "anykind.1", Data: []byte("manual"), Mode: 0o644}, {Name: completions + "_anykind", Data: []byte("words"), Mode: 0o644},
	}
	return r, programs, pages, all
}

func TestArchives(t *testing.T) {
	r, programs, pages, all := small(t)
	archives, err := r.writeArchives(programs, pages, all)
	if err != nil {
		t.Fatal(err)
	}
	both := []string{"LICENSE", "LICENSES-OF-OTHERS.txt", "README.md", "completions/_anykind", "docs/install.md"}
	for _, a := range archives {
		data, err := os.ReadFile(filepath.Join(r.out, a.name))
		if err != nil || hash(data) != a.sha256 {
			t.Fatal(a.name, err)
		}
		want := append(slices.Clone(both), a.program())
		got := listTar
		switch a.os {
		case "linux":
			want = append(want, "man/man1/anykind.1", "systemd/anykind.service")
		case "darwin":
			want = append(want, "man/man1/anykind.1")
		case "windows":
			got = listZip
		}
		slices.Sort(want)
		for i := range want {
			want[i] = "anykind-v1.2.3-" + a.platform.String() + "/" + want[i]
		}
		if got := got(t, data); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", a.name, got, want)
		}
	}
}

func listTar(t *testing.T, data []byte) (names []string) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		} else if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			names = append(names, h.Name)
		}
	}
}

func listZip(t *testing.T, data []byte) (names []string) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		if !f.FileInfo().IsDir() {
			names = append(names, f.Name)
		}
	}
	return names
}

// The folder and the file of the image are the same image, and are valid for registries.
func TestImage(t *testing.T) {
	r, programs, _, all := small(t)
	tarred, err := r.writeImage(programs, all)
	if err != nil {
		t.Fatal(err)
	}
	if tarred.name != "anykind-v1.2.3-oci.tar" || len(tarred.modules) != 3 {
		t.Errorf("%+v", tarred)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(r.out, "image"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(filepath.Join(r.out, tarred.name))
	if err != nil || hash(data) != tarred.sha256 {
		t.Fatal(err)
	}
	files, err := filesIn(filepath.Join(r.out, "image"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !bytes.Contains(data, f.Data) {
			t.Errorf("%s is not in %s", f.Name, tarred.name)
		}
	}
}

// krew rejects unknown fields. The known ones are the whole manifest.
func TestKrew(t *testing.T) {
	r, programs, pages, all := small(t)
	archives, err := r.writeArchives(programs, pages, all)
	if err != nil {
		t.Fatal(err)
	}
	data, err := r.krew(archives)
	if err != nil {
		t.Fatal(err)
	}
	var plugin krewPlugin
	if err := yaml.UnmarshalStrict(data, &plugin); err != nil {
		t.Fatal(err)
	}
	if s := plugin.Spec.ShortDescription; len(s) > 50 || strings.ContainsAny(s, "\r\n") || strings.HasSuffix(s, ".") {
		t.Errorf("krew wants a description of one line, at most 50 letters and no full stop, not %q", s)
	}
	if plugin.Spec.Version != "v1.2.3" || len(plugin.Spec.Platforms) != len(platforms) {
		t.Errorf("%s", data)
	}
	for i, p := range plugin.Spec.Platforms {
		bin := p.Files[0].From[strings.LastIndex(p.Files[0].From, "/")+1:]
		if bin != p.Bin || p.URI != "https://example.com/v1.2.3/"+archives[i].name || p.SHA256 != archives[i].sha256 ||
			p.Selector.MatchLabels["os"] != archives[i].os || p.Selector.MatchLabels["arch"] != archives[i].arch {
			t.Errorf("%+v is for %+v", p, archives[i])
		}
	}
}

func TestFormula(t *testing.T) {
	r, programs, pages, all := small(t)
	archives, err := r.writeArchives(programs, pages, all)
	if err != nil {
		t.Fatal(err)
	}
	data, err := r.formula(archives)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, a := range archives {
		both := `url "https://example.com/v1.2.3/` + a.name + "\"\n      sha256 \"" + a.sha256 + `"`
		if got, want := strings.Contains(text, both), a.os != "windows"; got != want {
			t.Errorf("%s is in it: %v, want %v:\n%s", a.name, got, want, text)
		}
	}
	// These are rules of brew audit --strict for descriptions.
	if len(description) >= 80 || strings.HasPrefix(description, "A ") || strings.HasSuffix(description, ".") {
		t.Errorf("Homebrew does not take the description %q", description)
	}
	if !strings.Contains(text, `version "1.2.3"`) || strings.Count(text, " do\n") != strings.Count(text, "end\n")-2 {
		t.Error(text)
	}
}

// systemd accepts the unit, and rates its exposure as low.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	file := filepath.Join(t.TempDir(), "anykind.service")
	here := strings.ReplaceAll(string(unit), "/usr/local/bin/anykind", os.Args[0])
	if err := os.WriteFile(file, []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=15", file).CombinedOutput(); err != nil {
		t.Errorf("its exposure is more than 1.5: %s", out)
	}
}

func TestSums(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "image"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(dir); err != nil {
		t.Fatal(err)
	}
	const want = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n" +
		"3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  b\n"
	if got, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS")); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// A release has no uncommitted changes.
func TestHead(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=jane", "-c", "user.email=jane@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-22T12:00:00+02:00")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run("init", "-q")
	run("commit", "-q", "--allow-empty", "-m", "first")
	head, err := headOf(context.Background(), dir)
	if err != nil || len(head.id) != 40 || head.time.Format(time.RFC3339) != "2026-11-22T10:00:00Z" {
		t.Errorf("%+v, %v", head, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := headOf(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "commit or remove them first:\n?? new") {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		settings = append([]debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}}, settings...)
		return &debug.BuildInfo{GoVersion: runtime.Version(), Main: debug.Module{Version: version}, Settings: settings}
	}
	const pseudo = "v0.0.0-20261122100000-abcabcabcabc"
	older := built(pseudo)
	older.GoVersion = "go1.1"
	for _, test := range []struct {
		name, version string
		info          *debug.BuildInfo
		want          string
	}{
		{"as the commit is called", "", built(pseudo), ""},
		{"before the tag", "v1.0.0", built(pseudo), ""},
		{"with the tag", "v1.0.0", built("v1.0.0"), ""},
		{"with another tag", "v1.0.0", built("v2.0.0"), "the commit has the tag v2.0.0, and VERSION is v1.0.0"},
		{"another commit", "", built(pseudo, debug.BuildSetting{Key: "vcs.revision", Value: "def"}), `it is of commit "def", want abc`},
		{"changed meanwhile", "", built(pseudo, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "the working tree changed"},
		{"an experiment", "", built(pseudo, debug.BuildSetting{Key: "GOEXPERIMENT", Value: "x"}), "it has the experiments x"},
		{"another Go", "", older, "go1.1 built it, and this is go"},
	} {
		r := release{version: test.version, commit: commit{id: "abc"}}
		err := r.check(test.info)
		if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestVersionIsOne(t *testing.T) {
	for _, version := range []string{"1.0.0", "v1", "v1.0.0+local", "latest"} {
		r := release{version: version, source: "nowhere"}
		if err := r.run(context.Background()); err == nil || !strings.Contains(err.Error(), "is no version") {
			t.Errorf("%s: %v", version, err)
		}
	}
}
