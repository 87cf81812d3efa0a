package oracle

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/crd"
)

// A stored definition has the form of kube-apiserver's, and each server reads the other's definitions
// without a change.
func TestStoredDefinitions(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(apiextensionsv1beta1.SchemeGroupVersion)
	for _, crd := range definitions(t) {
		compareStored(t, codec, sent(t, crd))
	}
	for seed := range uint64(volume(*cases / 5)) {
		g := newGenerator(seed + 9e6)
		schemas := []*apiextensionsv1.JSONSchemaProps{g.root(), g.root()}
		if g.one(2) {
			schemas[1] = schemas[0].DeepCopy()
		}
		d := versions(schemas)
		if g.one(3) {
			d.Spec.Versions = d.Spec.Versions[:1]
		}
		dress(g, d)
		if compareStored(t, codec, sent(t, d)); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// dress adds other fields than the schema to versions, equal ones or different ones.
func dress(g generator, d *apiextensionsv1.CustomResourceDefinition) {
	d.Spec.PreserveUnknownFields = g.one(4)
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if g.one(2) {
			v.AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: pick(g, "A", "B"), Type: "string", JSONPath: ".spec"}}
		}
		if g.one(2) {
			v.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}
		if g.one(2) {
			v.SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: pick(g, ".spec.a", ".spec.b")}}
		}
	}
	if g.one(2) {
		url := "https://example.com/convert"
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: []byte("x")},
				ConversionReviewVersions: []string{"v1", "v1beta1"},
			},
		}
	}
}

func compareStored(t *testing.T, codec runtime.Codec, d *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	d.APIVersion, d.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&d.Spec)
	theirs, err := runtime.Encode(codec, convertedDefinition(t, d))
	if err != nil {
		t.Fatal(err)
	}
	v1 := object.AppendJSON(nil, treeOf(t, d))
	ours, err := crd.ToBeta(v1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed(t, theirs), parsed(t, ours)); diff != "" {
		t.Errorf("%s (-upstream +ours):\n%s", d.Name, diff)
	}
	for _, stored := range [][]byte{theirs, ours} {
		back, err := crd.FromBeta(stored)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parsed(t, v1), parsed(t, back)); diff != "" {
			t.Errorf("%s is not read as it was (-was +is):\n%s", d.Name, diff)
		}
	}
}

func parsed(t *testing.T, data []byte) (out any) {
	t.Helper()
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return out
}
