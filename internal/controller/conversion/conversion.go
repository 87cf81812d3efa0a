// Package conversion puts the rules of CRDConversionConfigs into their definitions.
//
// A CRDConversionConfig is an object of the declarative-conversion-operator, whose controller points a
// CustomResourceDefinition at its webhook. Here the server converts by the rules itself: the controller
// writes them to an annotation of the definition, and the result of their check to the status of the
// CRDConversionConfig, in the terms of the operator. As there, a CRDConversionConfig is kept by a
// finalizer while its definition serves several versions.
package conversion

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// Name is the name of the controller.
const Name = "conversion-rules"

const (
	manager = "anykind-conversion-rules"
	// finalizer and unsafeDelete are of the operator.
	finalizer    = "conversion.terasky.com/safe-revert-crd"
	unsafeDelete = "conversion.terasky.com/allow-unsafe-delete"
)

// A Controller puts the rules of each CRDConversionConfig into its definition.
type Controller struct {
	objects     *controller.Objects
	queue       *controller.Queue
	configs     string // key prefix
	definitions string

	mu      sync.Mutex
	targets map[string]string // names of definitions by key of a CRDConversionConfig
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o.ManagedBy(manager), queue: q, definitions: o.DefinitionPrefix(),
		configs: resource.CustomPrefix(conversion.Resource.Group, conversion.Resource.Resource), targets: map[string]string{}}
}

// Keys returns the key prefixes of CRDConversionConfigs and definitions.
func (c *Controller) Keys() []string { return []string{c.configs, c.definitions} }

// A config is a stored CRDConversionConfig.
type config struct {
	Metadata struct {
		Name, UID, DeletionTimestamp string
		Generation                   int64
		Annotations                  map[string]string
	}
	Spec json.RawMessage
}

// See queues CRDConversionConfigs that changed, and those of a definition that changed.
func (c *Controller) See(e *controller.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, isDefinition := strings.CutPrefix(e.Key, c.definitions)
	if isDefinition {
		for key, target := range c.targets {
			if target == name {
				c.queue.Add(controller.Task{Key: key})
			}
		}
		return
	}
	if e.Value == nil {
		if target, ok := c.targets[e.Key]; ok {
			delete(c.targets, e.Key)
			c.queue.Add(controller.Task{Do: "remove", Key: target, UID: strings.TrimPrefix(e.Key, c.configs)})
		}
		return
	}
	var found struct {
		Spec struct{ TargetCRD struct{ Name string } }
	}
	if json.Unmarshal(e.Value, &found) == nil {
		c.targets[e.Key] = found.Spec.TargetCRD.Name
	}
	c.queue.Add(controller.Task{Key: e.Key})
}

// Do puts rules into a definition, or removes them.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	if t.Do == "remove" {
		return c.remove(ctx, t.Key, t.UID)
	}
	h, err := c.objects.Read(ctx, t.Key)
	if err != nil || h == nil {
		return err
	}
	var of config
	if err := json.Unmarshal(h.JSON, &of); err != nil {
		return err
	}
	d := c.objects.Lookup(conversion.Resource.Group, conversion.Resource.Resource)
	if d == nil {
		return &controller.UnknownError{What: conversion.ConfigKind}
	}
	rules, parseErr := conversion.Parse(of.Spec)
	if rules == nil {
		rules = &conversion.Rules{}
	}
	target, err := c.objects.Definition(ctx, rules.TargetCRD.Name)
	if err != nil {
		return err
	}
	verdict := &state{name: of.Metadata.Name, generation: of.Metadata.Generation, now: object.Timestamp(c.objects.Now())}
	if of.Metadata.DeletionTimestamp != "" {
		if !slices.Contains(h.Finalizers, finalizer) {
			return nil
		}
		if target != nil && of.Metadata.Annotations[unsafeDelete] != "true" && served(&target.Object) > 1 {
			verdict.blocked = true
			return c.report(ctx, d, h, verdict)
		}
		return c.release(ctx, d, h, rules.TargetCRD.Name, of.Metadata.Name)
	}
	if !slices.Contains(h.Finalizers, finalizer) {
		if err := c.objects.Change(ctx, d, h.Key, h.UID, "", func(t object.Tree) bool {
			object.SetFinalizers(t, append(object.Finalizers(t), finalizer))
			return true
		}); err != nil {
			return err
		}
	}
	verdict.check(rules, parseErr, target)
	if verdict.applies {
		if err := c.put(ctx, target, of.Metadata.Name, of.Spec); err != nil {
			return err
		}
	}
	return c.report(ctx, d, h, verdict)
}

// served returns the number of served versions.
func served(d *v1.CustomResourceDefinition) (n int) {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Served {
			n++
		}
	}
	return n
}

// release lets a CRDConversionConfig in deletion go.
func (c *Controller) release(ctx context.Context, d *resource.Definition, h *controller.Header, target, name string) error {
	if err := c.remove(ctx, target, name); err != nil {
		return err
	}
	return c.objects.Change(ctx, d, h.Key, h.UID, "", func(t object.Tree) bool {
		object.SetFinalizers(t, slices.DeleteFunc(object.Finalizers(t), func(f string) bool { return f == finalizer }))
		return true
	})
}

// put writes rules to the annotation of a definition.
func (c *Controller) put(ctx context.Context, target *controller.Definition, name string, spec []byte) error {
	var rules object.Tree
	if err := json.Unmarshal(spec, &rules); err != nil {
		return err
	}
	rules["config"] = name
	return c.annotate(ctx, target, string(object.AppendJSON(nil, rules)))
}

// annotate sets the annotation of a definition. An empty text removes it.
func (c *Controller) annotate(ctx context.Context, target *controller.Definition, text string) error {
	if target.Object.Annotations[conversion.Annotation] == text {
		return nil
	}
	return c.objects.Change(ctx, target.Kind, target.Key, target.UID, "", func(t object.Tree) bool {
		if was, ok := object.Annotation(t, conversion.Annotation); ok && was == text {
			return false
		}
		object.SetAnnotation(t, conversion.Annotation, text)
		return true
	})
}

// remove removes the rules of a CRDConversionConfig from a definition.
func (c *Controller) remove(ctx context.Context, target, name string) error {
	d, err := c.objects.Definition(ctx, target)
	if err != nil || d == nil {
		return err
	}
	if rules, _ := conversion.Written(&d.Object); rules == nil || rules.Config != name {
		return nil
	}
	return c.annotate(ctx, d, "")
}
