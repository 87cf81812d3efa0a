package structural

import (
	"fmt"
	"regexp"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/schema/format"
)

// kinds is a set of the kinds of values there are.
type kinds uint8

const (
	isNull kinds = 1 << iota
	isBool
	isInteger
	isWhole    // a float that is an integer
	isFraction // a float with a fraction
	isString
	isList
	isObject

	anyKind = isNull | isBool | isInteger | isWhole | isFraction | isString | isList | isObject
)

// The types of schemas, and those of values.
const (
	typeBoolean = "boolean"
	typeInteger = "integer"
	typeNumber  = "number"
	typeString  = "string"
	typeArray   = "array"
	typeObject  = "object"
	typeNull    = "null"

	intOrString = "integer,string"
)

// limits are the constraints of a schema for values, besides their type and nested values.
type limits struct {
	format string // as the schema spells it
	inForm func(string) bool

	pattern              *pattern
	minLength, maxLength *int64

	numbers *numbers

	minItems, maxItems *int64
	uniqueItems        bool

	minProperties, maxProperties *int64
	required                     []string

	enum []any

	allOf, anyOf, oneOf []*node
	not                 *node
}

// A pattern is compiled when it is first needed, and once.
type pattern struct {
	source string
	once   sync.Once
	re     *regexp.Regexp
	err    error
}

func (p *pattern) match(s string) bool {
	p.once.Do(func() { p.re, p.err = regexp.Compile(p.source) })
	return p.err == nil && p.re.MatchString(s)
}

// expected is the pattern as a message shows it.
func (p *pattern) expected() string {
	if p.err != nil {
		return fmt.Sprintf("%s, but pattern is invalid: %s", p.source, p.err)
	}
	return p.source
}

// A builder builds the nodes of one schema.
type builder struct {
	// ofDefaults builds what default values are checked by: formats that are not
	// enforced elsewhere count, and an int-or-string has no type.
	ofDefaults bool
	junctors   int // that are around the present place
	patterns   map[string]*pattern
	plain      map[[2]string]*limits // those with only a format
}

// constrain adds the constraints of props to n.
func (b *builder) constrain(n *node, props *apiextensionsv1.JSONSchemaProps) error {
	n.typed = props.Type
	if props.XIntOrString && !b.ofDefaults {
		n.typed = intOrString
	}
	v := &limits{
		format:    b.format(n.typed, props.Format),
		minLength: props.MinLength, maxLength: props.MaxLength,
		minItems: props.MinItems, maxItems: props.MaxItems, uniqueItems: props.UniqueItems,
		minProperties: props.MinProperties, maxProperties: props.MaxProperties,
		required: props.Required,
	}
	v.inForm = format.Of(v.format)
	v.numbers = newNumbers(n.typed, v.format, props)
	if props.Pattern != "" {
		v.pattern = b.pattern(props.Pattern)
	}
	for i := range props.Enum {
		var e any // null, because it was not kept
		if raw := props.Enum[i].Raw; len(raw) > 0 {
			if err := utiljson.Unmarshal(raw, &e); err != nil {
				return fmt.Errorf("enum: %w", err)
			}
		}
		v.enum = append(v.enum, e)
	}
	b.junctors++
	defer func() { b.junctors-- }()
	var err error
	for _, junctor := range []struct {
		in  []apiextensionsv1.JSONSchemaProps
		out *[]*node
	}{{props.AllOf, &v.allOf}, {props.AnyOf, &v.anyOf}, {props.OneOf, &v.oneOf}} {
		for i := range junctor.in {
			sub, err := b.build(&junctor.in[i])
			if err != nil {
				return err
			}
			*junctor.out = append(*junctor.out, sub)
		}
	}
	if props.Not != nil {
		if v.not, err = b.build(props.Not); err != nil {
			return err
		}
	}
	n.accepts = accepted(n.typed, v.format, props.Nullable)
	n.limits = b.share(n.typed, v)
	return nil
}

// share returns nil for limits without constraints, as in most schemas of fields, and a shared value
// for limits with only a format.
func (b *builder) share(typed string, v *limits) *limits {
	if !v.plain() {
		return v
	}
	if v.format == "" {
		return nil
	}
	key := [2]string{typed, v.format}
	if b.plain[key] == nil {
		if b.plain == nil {
			b.plain = map[[2]string]*limits{}
		}
		b.plain[key] = v
	}
	return b.plain[key]
}

// plain reports whether v has at most a format.
func (v *limits) plain() bool {
	return v.pattern == nil && v.minLength == nil && v.maxLength == nil && (v.numbers == nil || !v.numbers.bounded()) &&
		v.minItems == nil && v.maxItems == nil && !v.uniqueItems && v.minProperties == nil && v.maxProperties == nil &&
		len(v.required) == 0 && len(v.enum) == 0 && len(v.allOf) == 0 && len(v.anyOf) == 0 && len(v.oneOf) == 0 && v.not == nil
}

func (b *builder) pattern(source string) *pattern {
	p := b.patterns[source]
	if p == nil {
		if b.patterns == nil {
			b.patterns = map[string]*pattern{}
		}
		p = &pattern{source: source}
		b.patterns[source] = p
	}
	return p
}

// format returns the format that counts for values of a type, or "".
func (b *builder) format(typed, name string) string {
	if b.ofDefaults {
		return name
	}
	if typed == intOrString {
		typed = typeString
	}
	if !format.Enforced(typed, name) {
		return ""
	}
	return name
}

// accepted returns the kinds of values that are of the stated type.
func accepted(typed, format string, nullable bool) kinds {
	if typed == "" && format == "" {
		return anyKind
	}
	var all kinds
	for k := isNull << 1; k != 0; k <<= 1 {
		if _, _, ok := typeOK(typed, format, k); ok {
			all |= k
		}
	}
	if typed == "" || typed == typeNull || nullable {
		all |= isNull
	}
	return all
}

// typeOK reports whether a value other than null is of the type and, if not, the expected and the
// found type.
func typeOK(typed, format string, k kinds) (expected, found string, ok bool) {
	foundFormat := ""
	switch k {
	case isBool:
		found = typeBoolean
	case isInteger:
		found, foundFormat = typeInteger, "int64"
	case isWhole, isFraction:
		found, foundFormat = typeNumber, "float64"
	case isString:
		found = typeString
	case isList:
		found = typeArray
	case isObject:
		found = typeObject
	}
	integers := typed == typeInteger || typed == intOrString
	match := typed == found || typed == intOrString && found == typeString || integers && found == typeInteger ||
		k == isWhole && integers || k == isInteger && typed == typeNumber
	textual := k == isString || k == isList
	switch {
	case format == "":
	case !textual && !match && foundFormat != format:
		return format, foundFormat, false
	case textual && !integers && typed != typeNumber:
		// A format replaces the type: as in Kubernetes, lists pass.
		return "", "", true
	}
	return typed, found, match
}

// kindOf returns the kind of a value.
func kindOf(v any) kinds {
	switch v := v.(type) {
	case nil:
		return isNull
	case bool:
		return isBool
	case int64:
		return isInteger
	case float64:
		if whole(v) {
			return isWhole
		}
		return isFraction
	case string:
		return isString
	case []any:
		return isList
	default:
		return isObject
	}
}
