// Package atomicfile replaces files atomically: a reader finds either the old content or the
// new content, never a mixture.
//
// It knows files and their modes, and nothing of their content.
package atomicfile

import (
	"os"
	"path/filepath"
)

// Replace replaces a file durably: after a power failure, too, a reader finds the old
// content or the new one.
func Replace(path string, data []byte, mode os.FileMode) error {
	if err := replace(path, data, mode, (*os.File).Sync); err != nil {
		return err
	}
	return syncDir(path)
}

// Rename renames a file whose content is on disk, durably, in its folder.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(to)
}

// syncDir syncs the folder of a file.
func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// ReplaceCached replaces a file whose content can be recreated. It does not wait for the disk, so
// after a power failure the file may have neither content.
func ReplaceCached(path string, data []byte, mode os.FileMode) error {
	return replace(path, data, mode, func(*os.File) error { return nil })
}

func replace(path string, data []byte, mode os.FileMode, sync func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := sync(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
