package crd

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// Conversion rules stand in an annotation. Those that a user writes must fit the schemas, so that a
// definition with wrong ones is rejected. Those of a CRDConversionConfig are written by a controller, and
// were valid when the CRDConversionConfig was written. A definition that they do not fit any more is
// accepted with a warning: the other order would be rejected, too, and so no change would be possible.

// sameRules reports whether a definition has the rules and the schemas of the one that it replaces, or no rules.
func sameRules(crd, old *v1.CustomResourceDefinition) bool {
	text := crd.Annotations[conversion.Annotation]
	return text == "" || old != nil && text == old.Annotations[conversion.Annotation] && sameSchemas(crd, old)
}

// checkRules returns the errors of the conversion rules that a user wrote. old is the replaced definition, or
// nil.
func checkRules(crd, old *v1.CustomResourceDefinition) field.ErrorList {
	if sameRules(crd, old) {
		return nil
	}
	rules, report := conversion.Written(crd)
	if rules != nil && rules.Config != "" {
		return nil
	}
	if rules != nil {
		_, report = rules.For(crd, conversion.SchemasOf(crd), conversion.AnnotationPath())
	}
	return report.Refused()
}

func sameSchemas(a, b *v1.CustomResourceDefinition) bool {
	x, err1 := json.Marshal(a.Spec.Versions)
	y, err2 := json.Marshal(b.Spec.Versions)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// warnOfRules returns the warnings about conversion rules.
func warnOfRules(obj, old object.Tree) []string {
	if text, _ := object.Annotation(obj, conversion.Annotation); text == "" {
		return nil
	}
	crd, err := typed(obj)
	if err != nil {
		return nil
	}
	var before *v1.CustomResourceDefinition
	if old != nil {
		if before, err = typed(old); err != nil {
			return nil
		}
	}
	if sameRules(crd, before) {
		return nil
	}
	rules, _ := conversion.Written(crd)
	if rules == nil {
		return nil
	}
	report := rules.Check(crd, conversion.AnnotationPath())
	warnings := report.Warnings
	if errs := report.Refused(); rules.Config != "" && len(errs) > 0 {
		effect := "fields without a rule are lost in conversions"
		if report.Broken() != nil {
			effect = "conversions between versions fail until it is changed"
		}
		warnings = append(warnings, fmt.Sprintf("the conversion rules of the CRDConversionConfig %s do not fit the schemas: %v; %s", rules.Config, errs.ToAggregate(), effect))
	}
	return warnings
}

// keepRules keeps the rules of a CRDConversionConfig in a definition that is replaced by one without rules.
// An empty annotation removes them.
func keepRules(obj, old object.Tree) {
	text, has := object.Annotation(obj, conversion.Annotation)
	if has {
		if text == "" {
			delete(object.Metadata(obj)["annotations"].(object.Tree), conversion.Annotation)
		}
		return
	}
	was, _ := object.Annotation(old, conversion.Annotation)
	if was == "" {
		return
	}
	if rules, err := conversion.ParseText(was); err == nil && rules.Config != "" {
		object.SetAnnotation(obj, conversion.Annotation, was)
	}
}
