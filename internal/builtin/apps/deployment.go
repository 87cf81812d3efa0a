package apps

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

func deployments(rules func() *rule.Set) *resource.Definition {
	return kind.Kind[*appsv1.Deployment, *appsv1.DeploymentList]{
		Definition: resource.Definition{
			Group: appsv1.GroupName, Plural: "deployments", ShortNames: []string{"deploy"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: prepareDeployment},
		},
		Version:     scaled("deployments"),
		StatusKeeps: "spec metadata.labels",
		Rules:       rules,
		Default:     defaultDeployment,
		Refuse:      refuseDeployment,
		Columns: `
			Ready       string       ready                      "Number of the pod with ready state"
			Up-to-date  string       .status.updatedReplicas
			Available   string       .status.availableReplicas
			Age
			Containers  string wide  containers                 "Names of each container in the template."
			Images      string wide  images                     "Images referenced by each container in the template."
			Selector    string wide  deployed                   .spec.selector
		`,
		Cells:          pod.TemplateCells("spec.template", kind.Cells{"ready": ready, "deployed": deployedSelector}),
		Validate:       validateDeployment,
		ValidateStatus: validateDeploymentStatus,
		Warn:           warnOfDeployment,
	}.New()
}

// refuseDeployment rejects an annotation for a rollback that is not a revision. An empty one counts
// as absent.
func refuseDeployment(obj map[string]any) error {
	const name = appsv1.DeprecatedRollbackTo
	if _, _, err := readRevision(obj, name); err != nil && kind.Text(obj, "metadata", "annotations", name) != "" {
		return fmt.Errorf("failed to parse annotation[%s]=%s as int64: %w", name, kind.Text(obj, "metadata", "annotations", name), err)
	}
	return nil
}

// defaultDeployment sets the defaults that depend on the strategy type, and normalizes the rollback
// annotation.
func defaultDeployment(obj map[string]any) {
	if n, ok, err := readRevision(obj, appsv1.DeprecatedRollbackTo); ok {
		annotations := kind.Tree(obj, "metadata", "annotations")
		if annotations[appsv1.DeprecatedRollbackTo] = strconv.FormatInt(n, 10); err != nil {
			delete(annotations, appsv1.DeprecatedRollbackTo)
		}
	}
	strategy := kind.Child(kind.Child(obj, "spec"), "strategy")
	if kind.Text(strategy, "type") != string(appsv1.RollingUpdateDeploymentStrategyType) {
		return
	}
	rolling := kind.Child(strategy, "rollingUpdate")
	kind.SetMissing(rolling, "maxUnavailable", "25%")
	kind.SetMissing(rolling, "maxSurge", "25%")
}

// prepareDeployment increments the generation after a change of annotations, too: they are copied
// to the ReplicaSets.
func prepareDeployment(_ context.Context, c *resource.Change) {
	obj, old := c.Object, c.Old
	prepareTemplate(obj, old)
	if old != nil && c.Subresource != "status" && !object.Equal(kind.Tree(obj, "metadata", "annotations"), kind.Tree(old, "metadata", "annotations")) {
		object.SetGeneration(obj, object.Generation(old)+1)
	}
}

func validateDeployment(c *rule.Check, d, old *appsv1.Deployment) {
	var template *corev1.PodTemplateSpec
	if old != nil {
		template = &old.Spec.Template
		c.At("spec", "selector").Immutable(d.Spec.Selector, old.Spec.Selector)
	}
	c.Fields(&d.Spec, "spec")
	validateReplicated(c, d.Spec.Selector, &d.Spec.Template, template)
	validateDeploymentStrategy(c.At("spec", "strategy"), &d.Spec.Strategy)
	if deadline := d.Spec.ProgressDeadlineSeconds; deadline != nil && *deadline <= d.Spec.MinReadySeconds {
		c.At("spec", "progressDeadlineSeconds").Invalid(deadline, "must be greater than minReadySeconds")
	}
	if n, _, _ := readRevision(c.Object, appsv1.DeprecatedRollbackTo); n < 0 {
		c.At("spec", "rollback", "version").Invalid(n, "must be greater than or equal to 0")
	}
}

func validateDeploymentStrategy(c *rule.Check, s *appsv1.DeploymentStrategy) {
	switch rolling := s.RollingUpdate; s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if rolling != nil {
			c.At("rollingUpdate").Forbidden("may not be specified when strategy `type` is 'Recreate'")
		}
	case appsv1.RollingUpdateDeploymentStrategyType:
		c.Fields(rolling, "rollingUpdate")
		surge, _ := rule.Share(rolling.MaxSurge)
		if unavailable, _ := rule.Share(rolling.MaxUnavailable); unavailable == 0 && surge == 0 {
			c.At("rollingUpdate", "maxUnavailable").Invalid(*rolling.MaxUnavailable, "may not be 0 when `maxSurge` is 0")
		}
	default:
		rule.NotSupported(c, shownStrategy(s), appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType)
	}
}

// shownStrategy returns a strategy as Kubernetes' errors show it: missing numbers are 0.
func shownStrategy(s *appsv1.DeploymentStrategy) *appsv1.DeploymentStrategy {
	s = s.DeepCopy()
	if rolling := s.RollingUpdate; rolling != nil {
		for _, n := range []**intstr.IntOrString{&rolling.MaxUnavailable, &rolling.MaxSurge} {
			if *n == nil {
				*n = &intstr.IntOrString{}
			}
		}
	}
	return s
}

func validateDeploymentStatus(c *rule.Check, d, old *appsv1.Deployment) {
	s := &d.Status
	c.Fields(s, "status")
	c = c.At("status")
	c.At("updatedReplicas").AtMost(s.UpdatedReplicas, s.Replicas, "status.replicas")
	c.At("readyReplicas").AtMost(s.ReadyReplicas, s.Replicas, "status.replicas")
	c.At("availableReplicas").AtMost(s.AvailableReplicas, s.Replicas, "status.replicas")
	c.At("availableReplicas").AtMost(s.AvailableReplicas, s.ReadyReplicas, "readyReplicas")
	c.At("collisionCount").Counts(s.CollisionCount, old.Status.CollisionCount)
}

func warnOfDeployment(c *rule.Check, d, old *appsv1.Deployment) {
	switch {
	case old == nil:
		pod.WarnOfOwnersName(c, d.Name)
		pod.WarnOfTemplate(c.At("spec", "template"), &d.Spec.Template, nil)
	case d.Generation != old.Generation:
		pod.WarnOfTemplate(c.At("spec", "template"), &d.Spec.Template, &old.Spec.Template)
	}
}
