package celrule

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Kubernetes' documentation on custom resources, section "Validation rules": the table of examples,
// each with a valid and an invalid object.
func TestRuleExamples(t *testing.T) {
	for _, tt := range []struct {
		purpose, at, rule string
		properties        string
		passes, fails     string
		costly            bool // the result of a filter has no limits
	}{{
		purpose:    "the three fields defining replicas are ordered",
		rule:       `self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas`,
		properties: `{minReplicas: {type: integer}, replicas: {type: integer}, maxReplicas: {type: integer}}`,
		passes:     `{minReplicas: 1, replicas: 2, maxReplicas: 3}`,
		fails:      `{minReplicas: 1, replicas: 20, maxReplicas: 3}`,
	}, {
		purpose:    "an entry with the 'Available' key exists in a map",
		rule:       `'Available' in self.stateCounts`,
		properties: `{stateCounts: {type: object, maxProperties: 5, additionalProperties: {type: integer}}}`,
		passes:     `{stateCounts: {Available: 1}}`,
		fails:      `{stateCounts: {Gone: 1}}`,
	}, {
		purpose:    "one of two lists is not empty, but not both",
		rule:       `(size(self.list1) == 0) != (size(self.list2) == 0)`,
		properties: `{list1: {type: array, items: {type: string}}, list2: {type: array, items: {type: string}}}`,
		passes:     `{list1: [a], list2: []}`,
		fails:      `{list1: [a], list2: [b]}`,
	}, {
		purpose:    "the value of a map for a key, if it is in the map",
		rule:       `!('MY_KEY' in self.map1) || self.map1['MY_KEY'].matches('^[a-zA-Z]*$')`,
		properties: `{map1: {type: object, maxProperties: 5, additionalProperties: {type: string, maxLength: 20}}}`,
		passes:     `{map1: {MY_KEY: abc}}`,
		fails:      `{map1: {MY_KEY: "1"}}`,
	}, {
		purpose: "the value of the entry of a map list whose name is MY_ENV",
		rule:    `self.envars.filter(e, e.name == 'MY_ENV').all(e, e.value.matches('^[a-zA-Z]*$'))`,
		properties: `{envars: {type: array, maxItems: 5, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {
			type: object, required: [name], properties: {name: {type: string, maxLength: 20}, value: {type: string, maxLength: 20}}}}}`,
		passes: `{envars: [{name: OTHER, value: "1"}, {name: MY_ENV, value: abc}]}`,
		fails:  `{envars: [{name: MY_ENV, value: "1"}]}`,
		costly: true,
	}, {
		purpose:    "expired is after created plus ttl",
		rule:       `has(self.expired) && self.created + self.ttl < self.expired`,
		properties: `{expired: {type: string, format: date-time}, created: {type: string, format: date-time}, ttl: {type: string, format: duration}}`,
		passes:     `{created: "2024-01-01T00:00:00Z", ttl: 1h, expired: "2024-01-01T02:00:00Z"}`,
		fails:      `{created: "2024-01-01T00:00:00Z", ttl: 3h, expired: "2024-01-01T02:00:00Z"}`,
	}, {
		purpose:    "a string has a prefix",
		rule:       `self.health.startsWith('ok')`,
		properties: `{health: {type: string}}`,
		passes:     `{health: okay}`,
		fails:      `{health: bad}`,
	}, {
		purpose: "the foo of the item of a map list with the key x is less than 10",
		rule:    `self.widgets.exists(w, w.key == 'x' && w.foo < 10)`,
		properties: `{widgets: {type: array, maxItems: 5, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [key], items: {
			type: object, required: [key], properties: {key: {type: string, maxLength: 20}, foo: {type: integer}}}}}`,
		passes: `{widgets: [{key: y, foo: 20}, {key: x, foo: 9}]}`,
		fails:  `{widgets: [{key: x, foo: 10}]}`,
	}, {
		purpose:    "an int-or-string, whichever it is",
		at:         "percent",
		rule:       `type(self) == string ? self == '100%' : self == 1000`,
		properties: `{percent: {x-kubernetes-int-or-string: true}}`,
		passes:     `{percent: 100%}`,
		fails:      `{percent: 100}`,
	}, {
		purpose:    "the name of an object has another field as its prefix",
		rule:       `self.metadata.name.startsWith(self.prefix)`,
		properties: `{prefix: {type: string}}`,
		passes:     `{metadata: {name: web-1}, prefix: web}`,
		fails:      `{metadata: {name: db-1}, prefix: web}`,
	}, {
		purpose: "two sets are disjoint",
		rule:    `self.set1.all(e, !(e in self.set2))`,
		properties: `{set1: {type: array, maxItems: 5, x-kubernetes-list-type: set, items: {type: string, maxLength: 5}},
			set2: {type: array, maxItems: 5, x-kubernetes-list-type: set, items: {type: string, maxLength: 5}}}`,
		passes: `{set1: [a, b], set2: [c]}`,
		fails:  `{set1: [a, b], set2: [b]}`,
	}, {
		purpose: "the details are keyed by the items of the names",
		rule:    `size(self.names) == size(self.details) && self.names.all(n, n in self.details)`,
		properties: `{names: {type: array, maxItems: 5, x-kubernetes-list-type: set, items: {type: string, maxLength: 5}},
			details: {type: object, maxProperties: 5, additionalProperties: {type: integer}}}`,
		passes: `{names: [a, b], details: {b: 1, a: 2}}`,
		fails:  `{names: [a, b], details: {b: 1, c: 2}}`,
	}, {
		purpose: "there is one primary among the clusters",
		rule:    `size(self.clusters.filter(c, c.name == self.primary)) == 1`,
		properties: `{primary: {type: string, maxLength: 20}, clusters: {type: array, maxItems: 5, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name],
			items: {type: object, required: [name], properties: {name: {type: string, maxLength: 20}}}}}`,
		passes: `{primary: a, clusters: [{name: a}, {name: b}]}`,
		fails:  `{primary: c, clusters: [{name: a}, {name: b}]}`,
	}, {
		purpose:    "spec and status in one rule, at the root",
		rule:       `self.status.availableReplicas >= self.spec.minReplicas`,
		properties: `{spec: {type: object, properties: {minReplicas: {type: integer}}}, status: {type: object, properties: {availableReplicas: {type: integer}}}}`,
		passes:     `{spec: {minReplicas: 1}, status: {availableReplicas: 1}}`,
		fails:      `{spec: {minReplicas: 2}, status: {availableReplicas: 1}}`,
	}, {
		purpose:    "a field is there; a null is not",
		at:         "spec",
		rule:       `has(self.foo)`,
		properties: `{spec: {type: object, properties: {foo: {type: integer, nullable: true}}}}`,
		passes:     `{spec: {foo: 1}}`,
		fails:      `{spec: {foo: null}}`,
	}, {
		purpose:    "an entry of a map",
		at:         "spec",
		rule:       `self['xyz'].foo > 0`,
		properties: `{spec: {type: object, additionalProperties: {type: object, properties: {foo: {type: integer}}}}}`,
		passes:     `{spec: {xyz: {foo: 1}}}`,
		fails:      `{spec: {xyz: {foo: 0}}}`,
	}, {
		purpose:    "a list has one element",
		at:         "foo",
		rule:       `size(self) == 1`,
		properties: `{foo: {type: array, items: {type: string}}}`,
		passes:     `{foo: [a]}`,
		fails:      `{foo: [a, b]}`,
	}, {
		purpose:    "a scalar",
		at:         "foo",
		rule:       `self > 0`,
		properties: `{foo: {type: integer}}`,
		passes:     `{foo: 1}`,
		fails:      `{foo: 0}`,
	}, {
		purpose:    "a map of objects",
		rule:       `self.components['Widget'].priority < 10`,
		properties: `{components: {type: object, additionalProperties: {type: object, properties: {priority: {type: integer}}}}}`,
		passes:     `{components: {Widget: {priority: 9}}}`,
		fails:      `{components: {Widget: {priority: 10}}}`,
	}, {
		purpose:    "a list of integers",
		rule:       `self.values.all(value, value >= 0 && value < 100)`,
		properties: `{values: {type: array, maxItems: 100, items: {type: integer}}}`,
		passes:     `{values: [0, 99]}`,
		fails:      `{values: [0, 100]}`,
	}, {
		purpose:    "rules of the elements of a list",
		at:         "foo.items",
		rule:       `self.startsWith('kube')`,
		properties: `{foo: {type: array, maxItems: 5, items: {type: string, maxLength: 10}}}`,
		passes:     `{foo: [kube, kube-x]}`,
		fails:      `{foo: [kube, x]}`,
	}} {
		t.Run(tt.purpose, func(t *testing.T) {
			p := withRule(t, schemaOf(t, tt.properties), tt.at, apiextensionsv1.ValidationRule{Rule: tt.rule})
			if !tt.costly {
				accepted(t, p)
			} else if errs := refusals(p); len(errs) == 0 || !strings.Contains(errs[0], "exceeds budget") {
				t.Errorf("%q, want that it costs too much", errs)
			}
			if errs := validate(t, p, tt.passes, ""); len(errs) > 0 {
				t.Errorf("%s does not pass: %v", tt.passes, errs)
			}
			errs := validate(t, p, tt.fails, "")
			if len(errs) != 1 || !strings.Contains(errs[0], "failed rule: "+tt.rule) {
				t.Errorf("%s: %q, want that the rule failed", tt.fails, errs)
			}
		})
	}
}

