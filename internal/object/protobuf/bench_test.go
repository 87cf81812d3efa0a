package protobuf_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object/protobuf"
)

// pod is a stored Pod of typical size.
const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"kubernetes.io/config.seen":"2026-01-02T03:04:05Z"},"creationTimestamp":"2026-01-02T03:04:05Z","generation":1,` +
	`"labels":{"app":"web","pod-template-hash":"7d9c7c9d4f"},"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},` +
	`"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}},"manager":"kubectl","operation":"Update","time":"2026-01-02T03:04:05Z"}],` +
	`"name":"web-7d9c7c9d4f-x7x2p","namespace":"default","ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"web-7d9c7c9d4f","uid":"3f0c8d3e-0a9f-4b8e-9a53-0f2b6b8e9d11"}],` +
	`"resourceVersion":"4711","uid":"8b2d8a3c-6b0e-4a56-8a8e-8f5f6f0f7c22"},"spec":{"containers":[{"args":["--port=8080","--verbose"],"env":[{"name":"A","value":"1"},{"name":"POD","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],` +
	`"image":"registry.example.com/web:1.2.3","imagePullPolicy":"IfNotPresent","livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"name":"web",` +
	`"ports":[{"containerPort":8080,"name":"http","protocol":"TCP"}],"resources":{"limits":{"cpu":"500m","memory":"128Mi"},"requests":{"cpu":"250m","memory":"64Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",` +
	`"volumeMounts":[{"mountPath":"/etc/web","name":"config","readOnly":true},{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access","readOnly":true}]}],"dnsPolicy":"ClusterFirst","enableServiceLinks":true,` +
	`"nodeName":"node-1","preemptionPolicy":"PreemptLowerPriority","priority":0,"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"serviceAccount":"default","serviceAccountName":"default","terminationGracePeriodSeconds":30,` +
	`"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300}],"volumes":[{"configMap":{"defaultMode":420,"name":"web"},"name":"config"},` +
	`{"name":"kube-api-access","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}}]}}]},` +
	`"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z","status":"True","type":"Ready"}],"hostIP":"10.0.0.1","phase":"Running","podIP":"10.1.0.7","podIPs":[{"ip":"10.1.0.7"}],"qosClass":"Burstable","startTime":"2026-01-02T03:04:05Z"}}`

func BenchmarkPod(b *testing.B) {
	var served protobuf.Types
	doc, typ := []byte(pod), reflect.TypeFor[corev1.Pod]()
	for name, write := range map[string]func() ([]byte, error){
		"Append":      func() ([]byte, error) { return served.Append(nil, typ, doc) },
		"of the type": func() ([]byte, error) { return marshal(typ, doc) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := write(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
