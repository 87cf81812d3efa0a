package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
)

// crdManager is the field manager of definitions from files.
const crdManager = "anykind"

// crdsAgain is the interval between checks of the files.
const crdsAgain = time.Second

// A crdFolder applies the CustomResourceDefinitions of files. A definition that is removed from the
// files stays, because its deletion would delete its objects.
type crdFolder struct {
	path    string
	objects controller.Objects
	kind    *resource.Definition
	log     *slog.Logger
	last    []byte // the last content
}

// applyDefinitions applies the definitions of files, and again after each change of the files.
func (w *wired) applyDefinitions(ctx context.Context, a *App, o Options) error {
	if o.CRDs == "" {
		return nil
	}
	f := &crdFolder{path: o.CRDs, objects: w.objects(crdManager, o.Log), log: o.Log,
		kind: w.catalog.Set().Lookup(apiextensionsv1.GroupName, "customresourcedefinitions")}
	if err := f.look(ctx); err != nil {
		return err
	}
	a.parts.run("crds", func(ctx context.Context) error {
		f.follow(ctx)
		return nil
	})
	return nil
}

func (f *crdFolder) follow(ctx context.Context) {
	failed := ""
	for {
		select {
		case <-time.After(crdsAgain):
		case <-ctx.Done():
			return
		}
		err := f.look(ctx)
		if err == nil {
			failed = ""
		} else if ctx.Err() == nil && err.Error() != failed {
			failed = err.Error()
			f.log.Error("CustomResourceDefinitions of files were not applied; existing ones are unchanged", "error", err)
		}
	}
}

// look applies the files if they have changed. A failed apply is retried.
func (f *crdFolder) look(ctx context.Context) error {
	texts, err := f.read()
	if err != nil {
		return err
	}
	all := bytes.Join(texts, []byte("\x00"))
	if f.last != nil && bytes.Equal(all, f.last) {
		return nil
	}
	var errs []error
	for _, text := range texts {
		errs = append(errs, f.apply(ctx, text))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("--crds %s: %w", f.path, err)
	}
	f.last = all
	return nil
}

// read returns the objects in the files, ordered by file name.
func (f *crdFolder) read() (texts [][]byte, err error) {
	names := []string{f.path}
	if info, err := os.Stat(f.path); err != nil {
		return nil, fmt.Errorf("--crds: %w", err)
	} else if info.IsDir() {
		entries, err := os.ReadDir(f.path)
		if err != nil {
			return nil, fmt.Errorf("--crds: %w", err)
		}
		names = nil
		for _, e := range entries {
			if slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(e.Name()))) {
				names = append(names, filepath.Join(f.path, e.Name()))
			}
		}
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("--crds: %w", err)
		}
		documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
		for {
			text, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("--crds: %s: %w", name, err)
			}
			if text = bytes.TrimSpace(text); len(text) > 0 {
				texts = append(texts, text)
			}
		}
	}
	return texts, nil
}

// apply creates or updates a definition. It keeps labels and annotations of other managers.
func (f *crdFolder) apply(ctx context.Context, text []byte) error {
	t, duplicates, err := codec.Decode(codec.YAML, text)
	switch {
	case err != nil:
		return err
	case t == nil: // only comments
		return nil
	case len(duplicates) > 0:
		return errors.New(strings.Join(duplicates, ", "))
	case !f.kind.IsAPIVersion(object.APIVersion(t), f.kind.StorageVersion().Name) || t["kind"] != f.kind.Kind:
		return fmt.Errorf("%v %q of %q is not a %s", t["kind"], object.Name(t), object.APIVersion(t), f.kind.Kind)
	}
	f.kind.StorageVersion().Schema.Default(t)
	delete(t, "status")
	return f.objects.Put(ctx, f.kind, "", object.Name(t), func(old object.Tree) object.Tree {
		if old == nil {
			return object.CloneTree(t)
		}
		next := object.CloneTree(old)
		next["spec"] = object.CloneTree(t)["spec"]
		for _, field := range []string{"labels", "annotations"} {
			said, _ := object.Metadata(t)[field].(object.Tree)
			for key, value := range said {
				all, ok := object.Metadata(next)[field].(object.Tree)
				if !ok {
					all = object.Tree{}
					object.Metadata(next)[field] = all
				}
				all[key] = value
			}
		}
		return next
	})
}
