package check

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Fingerprint returns a text that changes with the files at some paths: their names, sizes and times.
func Fingerprint(paths []string) string {
	var out strings.Builder
	for _, path := range paths {
		_ = filepath.WalkDir(path, func(file string, _ fs.DirEntry, err error) error {
			info, statErr := os.Stat(file) // of the target of a link, as in mounted ConfigMaps
			if err != nil || statErr != nil {
				fmt.Fprintln(&out, file, err, statErr)
				return nil
			}
			fmt.Fprintln(&out, file, info.Size(), info.ModTime().UnixNano())
			return nil
		})
	}
	return out.String()
}
