package pki

import (
	"os"
	"path/filepath"
)

// keepFile replaces a file for good: whoever reads it, after a power failure too,
// finds the old content or the new one.
func keepFile(path string, data []byte, mode os.FileMode) error {
	if err := writeFile(path, data, mode, (*os.File).Sync); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// cacheFile replaces a file whose content can be made again: at once, but after a
// power failure it may have neither content.
func cacheFile(path string, data []byte, mode os.FileMode) error {
	return writeFile(path, data, mode, func(*os.File) error { return nil })
}

func writeFile(path string, data []byte, mode os.FileMode, sync func(*os.File) error) (err error) {
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
