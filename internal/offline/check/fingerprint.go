package check

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Fingerprint returns a text that changes with the files at some paths: their names, sizes and times. Folders
// without manifests of their own are skipped.
func Fingerprint(paths []string) string {
	var out strings.Builder
	for _, path := range paths {
		_ = filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() && slices.Contains(skipped, e.Name()) {
				return filepath.SkipDir
			}
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
