package pods

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
)

// AlwaysPullImages sets the pull policy of every container to Always. A pod then cannot use a
// private image that is already on the node without credentials.
type AlwaysPullImages struct{}

// Mutate implements registry.Mutator.
func (AlwaysPullImages) Mutate(ctx context.Context, a *registry.Admission) error {
	if asked, err := bringsImages(ctx, a); err != nil || !asked {
		return err
	}
	eachImage(specOf(a), func(_ *field.Path, image object.Tree, policy string) {
		image[policy] = string(corev1.PullAlways)
	})
	a.Changed = true
	return nil
}

// Validate implements registry.Validator.
func (AlwaysPullImages) Validate(ctx context.Context, a *registry.Admission) error {
	if asked, err := bringsImages(ctx, a); err != nil || !asked {
		return err
	}
	var refused []string
	eachImage(specOf(a), func(at *field.Path, image object.Tree, policy string) {
		if is := corev1.PullPolicy(kind.Text(image, policy)); is != corev1.PullAlways {
			refused = append(refused, a.Forbidden(field.NotSupported(at.Child(policy), is, []corev1.PullPolicy{corev1.PullAlways})).Error())
		}
	})
	switch len(refused) {
	case 0:
		return nil
	case 1:
		return errors.New(refused[0]) // a 500, as in Kubernetes
	}
	return fmt.Errorf("[%s]", strings.Join(refused, ", "))
}

// eachImage calls f with each object that has an image, its path, and the name of its policy field.
func eachImage(spec object.Tree, f func(at *field.Path, image object.Tree, policy string)) {
	at := field.NewPath("spec")
	eachContainer(spec, func(list string, i int, container object.Tree) {
		f(at.Child(list).Index(i), container, "imagePullPolicy")
	})
	for i, v := range kind.List(spec, "volumes") {
		volume, _ := v.(object.Tree)
		if image := kind.Tree(volume, "image"); image != nil {
			f(at.Child("volumes").Index(i).Child("image"), image, "pullPolicy")
		}
	}
}

// bringsImages reports whether a pod is new, or adds an image.
func bringsImages(ctx context.Context, a *registry.Admission) (bool, error) {
	if !a.Is(pods, "", registry.Create, registry.Update) {
		return false, nil
	}
	if a.Operation == registry.Create {
		return true, nil
	}
	old, err := a.Old(ctx)
	if err != nil {
		return false, err
	}
	had, brings := map[string]bool{}, false
	eachContainer(kind.Tree(old, "spec"), func(_ string, _ int, c object.Tree) { had[kind.Text(c, "image")] = true })
	eachContainer(specOf(a), func(_ string, _ int, c object.Tree) { brings = brings || !had[kind.Text(c, "image")] })
	return brings, nil
}
