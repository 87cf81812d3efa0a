package check

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
)

// A release holds the files of a release.
type release struct {
	dist     string
	commit   string
	archives map[string]map[string][]byte // by platform, the files by their names in the folder
	names    map[string]string            // by platform, of the archives
}

func read(t *testing.T, dist, commit string) *release {
	t.Helper()
	r := &release{dist: dist, commit: commit, archives: map[string]map[string][]byte{}, names: map[string]string{}}
	for _, platform := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64", "windows-amd64", "windows-arm64"} {
		found, err := filepath.Glob(filepath.Join(dist, "anykind-v*-"+platform+".*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("the archives for %s are %v, %v", platform, found, err)
		}
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		r.names[platform] = filepath.Base(found[0])
		if strings.HasSuffix(found[0], ".zip") {
			r.archives[platform] = inZip(t, data)
		} else {
			r.archives[platform] = inTar(t, data)
		}
	}
	return r
}

func inTar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[inside(h.Name)], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func inZip(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[inside(f.Name)], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// inside returns the path of a file in the one folder of an archive.
func inside(name string) string {
	_, rest, _ := strings.Cut(name, "/")
	return rest
}

// sha256sum accepts the checksums, and no file lacks one.
func (r *release) checksums(t *testing.T) {
	sums, err := os.ReadFile(filepath.Join(r.dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	all := hashes(t, r.dist)
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if all[name] != sum {
			t.Errorf("%s is %s, and the list says %s", name, all[name], sum)
		}
		delete(all, name)
	}
	delete(all, "SHA256SUMS")
	for name := range all {
		if path.Dir(name) == "." {
			t.Errorf("the list does not have %s", name)
		}
	}
}

// The build information of each program has this commit and its platform.
func (r *release) programs(t *testing.T) {
	for platform, files := range r.archives {
		info, err := buildinfo.Read(bytes.NewReader(program(files)))
		if err != nil {
			t.Errorf("%s: %v", platform, err)
			continue
		}
		said := map[string]string{}
		for _, s := range info.Settings {
			said[s.Key] = s.Value
		}
		if said["GOOS"]+"-"+said["GOARCH"] != platform || said["CGO_ENABLED"] != "0" || said["vcs.revision"] != r.commit || said["vcs.modified"] != "false" {
			t.Errorf("%s: %v", platform, said)
		}
		if bytes.Contains(program(files), []byte(filepath.Dir(r.dist))) {
			t.Errorf("%s: the program has the path where it was built", platform)
		}
	}
}

func program(files map[string][]byte) []byte {
	if p, ok := files["anykind.exe"]; ok {
		return p
	}
	return files["anykind"]
}

// The programs for this machine, and those for an emulator, print their version and serve.
func (r *release) start(t *testing.T) {
	runners := map[string][]string{runtime.GOOS + "-" + runtime.GOARCH: nil}
	if emulator, err := exec.LookPath("qemu-aarch64"); err == nil && runtime.GOOS == "linux" && runtime.GOARCH != "arm64" {
		runners["linux-arm64"] = []string{emulator}
	}
	for platform, runner := range runners {
		file := filepath.Join(t.TempDir(), "anykind.exe")
		if err := os.WriteFile(file, program(r.archives[platform]), 0o700); err != nil {
			t.Fatal(err)
		}
		command := append(append([]string{}, runner...), file)
		said := run(t, nil, command[0], append(command[1:], "version", "-o", "json")...)
		var v struct{ AnykindVersion, GitCommit, GitTreeState, Platform string }
		if err := json.Unmarshal([]byte(said), &v); err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(platform, "-", "/"); v.GitCommit != r.commit || v.GitTreeState != "clean" || v.Platform != want || !strings.Contains(r.names[platform], v.AnykindVersion) {
			t.Errorf("%s: %s", r.names[platform], said)
		}
		object := filepath.Join(t.TempDir(), "object.yaml")
		if err := os.WriteFile(object, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: example\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := run(t, nil, command[0], append(command[1:], "check", object)...); !strings.Contains(said, "1 accepted") {
			t.Errorf("%s: %s", platform, said)
		}
		t.Logf("the program for %s starts", platform)
	}
}

// roff accepts all pages, and each installed shell its completions.
func (r *release) pages(t *testing.T) {
	files := r.archives["linux-amd64"]
	read, manuals := 0, 0
	for name, data := range files {
		reader := []string{}
		switch path.Ext(name) {
		case ".1":
			manuals++
			reader = []string{"groff", "-man", "-Tutf8", "-ww", "-z"}
		case ".bash":
			reader = []string{"bash", "-n"}
		case ".fish":
			reader = []string{"fish", "--no-execute"}
		}
		if path.Base(name) == "_anykind" {
			reader = []string{"zsh", "-n"}
		}
		if len(reader) == 0 {
			continue
		}
		program, err := exec.LookPath(reader[0])
		if err != nil {
			t.Logf("%s is not read: there is no %s here", name, reader[0])
			continue
		}
		cmd := exec.Command(program, reader[1:]...)
		cmd.Stdin = bytes.NewReader(data)
		if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("%s: %v: %s", name, err, said)
		}
		read++
	}
	if manuals < 10 {
		t.Errorf("there are only %d man pages", manuals)
	}
	t.Logf("%d of %d pages and scripts are read", read, manuals+3)
}

// The SBOM has, for each archive, its checksum and the modules in the program's build information.
func (r *release) sbom(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(r.dist, "*.spdx.json"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var d spdx.Document
	if err := spdxjson.ReadInto(bytes.NewReader(data), &d); err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(&d); err != nil {
		t.Error(err)
	}
	packages := map[string]*spdx.Package{} // by identifier
	said := map[string]map[string]bool{}   // modules by file name
	unlicensed := 0
	for _, p := range d.Packages {
		packages[string(p.PackageSPDXIdentifier)] = p
		if p.PackageLicenseDeclared == "NOASSERTION" {
			t.Logf("%s %s has no licence that is known", p.PackageName, p.PackageVersion)
			unlicensed++
		}
	}
	for _, rel := range d.Relationships {
		if rel.Relationship != "CONTAINS" {
			continue
		}
		file, in := packages[string(rel.RefA.ElementRefID)].PackageFileName, packages[string(rel.RefB.ElementRefID)]
		if said[file] == nil {
			said[file] = map[string]bool{}
		}
		said[file][in.PackageName+" "+in.PackageVersion] = true
	}
	for platform, files := range r.archives {
		info, err := buildinfo.Read(bytes.NewReader(program(files)))
		if err != nil {
			t.Fatal(err)
		}
		of := said[r.names[platform]]
		for _, m := range info.Deps {
			if !of[m.Path+" "+m.Version] {
				t.Errorf("%s has %s %s, and the SBOM does not say so", platform, m.Path, m.Version)
			}
		}
		if len(of) != len(info.Deps)+1 { // and the standard library
			t.Errorf("%s is made of %d modules, and the SBOM has %d", platform, len(info.Deps)+1, len(of))
		}
	}
	t.Logf("%d packages, %d of them without a known licence", len(d.Packages), unlicensed)
}
