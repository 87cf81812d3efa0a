// Package etcd is added to the published list of objects of every kind: it creates the
// CustomResourceDefinitions of that list.
package etcd

import (
	"context"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclientset "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// CreateTestCRDs creates definitions, and waits until they are served.
func CreateTestCRDs(t *testing.T, client apiextensionsclientset.Interface, _ bool, definitions ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	all := client.ApiextensionsV1().CustomResourceDefinitions()
	for _, d := range definitions {
		if _, err := all.Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		for _, v := range d.Spec.Versions {
			if !v.Served {
				continue
			}
			var unserved error
			err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
				list, err := client.Discovery().ServerResourcesForGroupVersion(d.Spec.Group + "/" + v.Name)
				if unserved = err; err != nil {
					return false, nil // not yet
				}
				for _, r := range list.APIResources {
					if r.Name == d.Spec.Names.Plural {
						return true, nil
					}
				}
				return false, nil
			})
			if err != nil {
				t.Fatalf("%s is not served: %v, %v", d.Name, err, unserved)
			}
		}
	}
}