// The page: "Accessible property names are escaped".
func TestEscaping(t *testing.T) {
	for name, escaped := range map[string]string{
		"a__b": "a__underscores__b", "a.b": "a__dot__b", "x-prop": "x__dash__prop", "a/b": "a__slash__b",
		"namespace": "__namespace__", "in": "__in__", "redact__d": "redact__underscores__d", "string": "string", "int": "int", "sprint": "sprint",
		"true": "__true__", "loop": "__loop__",
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := apiservercel.Escape(name); !ok || got != escaped {
				t.Errorf("%s is escaped as %s, want %s", name, got, escaped)
			}
			p := withRule(t, schemaOf(t, `{spec: {type: object, properties: {"`+name+`": {type: integer}}}}`), "spec",
				apiextensionsv1.ValidationRule{Rule: "has(self." + escaped + ") && self." + escaped + " > 0"})
			accepted(t, p)
			if errs := validate(t, p, `{spec: {"`+name+`": 1}}`, ""); len(errs) > 0 {
				t.Error(errs)
			}
			if errs := validate(t, p, `{spec: {"`+name+`": 0}}`, ""); len(errs) != 1 {
				t.Errorf("%q, want one error", errs)
			}
		})
	}
	// Names that cannot be said are not there for expressions.
	p := withRule(t, schemaOf(t, `{spec: {type: object, properties: {1x: {type: integer}, "é": {type: integer}}}}`), "spec",
		apiextensionsv1.ValidationRule{Rule: "self.é > 0"})
	if errs := refusals(p); len(errs) != 1 {
		t.Errorf("%q, want one error", errs)
	}
}

