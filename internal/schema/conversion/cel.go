package conversion

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/celprogram"
)

type celParams struct {
	HubPaths   []string `json:"hubPaths"`
	SpokePaths []string `json:"spokePaths"`
	HubToSpoke string   `json:"hubToSpoke"`
	SpokeToHub string   `json:"spokeToHub"`
}

// expressions computes fields in CEL.
func expressions(c *compiler, p *celParams) {
	c.unproven(false)
	paths := map[*side][]path{}
	ok := true
	for _, d := range []struct {
		side  *side
		name  string
		texts []string
	}{{&c.hub, "hubPaths", p.HubPaths}, {&c.spoke, "spokePaths", p.SpokePaths}} {
		if len(d.texts) == 0 {
			c.invalid(d.name, "", "are the fields that the expressions are about")
			ok = false
		}
		for _, text := range d.texts {
			at, _ := c.claim(d.side, d.name, text)
			paths[d.side] = append(paths[d.side], at)
			ok = ok && at != nil
		}
	}
	for _, d := range []struct {
		side       *side
		name, text string
	}{{&c.hub, "hubToSpoke", p.HubToSpoke}, {&c.spoke, "spokeToHub", p.SpokeToHub}} {
		program, err := compileCEL(d.text)
		if err != nil {
			c.invalid(d.name, d.text, "%v", err)
			ok = false
		}
		if !ok {
			continue
		}
		to, at := paths[d.side.other], c.rule.at.Child(d.name)
		d.side.step(step{from: d.side.taking(paths[d.side]...), to: d.side.writing(to...), eval: func(in object.Tree, w *writes) error {
			out, err := evalCEL(w.ctx, program, in)
			if err != nil {
				return field.Invalid(to[0].field(), nil, fmt.Sprintf("%s cannot be evaluated: %v", at, err))
			}
			for _, p := range to {
				v, ok := p.get(out)
				if !ok {
					v, ok = out[p.String()]
				}
				if ok {
					w.set(p, v)
				}
			}
			return nil
		}})
	}
}

// language is that of expressions: the variable object, and the functions of Kubernetes.
var language = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 37)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: []cel.EnvOption{cel.Variable("object", cel.DynType)},
	})
	if err != nil {
		return nil, err
	}
	return set.StoredExpressionsEnv(), nil
})

func compileCEL(text string) (*celprogram.Program, error) {
	env, err := language()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if t := ast.OutputType(); t.Kind() != cel.MapKind && t.Kind() != cel.DynKind {
		return nil, fmt.Errorf("must be a map of fields, not of the type %s", t)
	}
	l, err := celprogram.NewLanguage(env)
	if err != nil {
		return nil, err
	}
	return l.Program(env, ast)
}

// objectVariable resolves the variable object.
type objectVariable struct{ object object.Tree }

func (o objectVariable) ResolveName(name string) (any, bool) { return o.object, name == "object" }

// evalCEL returns the map that is the result of an expression.
func evalCEL(ctx context.Context, p *celprogram.Program, in object.Tree) (object.Tree, error) {
	value, _, err := p.Eval(&celprogram.Scope{Meter: &celprogram.Meter{Context: ctx}, Variables: objectVariable{in}})
	if err != nil {
		return nil, err
	}
	out, err := plain(value)
	if err != nil {
		return nil, err
	}
	t, ok := out.(object.Tree)
	if !ok {
		return nil, fmt.Errorf("the result must be a map, not of the type %s", value.Type())
	}
	return t, nil
}

// plain returns the tree of a value.
func plain(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Double:
		return float64(v), nil
	case types.String:
		return string(v), nil
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			e, err := plain(it.Next())
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
		return out, nil
	case traits.Mapper:
		out := object.Tree{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name, ok := key.(types.String)
			if !ok {
				return nil, fmt.Errorf("the keys of the result must be strings, not %s", key.Type())
			}
			e, err := plain(v.Get(key))
			if err != nil {
				return nil, err
			}
			out[string(name)] = e
		}
		return out, nil
	}
	return nil, fmt.Errorf("the result has a value of the type %s, which is no JSON", v.Type())
}
