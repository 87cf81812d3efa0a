package convert

import (
	"errors"
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// A typeError is the error of an object of the wrong type.
type typeError struct{ error }

// A metadataError is the error of invalid labels or annotations.
type metadataError struct{ error }

// accept returns the object into which a webhook converted original. Of the metadata, only labels and
// annotations come from the webhook.
func accept(original map[string]any, data []byte, want schema.GroupVersion) (map[string]any, error) {
	converted := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &converted); err != nil {
		return nil, err
	}
	if object.Kind(converted) == "" {
		return nil, errors.New("Object 'Kind' is missing")
	}
	got := schema.FromAPIVersionAndKind(object.APIVersion(converted), object.Kind(converted))
	if got.GroupVersion() != want {
		return nil, &typeError{fmt.Errorf("invalid groupVersion (expected %v, received %v)", want, got.GroupVersion())}
	}
	if kind := object.Kind(original); got.Kind != kind {
		return nil, &typeError{fmt.Errorf("invalid kind (expected %v, received %v)", kind, got.Kind)}
	}
	for _, id := range []struct{ field, word string }{{"name", "name"}, {"namespace", "namespace"}, {"uid", "UID"}} {
		if e, a := object.MetaString(original, id.field), object.MetaString(converted, id.field); e != a {
			return nil, fmt.Errorf("must have the same %s: %v != %v", id.word, e, a)
		}
	}
	if err := keepMetadata(original, converted); err != nil {
		return nil, &metadataError{err}
	}
	return converted, nil
}

// keepMetadata restores the metadata of original in converted, except labels and annotations.
func keepMetadata(original, converted map[string]any) error {
	found, ok := converted["metadata"]
	if !ok {
		return errors.New("missing metadata in converted object")
	}
	answered, ok := found.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", found)
	}
	kept := object.CloneTree(object.Metadata(original))
	for _, name := range []string{"labels", "annotations"} {
		v := answered[name]
		if v == nil {
			delete(kept, name)
			continue
		}
		now, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, v)
		}
		was, ok := kept[name].(map[string]any)
		if !ok && kept[name] != nil {
			return fmt.Errorf("invalid metadata.%s of type %T in original object", name, kept[name])
		}
		if err := checkPairs(name, was, now); err != nil {
			return err
		}
		kept[name] = now
	}
	converted["metadata"] = kept
	return nil
}

// checkPairs validates labels or annotations that a webhook changed.
func checkPairs(name string, was, now map[string]any) error {
	pairs := make(map[string]string, len(now))
	changed := len(was) != len(now)
	for k, v := range now {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, k, v)
		}
		pairs[k] = s
		changed = changed || was[k] != v
	}
	if !changed {
		return nil
	}
	var errs field.ErrorList
	if name == "labels" {
		errs = metavalidation.ValidateLabels(pairs, field.NewPath("metadata", "labels"))
	} else {
		errs = apivalidation.ValidateAnnotations(pairs, field.NewPath("metadata", "annotation"))
	}
	return errs.ToAggregate()
}
