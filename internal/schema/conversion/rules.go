package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
)

// Rules are the rules of a definition: the spec of a CRDConversionConfig.
type Rules struct {
	TargetCRD struct {
		Name string `json:"name"`
	} `json:"targetCRD"`
	// HubVersion is the version to and from which all others are converted.
	HubVersion string  `json:"hubVersion"`
	Spokes     []Spoke `json:"spokes"`
	// UnmappedFieldPolicy is Error, the default, if each field that differs needs a rule, or Warn, with
	// a reason, if fields without a rule are dropped.
	UnmappedFieldPolicy string `json:"unmappedFieldPolicy"`
	UnmappedFieldReason string `json:"unmappedFieldReason"`

	// DriftPolicy is KeepServingStale, the default, or FailClosed, if conversions fail as soon as a schema
	// has changed so that a field has no rule.
	DriftPolicy string `json:"driftPolicy"`
	// Config is the name of the CRDConversionConfig that the rules come from; "" for none.
	Config string `json:"config"`

	// Settings of the operator's webhooks, without a meaning for rules.
	WebhookServerRef         json.RawMessage `json:"webhookServerRef"`
	ConversionReviewVersions []string        `json:"conversionReviewVersions"`
}

// A Spoke has the rules between a version and the hub.
type Spoke struct {
	Version string            `json:"version"`
	Rules   []json.RawMessage `json:"rules"`
}

// maxRules limits the rules of a spoke, and those of the elements of a list.
const maxRules = 512

// Parse decodes the spec of a CRDConversionConfig. It does not look into the rules, as Compile does.
func Parse(spec []byte) (*Rules, error) {
	r := &Rules{}
	if err := strictly(spec, r); err != nil {
		return nil, err
	}
	return r, nil
}

// strictly decodes JSON, and fails for unknown and duplicate fields.
func strictly(data []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	return err
}

// ParseText is Parse for JSON or YAML.
func ParseText(text string) (*Rules, error) {
	t, duplicates, err := codec.Decode(codec.YAML, []byte(text))
	switch {
	case err != nil:
		return nil, err
	case len(duplicates) > 0:
		return nil, errors.New(duplicates[0])
	}
	return Parse(object.AppendJSON(nil, t))
}

// A rule is a decoded rule, whose resolve compiles it for two schemas.
type rule struct {
	strategy    string
	at          *field.Path // of its parameters
	acknowledge bool
	reason      string
	when        *condition
	resolve     func(*compiler)
}

// decodeRule decodes a rule.
func decodeRule(data []byte, at *field.Path) (*rule, field.ErrorList) {
	var all map[string]json.RawMessage
	var known struct {
		Strategy         string `json:"strategy"`
		AcknowledgeLossy bool   `json:"acknowledgeLossy"`
		Reason           string `json:"reason"`
		When             *struct {
			Path   string `json:"path"`
			Equals any    `json:"equals"`
		} `json:"when"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &all); err != nil {
		return nil, field.ErrorList{field.Invalid(at, string(data), err.Error())}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &known); err != nil {
		return nil, field.ErrorList{field.Invalid(at, string(data), err.Error())}
	}
	every := strategies()
	s, ok := every[known.Strategy]
	if !ok {
		return nil, field.ErrorList{field.NotSupported(at.Child("strategy"), known.Strategy, slices.Sorted(maps.Keys(every)))}
	}
	r := &rule{strategy: known.Strategy, at: at.Child(s.field), acknowledge: known.AcknowledgeLossy, reason: known.Reason}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains([]string{"strategy", "acknowledgeLossy", "reason", "when", s.field}, name) {
			errs = append(errs, field.Forbidden(at.Child(name), fmt.Sprintf("a rule with the strategy %s has its parameters in %s", known.Strategy, s.field)))
		}
	}
	if known.When != nil {
		p, err := parsePath(known.When.Path)
		if err != nil {
			errs = append(errs, field.Invalid(at.Child("when", "path"), known.When.Path, err.Error()))
		}
		r.when = &condition{p, known.When.Equals}
	}
	if all[s.field] == nil {
		return nil, append(errs, field.Required(r.at, "the parameters of the strategy "+known.Strategy))
	}
	var err error
	if r.resolve, err = s.decode(all[s.field]); err != nil {
		return nil, append(errs, field.Invalid(r.at, string(all[s.field]), strings.TrimPrefix(err.Error(), "json: ")))
	}
	return r, errs
}

// A strategy decodes the parameters of its rules.
type strategy struct {
	field  string
	decode func(data []byte) (func(*compiler), error)
}

// of returns a strategy with parameters of a type. They are decoded strictly.
func of[P any](field string, resolve func(*compiler, *P)) strategy {
	return strategy{field, func(data []byte) (func(*compiler), error) {
		p := new(P)
		if err := strictly(data, p); err != nil {
			return nil, err
		}
		return func(c *compiler) { resolve(c, p) }, nil
	}}
}
