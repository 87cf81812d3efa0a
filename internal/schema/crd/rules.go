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

// checkRules returns the errors and warnings about the conversion rules of a definition. old is the replaced
// one, or nil.
func checkRules(crd, old *v1.CustomResourceDefinition) (errs field.ErrorList, warnings []string) {
	text := crd.Annotations[conversion.Annotation]
	if text == "" || old != nil && text == old.Annotations[conversion.Annotation] && sameSchemas(crd, old) {
		return nil, nil
	}
	report := conversion.CheckOf(crd)
	errs = append(report.Errors, report.Unmapped...)
	warnings = append(warnings, report.Warnings...)
	rules, err := conversion.ParseText(text)
	if err != nil || rules.Config == "" {
		return errs, warnings
	}
	if len(errs) > 0 {
		effect := "fields without a rule are lost in conversions"
		if report.Broken() != nil {
			effect = "conversions between versions fail until it is changed"
		}
		warnings = append(warnings, fmt.Sprintf("the conversion rules of the CRDConversionConfig %s do not fit the schemas: %v; %s", rules.Config, errs.ToAggregate(), effect))
	}
	return nil, warnings
}

func sameSchemas(a, b *v1.CustomResourceDefinition) bool {
	x, err1 := json.Marshal(a.Spec.Versions)
	y, err2 := json.Marshal(b.Spec.Versions)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// warnOfRules returns the warnings about conversion rules.
func warnOfRules(obj, old object.Tree) []string {
	if rulesOf(obj) == "" {
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
	_, warnings := checkRules(crd, before)
	return warnings
}

// rulesOf returns the annotation of a definition.
func rulesOf(t object.Tree) string {
	annotations, _ := object.Metadata(t)["annotations"].(object.Tree)
	text, _ := annotations[conversion.Annotation].(string)
	return text
}

// keepRules keeps the rules of a CRDConversionConfig in a definition that is replaced by one without rules.
// An empty annotation removes them.
func keepRules(obj, old object.Tree) {
	annotations, _ := object.Metadata(obj)["annotations"].(object.Tree)
	text, has := annotations[conversion.Annotation].(string)
	switch {
	case has && text == "":
		delete(annotations, conversion.Annotation)
	case !has && old != nil && rulesOf(old) != "":
		rules, err := conversion.ParseText(rulesOf(old))
		if err != nil || rules.Config == "" {
			return
		}
		if annotations == nil {
			annotations = object.Tree{}
			object.Metadata(obj)["annotations"] = annotations
		}
		annotations[conversion.Annotation] = rulesOf(old)
	}
}
