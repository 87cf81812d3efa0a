package storage

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func classes() *resource.Definition {
	return kind.Kind[*storagev1.StorageClass, *storagev1.StorageClassList]{
		Definition: resource.Definition{
			Group: storagev1.GroupName, Plural: "storageclasses", ShortNames: []string{"sc"}, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Version:  &resource.Version{DefaultOf: defaultClass},
		Validate: validateClass,
		Warn: func(c *rule.Check, class, _ *storagev1.StorageClass) {
			for i, t := range class.AllowedTopologies {
				for j, e := range t.MatchLabelExpressions {
					kind.WarnOfNodeLabel(c.At("allowedTopologies", i, "matchLabelExpressions", j, "key"), e.Key)
				}
			}
		},
		Columns: `
			Provisioner           string  .provisioner
			ReclaimPolicy         string  .reclaimPolicy:Delete
			VolumeBindingMode     string  .volumeBindingMode:Immediate
			AllowVolumeExpansion  string  .allowVolumeExpansion
			Age
		`,
	}.New()
}

// defaultClass returns the default class: the newest of those with the annotation.
func defaultClass(objs []map[string]any) string {
	var all []*metav1.ObjectMeta
	for _, obj := range objs {
		all = append(all, kind.ValueOf[metav1.ObjectMeta](kind.Tree(obj, "metadata")))
	}
	return kind.Newest(all, "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
}

func validateClass(c *rule.Check, class, old *storagev1.StorageClass) {
	c.Fields(class)
	validateProvisioner(c.At("provisioner"), class.Provisioner)
	validateParameters(c.At("parameters"), class.Parameters)
	if p := class.ReclaimPolicy; p != nil && *p != "" && *p != corev1.PersistentVolumeReclaimDelete && *p != corev1.PersistentVolumeReclaimRetain {
		rule.NotSupported(c.At("reclaimPolicy"), *p, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)
	}
	validateTopologies(c.At("allowedTopologies"), class.AllowedTopologies)
	if old == nil {
		return
	}
	c.At("parameters").UnchangedBeta(class.Parameters, old.Parameters)
	c.At("provisioner").UnchangedBeta(class.Provisioner, old.Provisioner)
	c.At("reclaimPolicy").UnchangedBeta(class.ReclaimPolicy, old.ReclaimPolicy)
	c.At("volumeBindingMode").UnchangedBeta(class.VolumeBindingMode, old.VolumeBindingMode)
}

// validateTopologies validates topology terms and rejects duplicates.
func validateTopologies(c *rule.Check, terms []corev1.TopologySelectorTerm) {
	seen := make([]map[string]sets.Set[string], len(terms)) // as if each were empty
	for i, t := range terms {
		asked := map[string]sets.Set[string]{}
		for j, e := range t.MatchLabelExpressions {
			at := c.At(i, "matchLabelExpressions", j)
			if len(e.Values) == 0 {
				at.At("values").Required("")
			}
			values := sets.New[string]()
			for k, v := range e.Values {
				if values.Has(v) {
					at.At("values", k).Duplicate(v)
				}
				values.Insert(v)
			}
			c.Add(metavalidation.ValidateLabelName(e.Key, at.At("key").Path())...)
			if asked[e.Key] != nil {
				at.At("key").Duplicate(e.Key)
			}
			asked[e.Key] = values
		}
		for _, s := range seen {
			if maps.EqualFunc(s, asked, sets.Set[string].Equal) {
				c.At(i, "matchLabelExpressions").Duplicate("")
			}
		}
		seen = append(seen, asked)
	}
}

func attributesClasses() *resource.Definition {
	return kind.Kind[*storagev1.VolumeAttributesClass, *storagev1.VolumeAttributesClassList]{
		Definition: resource.Definition{
			Group: storagev1.GroupName, Plural: "volumeattributesclasses", ShortNames: []string{"vac"}, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Validate: validateAttributesClass,
		Columns: `
			DriverName  string  .driverName
			Age
		`,
	}.New(kind.Renamed("v1beta1", "k8s.io/api/storage/v1beta1", kind.Life{Introduced: 31, Deprecated: 34, Removed: 37, Replaced: true}))
}

func validateAttributesClass(c *rule.Check, class, old *storagev1.VolumeAttributesClass) {
	validateProvisioner(c.At("driverName"), class.DriverName)
	validateParameters(c.At("parameters"), class.Parameters)
	if len(class.Parameters) == 0 {
		c.At("parameters").Required("must contain at least one key/value pair")
	}
	if old == nil {
		return
	}
	if class.DriverName != old.DriverName {
		c.At("driverName").Forbidden("updates to driverName are forbidden.")
	}
	if !maps.Equal(class.Parameters, old.Parameters) {
		c.At("parameters").Forbidden("updates to parameters are forbidden.")
	}
}
