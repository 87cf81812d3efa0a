package nodes_test

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/object"
)

// The node of a pod requests a certificate for it. All fields of the request must match the stored
// pod.
func TestPodCertificates(t *testing.T) {
	w := restricted(t)
	node := w.User
	w.User = nil
	made := map[string]object.Tree{}
	for name, text := range map[string]string{
		"account": `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}`,
		"node":    `{apiVersion: v1, kind: Node, metadata: {name: n3}}`,
		"pod": `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {serviceAccountName: a, nodeName: n3, containers: [{name: c, image: i}],
			volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: example.com/s, keyType: ED25519, credentialBundlePath: b}}]}}]}}`,
		"mirror":  `{apiVersion: v1, kind: Pod, metadata: {name: m, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n3, containers: [{name: c, image: i}]}}`,
		"another": `{apiVersion: v1, kind: Pod, metadata: {name: o}, spec: {nodeName: n4, containers: [{name: c, image: i}]}}`,
	} {
		var err error
		if made[name], err = w.Create(text); err != nil {
			t.Fatal(name, err)
		}
	}
	uid := func(name string) string { return admissiontest.Field(made[name], "metadata.uid") }
	asks := map[string]string{
		"podName": "p", "podUID": uid("pod"), "serviceAccountName": "a", "serviceAccountUID": uid("account"),
		"nodeName": "n3", "nodeUID": uid("node"), "signerName": "example.com/s",
	}
	const forbidden = `podcertificaterequests.certificates.k8s.io "r" is forbidden: `
	tests := []struct {
		name   string
		change map[string]string
		want   string // prefix of the error
	}{
		{"as it is", nil, `PodCertificateRequest.certificates.k8s.io "r" is invalid: `}, // it has no key: admission allows it
		{"another node", map[string]string{"nodeName": "n1"}, forbidden + `PodCertificateRequest.Spec.NodeName="n1", which is not the requesting node "n3"`},
		{"a node that was there before", map[string]string{"nodeUID": "old"}, `PodCertificateRequest for pod "dev/p" names node UID "old", inconsistent with the running node (`},
		{"no such pod", map[string]string{"podName": "none"}, `while retrieving pod "dev/none" named in the PodCertificateRequest: pod "none" not found`},
		{"a pod that was there before", map[string]string{"podUID": "old"}, `PodCertificateRequest for pod "dev/p" contains pod UID ("old") which differs from running pod `},
		{"a pod elsewhere", map[string]string{"podName": "o", "podUID": uid("another")}, forbidden + `pod "dev/o" is not running on node "n3" named in the PodCertificateRequest`},
		{"a mirror", map[string]string{"podName": "m", "podUID": uid("mirror")}, forbidden + `pod "dev/m" is a mirror pod`},
		{"another account", map[string]string{"serviceAccountName": "b"}, forbidden + `PodCertificateRequest for pod "dev/p" contains serviceAccountName ("b") that differs from running pod ("a")`},
		{"an account that was there before", map[string]string{"serviceAccountUID": "old"}, `PodCertificateRequest for pod "dev/p" names service account UID "old", which differs from the running service account (`},
		{"another signer", map[string]string{"signerName": "example.com/t"}, forbidden + `pod "dev/p" does not mount a podCertificate projected volume for signer "example.com/t"`},
	}
	node.Name = "system:node:n3"
	w.User = node
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var spec []string
			for field, value := range asks {
				if changed, ok := test.change[field]; ok {
					value = changed
				}
				spec = append(spec, field+": "+value)
			}
			_, err := w.Create("{apiVersion: certificates.k8s.io/v1beta1, kind: PodCertificateRequest, metadata: {name: r}, spec: {" + strings.Join(spec, ", ") + "}}")
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v\nwant\n%s", err, test.want)
			}
		})
	}
}
