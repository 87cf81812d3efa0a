package compile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/celrule"
	"github.com/anykind/anykind/internal/schema/model"
)

// Compiled schemas and rules of an idle kind are dropped.
func TestIdleKindsAreDropped(t *testing.T) {
	props := &v1.JSONSchemaProps{Type: "object", XValidations: v1.ValidationRules{{Rule: "self.metadata.name != 'x'"}}}
	source := func() (*v1.JSONSchemaProps, error) { return props, nil }
	rules := celrule.Lazy(source, nil)
	compiled := schema.Lazy(source, model.Kind{})
	catalog := &resource.Catalog{}
	catalog.Swap(resource.NewSet([]*resource.Definition{resource.New(resource.Definition{
		Group: "example.com", Plural: "things",
		Versions: []*resource.Version{{Name: "v1", Storage: true, Schema: versionSchema{Schema: compiled, rules: rules}}},
	})}))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go DropIdle(ctx, catalog)
		use := func() {
			compiled.Default(map[string]any{})
			rules.Validate(ctx, map[string]any{"metadata": map[string]any{"name": "a"}}, nil, celrule.Options{})
		}
		use()
		for range 3 {
			time.Sleep(idleAfter)
			synctest.Wait()
			if !rules.Compiled() || !compiled.Compiled() {
				t.Error("dropped although it was used")
			}
			use()
		}
		time.Sleep(3 * idleAfter)
		synctest.Wait()
		if rules.Compiled() || compiled.Compiled() {
			t.Error("kept although it was not used")
		}
		cancel()
		synctest.Wait()
	})
}
