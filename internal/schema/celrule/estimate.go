package celrule

import (
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/library"
)

// An estimate is the estimated cost of one evaluation of an expression.
type estimate struct {
	most uint64
	// seen are the places without a limit that count.
	seen []unlimitedPlace
	// with returns the estimate if they had a limit.
	with func(limit int64) uint64
}

// An unlimitedPlace is a node and the steps to it.
type unlimitedPlace struct {
	node  *node
	steps []string
}

func newEstimate(env *cel.Env, ast *cel.Ast, root *node) (*estimate, error) {
	s := &sizes{root: root, record: true}
	cost, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: s})
	if err != nil {
		return nil, err
	}
	return &estimate{most: cost.Max, seen: s.seen, with: func(limit int64) uint64 {
		cost, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: &sizes{root: root, limit: limit}})
		if err != nil {
			return math.MaxUint64
		}
		return cost.Max
	}}, nil
}

// sizes estimates the sizes of the values in an expression.
type sizes struct {
	root *node
	// limit applies to values without a limit; 0 for none.
	limit int64
	// record collects the values without a limit.
	record bool
	seen   []unlimitedPlace
}

// EstimateSize estimates the size of a value with a path from self.
func (s *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	if len(path) == 0 {
		return nil
	}
	n := s.root
	for i, step := range path[1:] {
		switch step {
		case "@keys":
			if n.kind != objectKind || n.additional == nil || i != len(path)-2 {
				return nil
			}
			return &checker.SizeEstimate{}
		case "@items", "@values":
			n = n.element()
		default:
			n = n.declared(step)
		}
		if n == nil {
			return nil
		}
		n = n.seen()
	}
	size := n.size
	if n.unlimited != "" {
		if s.limit > 0 {
			size = n.limited(s.limit)
		}
		s.remember(n, path[1:])
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(size)}
}

func (s *sizes) remember(n *node, steps []string) {
	if !s.record {
		return
	}
	for _, p := range s.seen {
		if p.node == n {
			return
		}
	}
	s.seen = append(s.seen, unlimitedPlace{n, steps})
}

// EstimateCallCost leaves calls to the library.
func (*sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// A Bound is a keyword that a schema lacks.
type Bound struct {
	// Path of the schema.
	Path *field.Path
	// Keyword is maxItems, maxProperties or maxLength.
	Keyword string
	// Value that would be enough, if all bounds of an Estimate are set.
	Value int64
}

// niceBounds are the possible values of a Bound, the largest first.
var niceBounds = []int64{
	100_000, 50_000, 32_768, 16_384, 10_000, 8192, 5000, 4096, 2048, 2000, 1024, 1000, 512, 500, 256, 250, 200, 128, 100,
	64, 50, 40, 32, 25, 20, 16, 12, 10, 8, 6, 5, 4, 3, 2, 1,
}

// Bounds returns the bounds that are missing and with which the cost would be at
// most limit. It returns none if none are missing, or no bound would be enough.
func (e *Estimate) Bounds(limit uint64) []Bound {
	if e.one == nil || len(e.open)+len(e.one.seen) == 0 {
		return nil
	}
	for _, value := range niceBounds {
		cost := multiply(e.one.with(value), e.known)
		for range e.open {
			cost = multiply(cost, uint64(value))
		}
		if cost > limit {
			continue
		}
		var out []Bound
		for _, b := range e.open {
			out = append(out, Bound{b.Path, b.Keyword, value})
		}
		for _, p := range e.one.seen {
			out = append(out, Bound{p.path(e.root, e.at), p.node.unlimited, value})
		}
		return out
	}
	return nil
}

// path returns the path of the schema of the place, given root and its path at.
func (p unlimitedPlace) path(root *node, at *field.Path) *field.Path {
	n := root
	for _, step := range p.steps {
		switch {
		case step == "@items" || step == "@values":
			if n.kind == listKind {
				at = at.Child("items")
			} else {
				at = at.Child("additionalProperties")
			}
			n = n.element()
		default:
			at = at.Child("properties").Key(n.fields[step].name)
			n = n.declared(step)
		}
		n = n.seen()
	}
	return at
}
