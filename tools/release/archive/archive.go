// Package archive writes reproducible tar.gz and zip files: one time and one owner for all files,
// sorted by name. It knows nothing of the files' meaning.
package archive

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// A File is a file or, if its name ends in a slash, a folder.
type File struct {
	Name     string
	Data     []byte
	Mode     fs.FileMode // the permissions, and possibly fs.ModeSticky
	UID, GID int         // the owner; zip files have none
}

func (f File) isFolder() bool { return strings.HasSuffix(f.Name, "/") }

// Tar writes a tar file.
func Tar(w io.Writer, files []File, at time.Time) error {
	out := tar.NewWriter(w)
	for _, f := range inOrder(files) {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.Name, Size: int64(len(f.Data)), Mode: int64(f.Mode.Perm()),
			Uid: f.UID, Gid: f.GID, ModTime: at.UTC().Truncate(time.Second),
		}
		if f.isFolder() {
			header.Typeflag = tar.TypeDir
		}
		if f.Mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(f.Data); err != nil {
			return err
		}
	}
	return out.Close()
}

// TarGzip writes a compressed tar file.
func TarGzip(w io.Writer, files []File, at time.Time) error {
	out := gzip.NewWriter(w) // its header has no time and no system
	if err := Tar(out, files, at); err != nil {
		return err
	}
	return out.Close()
}

// Zip writes a zip file.
func Zip(w io.Writer, files []File, at time.Time) error {
	out := zip.NewWriter(w)
	for _, f := range inOrder(files) {
		header := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: at.UTC().Truncate(time.Second)}
		mode := f.Mode
		if f.isFolder() {
			header.Method, mode = zip.Store, mode|fs.ModeDir
		}
		header.SetMode(mode)
		to, err := out.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := to.Write(f.Data); err != nil {
			return err
		}
	}
	return out.Close()
}

// Under returns files in a folder, with that folder and its parents.
func Under(folder string, files []File) []File {
	folders := map[string]bool{}
	var all []File
	for _, f := range files {
		f.Name = path.Join(folder, f.Name)
		all = append(all, f)
		for dir := path.Dir(f.Name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for dir := range folders {
		all = append(all, File{Name: dir + "/", Mode: 0o755})
	}
	return all
}

// inOrder returns files sorted by name: a folder comes before its contents.
func inOrder(files []File) []File {
	return slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
}
