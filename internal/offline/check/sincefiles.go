package check

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/anykind/anykind/internal/offline/revision"
)

// files returns the files of both states. A kustomization is one file: the output of its build.
func (s *since) files(ctx context.Context, paths []string, between revision.Range) (before, after []revision.File, err error) {
	var plain []string
	for _, path := range paths {
		isKustomization, err := between.Has(ctx, path, kustomizations[:])
		if err != nil {
			return nil, nil, err
		}
		if !isKustomization {
			plain = append(plain, path)
			continue
		}
		old, now, err := s.build(ctx, path, between)
		if err != nil {
			return nil, nil, err
		}
		before, after = append(before, old...), append(after, now...)
	}
	old, now, err := between.Files(ctx, plain, isManifest)
	return append(before, old...), append(after, now...), err
}

// build builds a kustomization in both states. A state that does not have it has no objects.
func (s *since) build(ctx context.Context, path string, between revision.Range) (before, after []revision.File, err error) {
	old, now, remove, err := between.Export(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer remove()
	name := filepath.Join(path, filepath.Base(cmp.Or(kustomization(now), kustomization(old))))
	for _, one := range []struct {
		folder string
		state  *state
		files  *[]revision.File
	}{{old, s.old, &before}, {now, s.now, &after}} {
		if kustomization(one.folder) == "" {
			continue
		}
		k, err := build(one.folder, path)
		if err != nil {
			return nil, nil, err
		}
		k.file, one.state.builds[name] = name, k
		*one.files = append(*one.files, revision.File{Name: name, Data: []byte(k.text), Given: true})
	}
	return before, after, nil
}
