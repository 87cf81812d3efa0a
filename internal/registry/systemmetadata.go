package registry

import (
	"math"
	"strconv"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// systemMetadata sets the metadata of the server in a new object.
func (r *Registry) systemMetadata(d *resource.Definition, t object.Tree) {
	ClearSystemMetadata(t)
	metadata := object.Metadata(t)
	metadata["creationTimestamp"] = object.Timestamp(r.now())
	metadata["uid"] = string(uuid.NewUUID())
	if d.HasGeneration {
		object.SetGeneration(t, 1)
	}
}

// ClearSystemMetadata drops metadata that a client cannot set in a new object.
func ClearSystemMetadata(t object.Tree) {
	metadata := object.Metadata(t)
	for _, f := range []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid"} {
		delete(metadata, f)
	}
}

// generatedSuffix is the number of random characters after a generateName, generatedPrefix the maximum
// length of the prefix.
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

// matchNamespace sets the object's namespace to that of the request; "" for cluster-scoped objects.
func matchNamespace(target *Target, t object.Tree) error {
	namespace := object.Namespace(t)
	switch {
	case namespace == target.Namespace:
		return nil
	case namespace == "":
		object.SetMetaString(t, "namespace", target.Namespace)
		return nil
	case target.Namespace == "":
		// The kind has no namespaces.
		object.SetMetaString(t, "namespace", "")
		return nil
	default:
		return status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
}

// matchName checks the object's name against the request.
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

// keepSystemMetadata restores the immutable metadata of an object. A null deletionTimestamp is the zero time of a client.
func keepSystemMetadata(d *resource.Definition, t, old object.Tree) {
	now, was := object.Metadata(t), object.Metadata(old)
	delete(now, "selfLink")
	for _, f := range []string{"generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid"} {
		v, had := was[f]
		_, has := now[f]
		switch {
		case has && (f == "uid" || f == "deletionGracePeriodSeconds"): // validation compares them
		case had:
			now[f] = v
		case f == "generation":
			delete(now, f)
		}
	}
	if _, had := was["deletionTimestamp"]; now["deletionTimestamp"] == nil && (had || !d.Dialect.RejectsZeroDeletion) {
		delete(now, "deletionTimestamp")
	}
}

// validateMetadata returns the errors in the metadata of t. old is nil for a new object.
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
		// An existing name stays valid.
		validName = object.ValidatePathSegment
	}
	errs := apivalidation.ValidateObjectMetaAccessor(meta, d.Namespaced, validName, at)
	if old != nil {
		errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(meta, object.AccessorOf(old), at)...)
		if v, isSet := object.Metadata(t)["deletionTimestamp"]; isSet && v == nil { // an Accessor has none
			errs = append(errs, field.Invalid(at.Child("deletionTimestamp"), nil, apivalidation.FieldImmutableErrorMsg))
		}
	}
	return errs
}

// ParseRevision parses a resourceVersion; "" is 0. A number beyond the largest revision counts as the
// largest, which is in the future.
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
