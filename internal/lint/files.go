package lint

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Files returns the results for all files at the paths, of folders for all files
// in them that are called YAML or JSON. The path - is in.
func Files(ctx context.Context, paths []string, in io.Reader) ([]Result, error) {
	var out []Result
	for _, path := range paths {
		found, err := at(ctx, path, in)
		out = append(out, found...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func at(ctx context.Context, path string, in io.Reader) ([]Result, error) {
	if path == "-" {
		return Read(ctx, "stdin", in)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return one(ctx, path)
	}
	var out []Result
	err = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			return err
		}
		found, err := one(ctx, file)
		out = append(out, found...)
		return err
	})
	return out, err
}

func one(ctx context.Context, path string) ([]Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(ctx, path, f)
}
