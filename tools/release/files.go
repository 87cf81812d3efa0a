package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anykind/anykind/tools/release/archive"
	"github.com/anykind/anykind/tools/release/image"
	"github.com/anykind/anykind/tools/release/sbom"
)

// A written file is a file of the release. Its platform is that of its program; the image has none.
type written struct {
	platform
	name, sha256 string
	modules      []sbom.Module
}

// repository is the URL of the project. This program publishes nothing there.
const repository = "https://github.com/anykind/anykind"

const (
	license     = "Apache-2.0"
	description = "Kubernetes API for any kind, without the cluster"
)

// folder is the name of the one folder of an archive.
func (r *release) folder(p platform) string { return r.file("-" + p.String()) }

// writeArchives writes an archive for each program.
func (r *release) writeArchives(programs []program, pages []archive.File, all parts) ([]written, error) {
	documents, err := r.documents(all)
	if err != nil {
		return nil, err
	}
	var archives []written
	for _, p := range programs {
		data, err := os.ReadFile(p.path)
		if err != nil {
			return nil, err
		}
		files := append(of(p.platform, pages), documents...)
		files = append(files, archive.File{Name: p.program(), Data: data, Mode: 0o755})
		write, suffix := archive.TarGzip, ".tar.gz"
		switch p.os {
		case "windows":
			write, suffix = archive.Zip, ".zip"
		case "linux":
			files = append(files, archive.File{Name: "systemd/anykind.service", Data: unit, Mode: 0o644})
		}
		w := written{platform: p.platform, name: r.folder(p.platform) + suffix, modules: all.linkedInto(p)}
		if w.sha256, err = r.writeArchive(w.name, write, archive.Under(r.folder(p.platform), files)); err != nil {
			return nil, err
		}
		archives = append(archives, w)
	}
	return archives, nil
}

// documents are the documents in every archive.
func (r *release) documents(all parts) ([]archive.File, error) {
	read, err := r.sources("README.md", "docs/install.md")
	if err != nil {
		return nil, err
	}
	licenses, err := r.licenses(all)
	return append(read, licenses...), err
}

// licenses are the licences that every copy of the program needs.
func (r *release) licenses(all parts) ([]archive.File, error) {
	own, err := r.sources("LICENSE")
	return append(own, archive.File{Name: "LICENSES-OF-OTHERS.txt", Data: all.licenses(), Mode: 0o644}), err
}

// sources reads files of the repository.
func (r *release) sources(names ...string) ([]archive.File, error) {
	var files []archive.File
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(r.source, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		files = append(files, archive.File{Name: name, Data: data, Mode: 0o644})
	}
	return files, nil
}

func (r *release) writeArchive(name string, write func(io.Writer, []archive.File, time.Time) error, files []archive.File) (sum string, err error) {
	say("writing %s", name)
	var b bytes.Buffer
	if err := write(&b, files, r.commit.time); err != nil {
		return "", err
	}
	return hash(b.Bytes()), os.WriteFile(filepath.Join(r.out, name), b.Bytes(), 0o644)
}

// writeImage writes the image as a folder, and the folder as one file.
func (r *release) writeImage(programs []program, all parts) (written, error) {
	licenses, err := r.licenses(all)
	if err != nil {
		return written{}, err
	}
	i := image.Image{
		Name: "localhost/anykind", Version: r.version, Created: r.commit.time,
		Labels: map[string]string{
			"org.opencontainers.image.title":       "anykind",
			"org.opencontainers.image.description": description,
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.revision":    r.commit.id,
			"org.opencontainers.image.created":     r.commit.time.Format(time.RFC3339),
			"org.opencontainers.image.source":      repository,
			"org.opencontainers.image.licenses":    license,
		},
		Files: archive.Under("licenses", licenses),
	}
	layout := written{name: r.file("-oci.tar"), modules: []sbom.Module{all[image.Roots].Module}}
	for _, p := range programs {
		if p.os != "linux" {
			continue
		}
		data, err := os.ReadFile(p.path)
		if err != nil {
			return written{}, err
		}
		to := image.Program{OS: p.os, Architecture: p.arch, Data: data}
		if p.arch == "arm64" {
			to.Variant = "v8"
		} else {
			layout.modules = append(layout.modules, all.linkedInto(p)...) // all platforms link the same modules
		}
		i.Programs = append(i.Programs, to)
	}
	dir := filepath.Join(r.out, "image")
	if err := i.Write(dir); err != nil {
		return written{}, err
	}
	files, err := filesIn(dir)
	if err != nil {
		return written{}, err
	}
	layout.sha256, err = r.writeArchive(layout.name, archive.Tar, files)
	return layout, err
}

// filesIn reads the files of a folder and its subfolders.
func filesIn(dir string) ([]archive.File, error) {
	var files []archive.File
	top := os.DirFS(dir)
	err := fs.WalkDir(top, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(top, name)
		files = append(files, archive.File{Name: name, Data: data, Mode: 0o644})
		return err
	})
	return files, err
}

func (r *release) sbom(archives []written, layout written, all parts) ([]byte, error) {
	of := sbom.Release{
		Name: "anykind", Version: r.version, Commit: r.commit.id, License: license, Created: r.commit.time, Tool: "anykind-release",
	}
	for _, w := range append(archives, layout) {
		of.Artifacts = append(of.Artifacts, sbom.Artifact{Name: w.name, SHA256: w.sha256, Image: w.platform == platform{}, Modules: w.modules})
	}
	return of.SPDX()
}

// writeSums writes the checksums of all files in a folder, as sha256sum does.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", hash(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
