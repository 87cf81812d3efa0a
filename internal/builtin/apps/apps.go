// Package apps has the built-in kinds of the group apps, the workloads.
//
// It validates and completes them. Controllers outside this program create the pods.
package apps

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/scale"
)

// Definitions returns the kinds of the group, with the given rules for pods.
func Definitions(rules func() *rule.Set) []*resource.Definition {
	return []*resource.Definition{controllerRevisions(), daemonSets(rules), deployments(rules), replicaSets(rules), statefulSets(rules)}
}

// scaled returns the version of a kind with the subresource scale.
func scaled(plural string) *resource.Version {
	of := schema.GroupVersionResource{Group: appsv1.GroupName, Version: "v1", Resource: plural}
	return &resource.Version{Subresources: []resource.Subresource{scale.BuiltIn(of, scale.LabelSelector)}}
}

// ready returns the cell READY: ready and desired replicas.
func ready(obj map[string]any) any {
	return fmt.Sprintf("%d/%d", number(obj, "status", "readyReplicas"), number(obj, "spec", "replicas"))
}

// deployedSelector returns the cell of a selector, formatted as in a query.
func deployedSelector(obj map[string]any) any {
	selector, err := scale.LabelSelector(obj)
	if err != nil {
		return "<invalid>"
	}
	return selector
}

func number(obj map[string]any, path ...string) int64 {
	n, _ := kind.Value(obj, path...).(int64)
	return n
}

// readRevision parses a number in an annotation, if present.
func readRevision(obj map[string]any, annotation string) (n int64, ok bool, err error) {
	text, ok := kind.Value(obj, "metadata", "annotations", annotation).(string)
	if ok {
		n, err = strconv.ParseInt(text, 10, 64)
	}
	return n, ok, err
}

// prepareTemplate prepares the pod template of an object.
func prepareTemplate(obj, _ map[string]any) { pod.PrepareTemplate(kind.Tree(obj, "spec", "template")) }
