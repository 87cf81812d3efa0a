package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Defaults of a minimal template.
func TestDefaultsOfContainers(t *testing.T) {
	template := templateOf(t, "", `
containers:
- name: c
  image: a
  ports: [{containerPort: 80}]
  env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  resources: {limits: {cpu: 100u}}
  livenessProbe: {httpGet: {port: 80}}
initContainers: [{name: i, image: "a:1", imagePullPolicy: Never, terminationMessagePolicy: FallbackToLogsOnError}]
ephemeralContainers: [{name: e, image: "a:1"}]
`)
	for _, test := range []struct {
		got  any
		want string
	}{
		{template.Spec.Containers[0], `
env:
- name: A
  valueFrom:
    fieldRef:
      apiVersion: v1
      fieldPath: metadata.name
image: a
imagePullPolicy: Always
livenessProbe:
  failureThreshold: 3
  httpGet:
    path: /
    port: 80
    scheme: HTTP
  periodSeconds: 10
  successThreshold: 1
  timeoutSeconds: 1
name: c
ports:
- containerPort: 80
  protocol: TCP
resources:
  limits:
    cpu: 1m
terminationMessagePath: /dev/termination-log
terminationMessagePolicy: File
`},
		{template.Spec.InitContainers[0], `
image: a:1
imagePullPolicy: Never
name: i
resources: {}
terminationMessagePath: /dev/termination-log
terminationMessagePolicy: FallbackToLogsOnError
`},
		{template.Spec.EphemeralContainers[0].ImagePullPolicy, "IfNotPresent\n"},
		{template.Spec.EphemeralContainers[0].TerminationMessagePolicy, string(corev1.TerminationMessageReadFile) + "\n"},
	} {
		text, err := yaml.Marshal(test.got)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(text); got != test.want && "\n"+got != test.want {
			t.Errorf("container\n%s\nwant\n%s", got, test.want)
		}
	}
}
