package storage

import (
	"cmp"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

func drivers() *resource.Definition {
	return kind.Kind[*storagev1.CSIDriver, *storagev1.CSIDriverList]{
		Definition: resource.Definition{
			Group: storagev1.GroupName, Plural: "csidrivers", ReturnsDeleted: true,
			Strategy: resource.Strategy{Prepare: resource.Changing(prepareDriver)},
		},
		Default: func(obj map[string]any) {
			if spec := kind.Child(obj, "spec"); len(kind.List(spec, "volumeLifecycleModes")) == 0 {
				spec["volumeLifecycleModes"] = []any{string(storagev1.VolumeLifecyclePersistent)}
			}
		},
		Validate: validateDriver,
		Warn:     warnOfDriver,
		Columns: `
			AttachRequired     boolean  .spec.attachRequired
			PodInfoOnMount     boolean  .spec.podInfoOnMount
			StorageCapacity    boolean  .spec.storageCapacity
			TokenRequests      string   audiences  .spec.tokenRequests
			RequiresRepublish  boolean  .spec.requiresRepublish
			Modes              string   modes      .spec.volumeLifecycleModes
			Age
		`,
		Cells: kind.Cells{
			"audiences": func(obj map[string]any) any {
				requests := kind.List(obj, "spec", "tokenRequests")
				if requests == nil {
					return "<unset>"
				}
				var audiences []string
				for _, r := range requests {
					r, _ := r.(map[string]any)
					audiences = append(audiences, kind.Text(r, "audience"))
				}
				return strings.Join(audiences, ",")
			},
			"modes": func(obj map[string]any) any {
				return cmp.Or(strings.Join(kind.Texts(obj, "spec", "volumeLifecycleModes"), ","), "<none>")
			},
		},
	}.New()
}

// prepareDriver increments the generation after a change of the spec. A new driver has no
// generation.
func prepareDriver(obj, old map[string]any) {
	if old != nil && !kind.Alike[storagev1.CSIDriverSpec](obj, old, "spec") {
		object.SetGeneration(obj, object.Generation(old)+1)
	}
}

func validateDriver(c *rule.Check, driver, old *storagev1.CSIDriver) {
	spec, c := &driver.Spec, c.At("spec")
	policies := []storagev1.FSGroupPolicy{storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy}
	if p := spec.FSGroupPolicy; p != nil && !slices.Contains(policies, *p) {
		rule.NotSupported(c.At("fsGroupPolicy"), *p, policies...)
	}
	validateTokenRequests(c.At("tokenRequests"), spec.TokenRequests)
	for _, mode := range spec.VolumeLifecycleModes {
		if mode != storagev1.VolumeLifecyclePersistent && mode != storagev1.VolumeLifecycleEphemeral {
			rule.NotSupported(c.At("volumeLifecycleModes"), mode, storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)
		}
	}
	if s := spec.NodeAllocatableUpdatePeriodSeconds; s != nil && *s < 10 {
		c.At("nodeAllocatableUpdatePeriodSeconds").Invalid(*s, "must be greater than or equal to 10 seconds")
	}
	if in := spec.ServiceAccountTokenInSecrets; in != nil && len(spec.TokenRequests) == 0 {
		c.At("serviceAccountTokenInSecrets").Invalid(*in, "serviceAccountTokenInSecrets is set but no tokenRequests are specified")
	}
	if old != nil {
		c.At("attachedRequired").Immutable(spec.AttachRequired, old.Spec.AttachRequired)
		c.At("volumeLifecycleModes").Immutable(spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes)
	}
}

// validateTokenRequests rejects duplicate audiences. The empty one stands for the server.
func validateTokenRequests(c *rule.Check, requests []storagev1.TokenRequest) {
	audiences := map[string]bool{}
	for i, r := range requests {
		if audiences[r.Audience] {
			c.At(i, "audience").Duplicate(r.Audience)
			continue
		}
		audiences[r.Audience] = true
		switch at := c.At(i, "expirationSeconds"); {
		case r.ExpirationSeconds == nil:
		case *r.ExpirationSeconds < 10*60:
			at.Invalid(*r.ExpirationSeconds, "may not specify a duration less than 10 minutes")
		case *r.ExpirationSeconds > 1<<32:
			at.Invalid(*r.ExpirationSeconds, "may not specify a duration larger than 2^32 seconds")
		}
	}
}

func warnOfDriver(c *rule.Check, driver, old *storagev1.CSIDriver) {
	requests := driver.Spec.TokenRequests
	if !c.Gates.On(gate.CSIServiceAccountTokenSecrets) || len(requests) == 0 || driver.Spec.ServiceAccountTokenInSecrets != nil ||
		old != nil && equality.Semantic.DeepEqual(requests, old.Spec.TokenRequests) {
		return
	}
	c.Warn("spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes")
}