// Kubernetes' documentation: "Only apiVersion, kind, metadata.name and metadata.generateName", and the
// paragraph on unknown types.
func TestAccess(t *testing.T) {
	const embedded = `{spec: {type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}}`
	for _, tt := range []struct {
		what, properties, at, rule string
		refused                    bool
	}{
		{"the kind of a root", `{}`, "", `self.kind == 'X' && self.apiVersion == 'v1' && self.metadata.generateName == ''`, false},
		{"labels of a root", `{}`, "", `self.metadata.labels == {}`, true},
		{"the name of an embedded object", embedded, "spec.template", `self.metadata.name == 'a' && self.kind == 'X'`, false},
		{"the name of an embedded object, from above", embedded, "spec", `self.template.metadata.name == 'a'`, false},
		{"the namespace of an embedded object", embedded, "spec.template", `self.metadata.__namespace__ == 'a'`, true},
		{"fields that are kept though unknown", `{spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}`, "spec", `self.x == 1`, true},
		{"a field of unknown type", `{spec: {type: object, properties: {x: {x-kubernetes-preserve-unknown-fields: true}}}}`, "spec", `has(self.x)`, true},
		{"a list of unknown type", `{spec: {type: object, properties: {x: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}}}}`, "spec", `has(self.x)`, true},
		{"a map of unknown type", `{spec: {type: object, properties: {x: {type: object, additionalProperties: {x-kubernetes-preserve-unknown-fields: true}}}}}`, "spec", `has(self.x)`, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := withRule(t, schemaOf(t, tt.properties), tt.at, apiextensionsv1.ValidationRule{Rule: tt.rule})
			if errs := refusals(p); len(errs) > 0 != tt.refused {
				t.Errorf("%q, refused should be %t", errs, tt.refused)
			}
		})
	}
}

