package envtest

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A transcript has no value that differs between runs.
func TestTranscriptIsStable(t *testing.T) {
	t.Parallel()
	const want = `admin create /api/v1/namespaces/default/configmaps 201 c-<1> {"data":{"url":"https://127.0.0.1:<port>","when":"<time>"}}
admin patch /api/v1/namespaces/default/configmaps/c-<1> 200 -data.url metadata.annotations={"a/b.c":"1"}
admin create /api/v1/namespaces/default/services 201 web {"spec":{"clusterIP":"<ip>","clusterIPs":["<ip>"],"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"port":80,"protocol":"TCP","targetPort":80}],"sessionAffinity":"None","type":"ClusterIP"},"status":{"loadBalancer":{}}}
admin update /api/v1/namespaces/default/configmaps/c-<1>?dryRun=All 200
admin deletecollection /api/v1/namespaces/default/configmaps 200 c-<1> deleted
admin create /api/v1/namespaces/default/configmaps none
`
	for range 2 {
		e := &Environment{}
		config := e.StartFor(t)
		c, ctx := clientOf(t, config), t.Context()
		transcript := e.Record(Requests{Verb: "write"})
		object := configMap("")
		object.GenerateName = "c-"
		object.Data = map[string]string{"when": metav1.Now().UTC().Format("2006-01-02T15:04:05Z07:00"), "url": config.Host[:len(config.Host)-1]}
		if err := c.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
		before := client.MergeFrom(object.DeepCopy())
		delete(object.Data, "url")
		object.Annotations = map[string]string{"a/b.c": "1"}
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		if err := errors.Join(
			c.Patch(ctx, object, before),
			c.Create(ctx, service),
			c.Update(ctx, object, client.DryRunAll),
			c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default")),
		); err != nil {
			t.Fatal(err)
		}
		e.Inject(Fault{Effect: HangUp()})
		_ = c.Create(ctx, configMap("never"))
		if got := transcript.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}
