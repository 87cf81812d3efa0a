package celrule

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/objecttest"
)

// A libraryFile is testdata/library.yaml.
type libraryFile struct {
	props                 *apiextensionsv1.JSONSchemaProps
	object                map[string]any
	holds, fails, refused string
}

func readLibrary(t *testing.T) libraryFile {
	t.Helper()
	data, err := os.ReadFile("testdata/library.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := objecttest.Tree(t, string(data))
	l := libraryFile{
		props:  &apiextensionsv1.JSONSchemaProps{Type: "object"},
		object: all["object"].(map[string]any),
		holds:  all["holds"].(string), fails: all["fails"].(string), refused: all["refused"].(string),
	}
	read(t, string(data), l.props)
	return l
}

// expressions are the lines that are not comments.
func expressions(text string) []string {
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
}

// unsaid reports function overloads that no rule can use: old names of operators, and those of the
// authorizer.
func unsaid(overload string) bool {
	return overload == "__not_strictly_false__" || strings.HasPrefix(overload, "authorizer_") || strings.HasPrefix(overload, "decision_") ||
		strings.HasSuffix(overload, "check_allowed") || strings.HasPrefix(overload, "resourcecheck_") || strings.HasPrefix(overload, "groupcheck_") || strings.HasPrefix(overload, "pathcheck_")
}

// Every overload of every function is called. It returns the listed value and costs the same as in
// Kubernetes, alone and in a loop.
func TestLibrary(t *testing.T) {
	l := readLibrary(t)
	root, err := builder{}.root(l.props)
	if err != nil {
		t.Fatal(err)
	}
	node := root.self()
	c := &compiler{node: node, name: "selfType1"}
	env, err := c.env(true, false)
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, f := range env.Functions() {
		for _, o := range f.OverloadDecls() {
			if !unsaid(o.ID()) {
				missing[o.ID()] = true
			}
		}
	}
	for _, rule := range expressions(l.holds) {
		ast, issues := env.Compile(rule)
		if issues != nil {
			t.Errorf("%s: %v", rule, issues)
			continue
		}
		for _, ref := range ast.NativeRep().ReferenceMap() {
			for _, id := range ref.OverloadIDs {
				delete(missing, id)
			}
		}
		meterAgrees(t, node, l.object, rule)
		meterAgrees(t, node, l.object, `self.list.all(i, `+rule+`)`)
		p := withRule(t, l.props.DeepCopy(), "", apiextensionsv1.ValidationRule{Rule: rule})
		rules, err := New(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range rules.Validate(t.Context(), l.object, nil, Options{}) {
			t.Error(err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("nothing calls %s", id)
	}
	for _, rule := range expressions(l.fails) {
		meterAgrees(t, node, l.object, rule)
		meterAgrees(t, node, l.object, `self.list.exists(i, `+rule+`) || self.b`)
	}
	for _, rule := range expressions(l.refused) {
		if errs := refusals(withRule(t, l.props.DeepCopy(), "", apiextensionsv1.ValidationRule{Rule: rule})); len(errs) == 0 {
			t.Errorf("%s is accepted", rule)
		}
	}
}
