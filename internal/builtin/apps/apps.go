// Package apps has the built-in kinds of the group apps: those that say how many pods of
// which template there are to be, and what becomes of them when the template changes.
//
// It knows what one may be and what becomes of it when it is written. Pods are made by
// controllers that are no part of this program.
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

// Definitions returns the kinds of the group, with these rules of pods.
func Definitions(rules func() *rule.Set) []*resource.Definition {
	return []*resource.Definition{controllerRevisions(), daemonSets(rules), deployments(rules), replicaSets(rules), statefulSets(rules)}
}

// scaled is the subresource scale of a kind of the group.
func scaled(plural string) *resource.Version {
	of := schema.GroupVersionResource{Group: appsv1.GroupName, Version: "v1", Resource: plural}
	return &resource.Version{Subresources: []resource.Subresource{scale.BuiltIn(of, scale.LabelSelector)}}
}

// ready is the cell that shows how many of the pods that are wanted are ready.
func ready(obj map[string]any) any {
	return fmt.Sprintf("%d/%d", number(obj, "status", "readyReplicas"), number(obj, "spec", "replicas"))
}

// deployedSelector is the cell of a selector as clients write it in a query.
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

// readRevision reads the number in an annotation, which may not be there.
func readRevision(obj map[string]any, annotation string) (n int64, ok bool, err error) {
	text, ok := kind.Value(obj, "metadata", "annotations", annotation).(string)
	if ok {
		n, err = strconv.ParseInt(text, 10, 64)
	}
	return n, ok, err
}

// prepareTemplate prepares the template of an object, of which the old one may be nil.
func prepareTemplate(obj, old map[string]any) {
	pod.PrepareTemplate(kind.Tree(obj, "spec", "template"), kind.Tree(old, "spec", "template"))
}
