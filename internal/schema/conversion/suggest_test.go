package conversion_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/conversion"
	"github.com/anykind/anykind/internal/schema/conversion/conversiontest"
)

// The suggested rules for any two schemas compile, and are about all fields.
func TestSuggestedRulesCompile(t *testing.T) {
	for seed := range uint64(500) {
		c := conversiontest.Random(rand.New(rand.NewPCG(seed, 2)), 6)
		c.Rules = []any{}
		for _, s := range conversion.Suggest("example.org", c.Hub, c.Spoke) {
			c.Rules = append(c.Rules, s.Rule)
		}
		rules, err := conversion.Parse(c.Spec())
		if err != nil {
			t.Fatal(err)
		}
		_, report := conversion.Compile(rules, "example.org", c.Schemas(), field.NewPath("spec"))
		if len(report.Errors) > 0 || len(report.Unmapped) > 0 {
			hub, _ := json.Marshal(c.Hub)
			spoke, _ := json.Marshal(c.Spoke)
			t.Fatalf("seed %d: %v %v\n%s\n%s\n%s", seed, report.Errors, report.Unmapped, c.Spec(), hub, spoke)
		}
	}
}
