package coordination

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// leaseCandidates returns the kind of the candidates of a Lease.
func leaseCandidates() *resource.Definition {
	return kind.Kind[*coordinationv1beta1.LeaseCandidate, *coordinationv1beta1.LeaseCandidateList]{
		Definition: resource.Definition{
			Group: coordinationv1beta1.GroupName, Plural: "leasecandidates", Namespaced: true,
			Strategy: resource.Strategy{
				AllowCreateOnUpdate: true,
				ValidateName:        func(name string, _ bool) []string { return validation.IsConfigMapKey(name) },
			},
		},
		Version:       &resource.Version{Name: "v1beta1"},
		AnyFinalizers: true, Validate: validateCandidate,
		Columns: `
			LeaseName         string  .spec.leaseName         lease
			BinaryVersion     string  .spec.binaryVersion     ""
			EmulationVersion  string  .spec.emulationVersion  ""
			Age
		`,
		// Kubernetes shows the documentation of v1alpha2.
		Docs: kind.Docs{"lease": "leaseName is the name of the lease for which this candidate is contending. This field is immutable."},
	}.New(kind.Renamed("v1alpha2", "k8s.io/api/coordination/v1alpha2", kind.Life{Introduced: 32, Deprecated: 35, Removed: 38}))
}

func validateCandidate(c *rule.Check, candidate, old *coordinationv1beta1.LeaseCandidate) {
	c = c.At("spec")
	spec := &candidate.Spec
	if name := c.At("leaseName"); spec.LeaseName == "" {
		name.Required("")
	}
	emulated := parseVersion(c.At("emulationVersion"), spec.EmulationVersion)
	at := c.At("binaryVersion")
	if spec.BinaryVersion == "" {
		at.Required("")
	} else if binary := parseVersion(at, spec.BinaryVersion); spec.EmulationVersion != "" && binary.LessThan(emulated) {
		at.Invalid(spec.BinaryVersion, "must be greater than or equal to `emulationVersion`")
	}
	switch at := c.At("strategy"); {
	case spec.Strategy == "":
		at.Required("")
	default:
		if spec.Strategy == coordinationv1.OldestEmulationVersion && emulated.EqualTo(noVersion) {
			c.At("emulationVersion").Required("must be specified when `strategy` is 'OldestEmulationVersion'")
		}
		validateStrategy(at.At("strategy"), spec.Strategy)
	}
	if old != nil {
		c.At("leaseName").Immutable(spec.LeaseName, old.Spec.LeaseName)
	}
}

// noVersion is less than all other versions.
var noVersion = version.MustParseSemantic("0.0.0")

// parseVersion parses a version, if present, and adds an error if it is invalid.
func parseVersion(c *rule.Check, text string) *version.Version {
	if text == "" {
		return noVersion
	}
	if !kind.SemanticVersion().MatchString(text) {
		c.Invalid(text, "must be a valid semantic version")
		return noVersion
	}
	v, err := version.ParseSemantic(text)
	if err != nil {
		c.Invalid(text, "must be a valid semantic version")
		return noVersion
	}
	return v
}
