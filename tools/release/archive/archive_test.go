package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing"
	"time"
)

var at = time.Unix(1_700_000_000, 123).In(time.FixedZone("elsewhere", 3600))

func files() []File {
	return Under("thing-v1", []File{
		{Name: "thing", Data: []byte("program"), Mode: 0o755},
		{Name: "man/man1/thing.1", Data: []byte("manual"), Mode: 0o644},
	})
}

// An archive has the files that were added, sorted by name, with the fixed time and owner.
func TestWhatIsInside(t *testing.T) {
	want := []string{
		"thing-v1/ drwxr-xr-x 0", "thing-v1/man/ drwxr-xr-x 0", "thing-v1/man/man1/ drwxr-xr-x 0",
		"thing-v1/man/man1/thing.1 -rw-r--r-- 6", "thing-v1/thing -rwxr-xr-x 7",
	}
	for name, list := range map[string]func(*testing.T) []string{"tar.gz": listTar, "zip": listZip} {
		if got := list(t); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func listTar(t *testing.T) (list []string) {
	var b bytes.Buffer
	if err := TarGzip(&b, files(), at); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != at.Unix() || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s is of %v, %d:%d %s:%s", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname)
		}
		list = append(list, fmt.Sprintf("%s %v %d", h.Name, h.FileInfo().Mode(), h.Size))
	}
}

func listZip(t *testing.T) (list []string) {
	var b bytes.Buffer
	if err := Zip(&b, files(), at); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		if f.Modified.Unix() != at.Unix() {
			t.Errorf("%s is of %v", f.Name, f.Modified)
		}
		list = append(list, fmt.Sprintf("%s %v %d", f.Name, f.Mode(), f.UncompressedSize64))
	}
	return list
}

// The bytes depend neither on the order of the files in the call nor on the clock.
func TestSameBytes(t *testing.T) {
	for name, write := range map[string]func(io.Writer, []File, time.Time) error{"tar": Tar, "tar.gz": TarGzip, "zip": Zip} {
		var one, two bytes.Buffer
		backwards := files()
		slices.Reverse(backwards)
		if err := write(&one, files(), at); err != nil {
			t.Fatal(err)
		}
		if err := write(&two, backwards, at.In(time.UTC)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("%s: two of the same files differ", name)
		}
	}
}

func TestOwnersAndSticky(t *testing.T) {
	var b bytes.Buffer
	if err := Tar(&b, []File{{Name: "tmp/", Mode: 0o777 | fs.ModeSticky}, {Name: "data/", Mode: 0o700, UID: 5, GID: 6}}, at); err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(&b)
	data, err := r.Next()
	if err != nil || data.Uid != 5 || data.Gid != 6 || data.Mode != 0o700 {
		t.Errorf("%+v, %v", data, err)
	}
	tmp, err := r.Next()
	if err != nil || tmp.Mode != 0o1777 || tmp.Typeflag != tar.TypeDir {
		t.Errorf("%+v, %v", tmp, err)
	}
}
