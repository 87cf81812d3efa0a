package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

func limitRanges() *resource.Definition {
	return kind.Kind[*corev1.LimitRange, *corev1.LimitRangeList]{
		Definition: resource.Definition{
			Plural: "limitranges", ShortNames: []string{"limits"}, Namespaced: true,
			Strategy: resource.Strategy{
				AllowCreateOnUpdate: true, AllowUnconditionalUpdate: true, Prepare: resource.Changing(nameLimitRange),
			},
		},
		Rules:    rule.Lazy(kind.ResourceLists, rule.Default[corev1.LimitRangeItem](defaultLimit)),
		Validate: validateLimitRange,
		Columns:  `Created At  date  .metadata.creationTimestamp`,
	}.New()
}

// nameLimitRange names a new object without a name and without generateName.
func nameLimitRange(obj, _ map[string]any) {
	if object.Name(obj) == "" {
		object.SetMetaString(obj, "name", string(uuid.NewUUID()))
	}
}

// defaultLimit sets the default limit to the maximum, and the default request to the limit or the
// minimum.
func defaultLimit(limit map[string]any) {
	if kind.Text(limit, "type") != string(corev1.LimitTypeContainer) {
		return
	}
	fill := func(to, from string) {
		for name, v := range kind.Tree(limit, from) {
			if kind.Tree(limit, to)[name] == nil {
				kind.Child(limit, to)[name] = v
			}
		}
	}
	fill("default", "max")
	fill("defaultRequest", "default")
	fill("defaultRequest", "min")
}

func validateLimitRange(c *rule.Check, r, _ *corev1.LimitRange) {
	types := map[corev1.LimitType]bool{}
	for i := range r.Spec.Limits {
		limit, at := &r.Spec.Limits[i], c.At("spec", "limits", i)
		validateLimitType(at.At("type"), limit.Type)
		if types[limit.Type] {
			at.At("type").Duplicate(limit.Type)
		}
		types[limit.Type] = true
		validateLimit(at, limit)
	}
}

func validateLimitType(c *rule.Check, t corev1.LimitType) {
	details := validation.IsQualifiedName(string(t))
	c.Invalids(t, details)
	standard := t == corev1.LimitTypePod || t == corev1.LimitTypeContainer || t == corev1.LimitTypePersistentVolumeClaim
	if len(details) == 0 && !standard && !strings.Contains(string(t), "/") {
		c.Invalid(t, "must be a standard limit type or fully qualified")
	}
}

func validateLimit(c *rule.Check, limit *corev1.LimitRangeItem) {
	lists := []struct {
		name string
		list corev1.ResourceList
	}{{"max", limit.Max}, {"min", limit.Min}, {"default", limit.Default}, {"defaultRequest", limit.DefaultRequest}, {"maxLimitRequestRatio", limit.MaxLimitRequestRatio}}
	validate := kind.ValidateResourceName
	if limit.Type == corev1.LimitTypePod || limit.Type == corev1.LimitTypeContainer {
		validate = kind.ValidateContainerResource
	}
	ofPod := *limit
	var names []corev1.ResourceName
	for _, l := range lists {
		if limit.Type == corev1.LimitTypePod && strings.HasPrefix(l.name, "default") {
			if len(l.list) > 0 {
				c.At(l.name).Forbidden("may not be specified when `type` is 'Pod'")
			}
			ofPod.Default, ofPod.DefaultRequest = nil, nil
			continue
		}
		for _, name := range kind.SortedKeys(l.list) {
			validate(c.At(l.name).AtKey(string(name)), name)
			names = append(names, name)
		}
	}
	if limit.Type == corev1.LimitTypePersistentVolumeClaim {
		_, min := limit.Min[corev1.ResourceStorage]
		_, max := limit.Max[corev1.ResourceStorage]
		if !min && !max {
			c.At("limits").Required("either minimum or maximum storage value is required, but neither was provided")
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		validateLimitsOf(c, &ofPod, name)
	}
}

// An amount is a quantity that may be missing.
type amount struct {
	apiresource.Quantity
	there bool
}

func amountIn(list corev1.ResourceList, name corev1.ResourceName) amount {
	q, ok := list[name]
	return amount{q, ok}
}

// above reports whether an amount is greater than another one.
func (a amount) above(b amount) bool { return a.there && b.there && a.Cmp(b.Quantity) > 0 }

// validateLimitsOf validates the limits of one resource: minimum, default request, default limit
// and maximum must be in this order.
func validateLimitsOf(c *rule.Check, limit *corev1.LimitRangeItem, name corev1.ResourceName) {
	at := func(list string) *rule.Check { return c.At(list).AtKey(string(name)) }
	least, most, ratio := amountIn(limit.Min, name), amountIn(limit.Max, name), amountIn(limit.MaxLimitRequestRatio, name)
	given, asked := amountIn(limit.Default, name), amountIn(limit.DefaultRequest, name)
	for _, r := range []struct {
		less, more         amount
		list               string
		told               amount
		lessName, moreName string
	}{
		{least, most, "min", least, "min", "max"},
		{least, asked, "defaultRequest", asked, "min", "default request"},
		{asked, most, "defaultRequest", asked, "default request", "max"},
		{asked, given, "defaultRequest", asked, "default request", "default limit"},
		{least, given, "default", least, "min", "default"},
		{given, most, "default", most, "default", "max"},
	} {
		if r.less.above(r.more) {
			at(r.list).Invalid(r.told.Quantity, fmt.Sprintf("%s value %s is greater than %s value %s", r.lessName, r.less.String(), r.moreName, r.more.String()))
		}
	}
	if ratio.there {
		validateRatio(at("maxLimitRequestRatio"), ratio.Quantity, least, most)
	}
	overcommits := kind.IsNative(name) && !kind.IsHugePages(name)
	if !overcommits && given.there && asked.there && given.Cmp(asked.Quantity) != 0 {
		at("defaultRequest").Invalid(asked.Quantity, fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", given.String(), asked.String(), name))
	}
}

// validateRatio validates the maximum ratio of limit and request.
func validateRatio(c *rule.Check, ratio apiresource.Quantity, least, most amount) {
	if ratio.Cmp(*apiresource.NewQuantity(1, apiresource.DecimalSI)) < 0 {
		c.Invalid(ratio, fmt.Sprintf("ratio %s is less than 1", ratio.String()))
	}
	if !least.there || !most.there {
		return
	}
	value, min, max := float64(ratio.Value()), least.Value(), most.Value()
	if ratio.Value() < apiresource.MaxMilliValue && min < apiresource.MaxMilliValue && max < apiresource.MaxMilliValue {
		value, min, max = float64(ratio.MilliValue())/1000, least.MilliValue(), most.MilliValue()
	}
	if limit := float64(max) / float64(min); value > limit {
		c.Invalid(ratio, fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.String(), limit))
	}
}
