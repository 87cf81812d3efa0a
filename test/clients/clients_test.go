package clients

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind"
)

// waitTimeout limits each wait. It is far longer than any step takes, so only an event that never happens
// fails.
const waitTimeout = 60 * time.Second

// start runs a server for one test and returns a config for it. dir may be "".
func start(t *testing.T, dir, address string) (*anykind.Server, *rest.Config) {
	t.Helper()
	server, err := anykind.Start(t.Context(), anykind.Options{Dir: dir, Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.RESTConfigFromKubeConfig(server.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 10000, 10000
	return server, config
}

// within returns a context for the steps of a test, with waitTimeout as its limit.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	t.Cleanup(cancel)
	return ctx
}

// receive returns the next value, and fails without one.
func receive[T any](ctx context.Context, t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			t.Fatalf("%s: the channel was closed", what)
		}
		return v
	case <-ctx.Done():
		t.Fatalf("%s: did not come", what)
		panic("not reached")
	}
}

// gadgets is the custom resource of these tests, with a desired and an actual size.
var gadgets = schema.GroupVersionResource{Group: "clients.example.com", Version: "v1", Resource: "gadgets"}

var gadgetKind = gadgets.GroupVersion().WithKind("Gadget")

func gadgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	size := apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: gadgets.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gadgets.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": size, "status": size},
				}},
			}},
		},
	}
}

// define creates the definition of gadgets.
func define(ctx context.Context, t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, gadgetDefinition(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func gadget(name string, size int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	u.SetGroupVersionKind(gadgetKind)
	u.SetName(name)
	return u
}

func sizeIn(part string, u *unstructured.Unstructured) int64 {
	size, _, _ := unstructured.NestedInt64(u.Object, part, "size")
	return size
}

// text formats a value for a message.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