// The page: the table of types, and lists that are sets or maps.
func TestTypes(t *testing.T) {
	const lists = `{
		set: {type: array, x-kubernetes-list-type: set, items: {type: integer}},
		map: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {
			type: object, properties: {k: {type: string}, v: {type: integer}}, required: [k]}},
		list: {type: array, items: {type: integer}}}`
	for _, tt := range []struct{ what, properties, rule, obj string }{
		{"bytes", `{x: {type: string, format: byte}}`, `type(self.x) == bytes && self.x == b'hi'`, `{x: aGk=}`},
		{"date", `{x: {type: string, format: date}}`, `self.x == timestamp('2024-05-06T00:00:00Z')`, `{x: "2024-05-06"}`},
		{"date-time", `{x: {type: string, format: date-time}}`, `self.x.getHours() == 7`, `{x: "2024-05-06T07:08:09Z"}`},
		{"duration", `{x: {type: string, format: duration}}`, `self.x == duration('90m')`, `{x: 1h30m}`},
		{"number", `{x: {type: number}}`, `type(self.x) == double && self.x == 2.0`, `{x: 2}`},
		{"integer", `{x: {type: integer}}`, `type(self.x) == int`, `{x: 2}`},
		{"boolean", `{x: {type: boolean}}`, `self.x`, `{x: true}`},
		{"null", `{x: {type: array, items: {type: string, nullable: true}}}`, `dyn(self.x[0]) == null`, `{x: [null]}`},
		{"int or string", `{x: {x-kubernetes-int-or-string: true}}`, `type(self.x) == int`, `{x: 3}`},
		{"sets are equal in any order", lists, `self.set == [3, 2, 1]`, `{set: [1, 2, 3]}`},
		{"lists are not", lists, `self.list != [3, 2, 1]`, `{list: [1, 2, 3]}`},
		{"the union of sets", lists, `self.set + [3, 4] == [1, 2, 3, 4] && size(self.set + [3, 4]) == 4`, `{set: [1, 2, 3]}`},
		{"map lists are equal in any order", lists, `self.map == self.map + [self.map[1], self.map[0]]`, `{map: [{k: a, v: 1}, {k: b, v: 2}]}`},
		{"map lists are merged", lists, `(self.map + [self.map[0]]).size() == 2`, `{map: [{k: a, v: 1}, {k: b, v: 2}]}`},
		{"keywords that stand for themselves", `{__not__: {type: integer}, namespace: {type: integer}}`, `self.namespace == 1`, `{namespace: 1}`},
		{"Kubernetes' functions", `{x: {type: string}}`, `isURL(self.x) && url(self.x).getHost() == 'h' && quantity('1k').isGreaterThan(quantity('1')) && ip('::1').isLoopback() && cidr('10.0.0.0/8').containsIP('10.1.2.3') && semver('1.2.3').major() == 1 && !format.named('uuid').value().validate('x').hasValue() == false`, `{x: "http://h/"}`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := withRule(t, schemaOf(t, tt.properties), "", apiextensionsv1.ValidationRule{Rule: tt.rule})
			accepted(t, p)
			if errs := validate(t, p, tt.obj, ""); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
}
