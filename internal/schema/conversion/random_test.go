package conversion_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/conversion"
	"github.com/anykind/anykind/internal/schema/conversion/conversiontest"
)

var cases = flag.Int("cases", 1000, "number of random rules")

// Random rules fit the schemas that they were made for. Objects of both versions go to the other one and
// back. A lossless rule loses nothing.
func TestRandomRulesKeepAllValues(t *testing.T) {
	converted, refused := 0, 0
	for seed := range uint64(*cases) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := conversiontest.Random(r, 6)
		rules, err := conversion.Parse(c.Spec())
		if err != nil {
			t.Fatal(err)
		}
		converter, report := conversion.Compile(rules, "example.org", c.Schemas(), field.NewPath("spec"))
		if len(report.Errors) > 0 || len(report.Unmapped) > 0 {
			t.Fatalf("seed %d: %v %v\n%s", seed, report.Errors, report.Unmapped, c.Spec())
		}
		s := conversion.Sampler{Rand: r}
		for from, schema := range c.Schemas() {
			to := map[string]string{"v1": "v2", "v2": "v1"}[from]
			in := s.Object("example.org/"+from, "Widget", schema)
			back, err := converter.RoundTrip(context.Background(), in, to)
			var invalid *field.Error
			switch {
			case errors.As(err, &invalid):
				refused++
			case err != nil:
				t.Fatalf("seed %d: %v\n%s\n%s", seed, err, c.Spec(), show(in))
			default:
				converted++
				keeps := report.Pairs[0].ToHub
				if from == "v2" {
					keeps = report.Pairs[0].ToSpoke
				}
				if at, was, is := conversion.Lost(in, back); at != "" && keeps && c.Lossless {
					t.Fatalf("seed %d: %s: %v became %v\n%s\n%s\n%s", seed, at, was, is, c.Spec(), show(in), show(back))
				}
			}
		}
	}
	if converted < *cases/2 {
		t.Errorf("only %d of %d objects were converted, %d had values that the rules refuse", converted, 2**cases, refused)
	}
}

func show(t object.Tree) string {
	data, _ := json.Marshal(t)
	return string(data)
}
