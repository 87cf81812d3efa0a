package crd_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/golden"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// Each file of testdata/validate has an invalid create or update of a CustomResourceDefinition, and
// all its errors.
func TestValidate(t *testing.T) {
	golden.Each(t, "testdata/validate/*.txtar", func(t *testing.T, archive *golden.Archive) {
		part := func(name string) *txtar.File {
			i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
			if i < 0 {
				return nil
			}
			return &archive.Files[i]
		}
		s := start(t)
		made, err := s.try(s.crds(""), string(part("create.yaml").Data))
		if next := part("update.yaml"); next != nil {
			if err != nil {
				t.Fatal(err)
			}
			err = s.replace(object.Name(made), string(next.Data))
		}
		got, want := causes(t, err), part("errors")
		golden.Check(t, want, got)
	})
}

// replace writes over the CustomResourceDefinition of a name.
func (s *server) replace(name, text string) error {
	s.Helper()
	target := s.crds(name)
	next, _, err := target.Version.Schema.Complete(tree(s, text))
	if err != nil {
		return err
	}
	_, err = s.objects.Modify(s.ctx(), target, func(old object.Tree) (object.Tree, error) {
		t := object.CloneTree(next)
		object.SetMetaString(t, "resourceVersion", object.ResourceVersion(old))
		return t, nil
	}, registry.WriteOptions{})
	return err
}

// causes are the lines of an error of the reason Invalid.
func causes(t *testing.T, err error) string {
	t.Helper()
	var s apierrors.APIStatus
	if !errors.As(err, &s) || s.Status().Details == nil {
		t.Fatalf("found %v, want a Status with causes", err)
	}
	var b strings.Builder
	for _, c := range status.Of(err).Details.Causes {
		b.WriteString(c.Field + ": " + c.Message + "\n")
	}
	return b.String()
}
