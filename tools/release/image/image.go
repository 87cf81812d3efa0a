// Package image writes an OCI image layout: an image for each platform, of a shared layer and one with
// the program. It knows the format, and the surroundings of a static program: a user, writable
// folders, and the CAs for outgoing TLS connections. There is no operating system in the image.
package image

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/anykind/anykind/tools/release/archive"
)

// User is the user ID of the program, the one of other images without a system.
const User = 65532

// Roots is the module with the CAs.
const Roots = "golang.org/x/crypto/x509roots/fallback"

// An Image is the input of a layout.
type Image struct {
	Name     string // its name in a registry, without a tag
	Version  string // the tag
	Created  time.Time
	Labels   map[string]string
	Files    []archive.File // files for all platforms, besides the program
	Programs []Program
}

// A Program is the program of a platform. Its path in the image is /anykind.
type Program struct {
	OS, Architecture, Variant string
	Data                      []byte
}

// A folder is a layout under construction.
type folder struct {
	dir     string
	created time.Time
}

// Write writes the layout into a new folder.
func (i Image) Write(dir string) error {
	l := folder{dir, i.Created.UTC()}
	if err := os.MkdirAll(filepath.Join(dir, v1.ImageBlobsDir, "sha256"), 0o755); err != nil {
		return err
	}
	shared, sharedID, err := l.layer(append(surroundings(), i.Files...))
	if err != nil {
		return err
	}
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Annotations: i.Labels}
	for _, p := range i.Programs {
		platform := v1.Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant}
		program, programID, err := l.layer([]archive.File{{Name: "anykind", Data: p.Data, Mode: 0o755}})
		if err != nil {
			return err
		}
		config, err := l.blob(v1.MediaTypeImageConfig, i.config(platform, sharedID, programID))
		if err != nil {
			return err
		}
		one, err := l.blob(v1.MediaTypeImageManifest, v1.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
			Config: config, Layers: []v1.Descriptor{shared, program}, Annotations: i.Labels,
		})
		if err != nil {
			return err
		}
		one.Platform = &platform
		index.Manifests = append(index.Manifests, one)
	}
	all, err := l.blob(v1.MediaTypeImageIndex, index)
	if err != nil {
		return err
	}
	// containerd reads the name from its own annotation, all others from the annotation of the format.
	all.Annotations = map[string]string{v1.AnnotationRefName: i.Version, "io.containerd.image.name": i.Name + ":" + i.Version}
	return l.close(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{all}})
}

func (i Image) config(p v1.Platform, layers ...digest.Digest) v1.Image {
	created := i.Created.UTC()
	return v1.Image{
		Created:  &created,
		Platform: p,
		Config: v1.ImageConfig{
			User:         fmt.Sprintf("%d:%d", User, User),
			ExposedPorts: map[string]struct{}{"6443/tcp": {}},
			Env:          []string{"PATH=/", "HOME=/data"},
			Entrypoint:   []string{"/anykind"},
			Cmd:          []string{"serve", "--data-dir=/data", "--bind-address=0.0.0.0"},
			Volumes:      map[string]struct{}{"/data": {}},
			WorkingDir:   "/",
			Labels:       i.Labels,
			StopSignal:   "SIGTERM",
		},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: layers},
		History: []v1.History{
			{Created: &created, CreatedBy: "make release", Comment: "a user, folders, licenses, and the authorities of Mozilla"},
			{Created: &created, CreatedBy: "make release", Comment: "the program"},
		},
	}
}

// surroundings are the files that the program needs and does not bring.
func surroundings() []archive.File {
	user := fmt.Sprintf("anykind:x:%d:%[1]d::/data:/anykind\n", User)
	group := fmt.Sprintf("anykind:x:%d:\n", User)
	return []archive.File{
		{Name: "data/", Mode: 0o700, UID: User, GID: User},
		{Name: "tmp/", Mode: 0o777 | fs.ModeSticky},
		{Name: "etc/", Mode: 0o755}, {Name: "etc/ssl/", Mode: 0o755}, {Name: "etc/ssl/certs/", Mode: 0o755},
		{Name: "etc/passwd", Data: []byte(user), Mode: 0o644},
		{Name: "etc/group", Data: []byte(group), Mode: 0o644},
		{Name: "etc/ssl/certs/ca-certificates.crt", Data: authorities(), Mode: 0o644},
	}
}

// authorities are the CAs that Mozilla trusts without constraints: a PEM file cannot express
// constraints.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writes to a Buffer do not fail
		}
	}
	return b.Bytes()
}

// layer writes a layer of files, and returns it with the digest of its uncompressed content.
func (l folder) layer(files []archive.File) (v1.Descriptor, digest.Digest, error) {
	var plain, compressed bytes.Buffer
	if err := archive.Tar(&plain, files, l.created); err != nil {
		return v1.Descriptor{}, "", err
	}
	z := gzip.NewWriter(&compressed)
	if _, err := z.Write(plain.Bytes()); err != nil {
		return v1.Descriptor{}, "", err
	}
	if err := z.Close(); err != nil {
		return v1.Descriptor{}, "", err
	}
	d, err := l.bytes(v1.MediaTypeImageLayerGzip, compressed.Bytes())
	return d, digest.FromBytes(plain.Bytes()), err
}

func (l folder) blob(mediaType string, value any) (v1.Descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return l.bytes(mediaType, data)
}

func (l folder) bytes(mediaType string, data []byte) (v1.Descriptor, error) {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	return d, os.WriteFile(filepath.Join(l.dir, v1.ImageBlobsDir, "sha256", d.Digest.Encoded()), data, 0o644)
}

// close writes the files that make the folder a layout.
func (l folder) close(index v1.Index) error {
	for name, value := range map[string]any{
		v1.ImageIndexFile:  index,
		v1.ImageLayoutFile: v1.ImageLayout{Version: v1.ImageLayoutVersion},
	} {
		data, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(l.dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
