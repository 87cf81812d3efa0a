package registry

import (
	"math"
	"strconv"

	"github.com/google/uuid"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// systemMetadata fills in what the server says of a new object.
func (r *Registry) systemMetadata(d *resource.Definition, t object.Tree) {
	ClearSystemMetadata(t)
	metadata := object.Metadata(t)
	metadata["creationTimestamp"] = object.Timestamp(r.now())
	metadata["uid"] = uuid.NewString()
	if d.HasGeneration {
		object.SetGeneration(t, 1)
	}
}

// ClearSystemMetadata drops what a client cannot say of a new object.
func ClearSystemMetadata(t object.Tree) {
	metadata := object.Metadata(t)
	for _, f := range []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid"} {
		delete(metadata, f)
	}
}

// generatedSuffix is how many random characters follow a generateName, and
// generatedPrefix how much of it is kept.
const (
	generatedSuffix = 5
	generatedPrefix = 63 - generatedSuffix
)

func generateName(base string) string {
	if len(base) > generatedPrefix {
		base = base[:generatedPrefix]
	}
	return base + rand.String(generatedSuffix)
}

// matchNamespace makes the object's namespace that of the request, which is ""
// for an object without one.
func matchNamespace(target *Target, t object.Tree) error {
	namespace := object.Namespace(t)
	switch {
	case namespace == target.Namespace:
		return nil
	case namespace == "":
		object.SetMetaString(t, "namespace", target.Namespace)
		return nil
	case target.Namespace == "":
		// There is no namespace that could be meant.
		object.SetMetaString(t, "namespace", "")
		return nil
	default:
		return status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
}

// matchName checks that the object is the one the request is about.
func matchName(target *Target, t object.Tree) error {
	name := object.Name(t)
	switch name {
	case target.Name:
		return nil
	case "":
		return status.BadRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", target.Name)
	default:
		return status.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", name, target.Name)
	}
}

// keepSystemMetadata undoes what a write may not change of an object's metadata.
func keepSystemMetadata(t, old object.Tree) {
	now, was := object.Metadata(t), object.Metadata(old)
	delete(now, "selfLink")
	for _, f := range []string{"generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid"} {
		v, had := was[f]
		_, has := now[f]
		switch {
		case has && (f == "uid" || f == "deletionGracePeriodSeconds"): // which validation compares
		case had:
			now[f] = v
		case f == "generation":
			delete(now, f)
		}
	}
}

// validateMetadata returns what is wrong with the metadata of t. old is nil for
// a new object.
func validateMetadata(d *resource.Definition, t, old object.Tree) field.ErrorList {
	if (d.ValidateName == nil || old != nil) && plainMetadata(d.Namespaced, t, old) {
		return nil
	}
	return fullyValidateMetadata(d, t, old)
}

func fullyValidateMetadata(d *resource.Definition, t, old object.Tree) field.ErrorList {
	at := field.NewPath("metadata")
	meta := object.AccessorOf(t)
	validName := d.ValidateName
	if validName == nil {
		validName = apivalidation.NameIsDNSSubdomain
	}
	if old != nil {
		// A name that was once good enough stays so.
		validName = object.ValidatePathSegment
	}
	errs := apivalidation.ValidateObjectMetaAccessor(meta, d.Namespaced, validName, at)
	if old != nil {
		errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(meta, object.AccessorOf(old), at)...)
	}
	return errs
}

// ParseRevision reads a resourceVersion; "" is 0. One that is larger than any
// revision can be lies in the future, as the largest that can be does.
func ParseRevision(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, err
	}
	return int64(min(n, math.MaxInt64)), nil
}
