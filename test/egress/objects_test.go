package egress

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
)

// apply creates the objects of YAML documents. The name of a resource is the kind in lower case, with
// an s.
func (a *api) apply(documents string) {
	a.Helper()
	for doc := range strings.SplitSeq(documents, "\n---\n") {
		o := &unstructured.Unstructured{}
		must(a.T, yaml.Unmarshal([]byte(doc), &o.Object))
		gvk := o.GroupVersionKind()
		r := a.objects.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"})
		create := r.Create
		if n := o.GetNamespace(); n != "" {
			create = r.Namespace(n).Create
		}
		if _, err := create(a.Context(), o, metav1.CreateOptions{}); err != nil {
			a.Fatalf("%s %s: %v", gvk.Kind, o.GetName(), err)
		}
	}
}

// ask creates a ConfigMap that a webhook reviews, with a dry run.
func (a *api) ask(webhook string) error {
	_, err := a.client.CoreV1().ConfigMaps("default").Create(a.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "asked-", Labels: map[string]string{"ask": webhook}}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// logs reads the log of the one pod.
func (a *api) logs() error {
	return a.page("/api/v1/namespaces/default/pods/logged/log", "a line of a log\n")
}

// podProxy gets a page of the one pod, where no server runs.
func (a *api) podProxy() error {
	return a.page("/api/v1/namespaces/default/pods/logged:80/proxy/", "")
}

// page gets a path, without a retry. An error has the whole body of the response.
func (a *api) page(path, want string) error {
	answer, err := a.http.Get(a.config.Host + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if got := string(body); err == nil && (answer.StatusCode != http.StatusOK || got != want) {
		return fmt.Errorf("%s: %s", answer.Status, got)
	}
	return err
}

// convert creates an object, and reads it in another version, which takes the conversion webhook.
func (a *api) convert(name string) error {
	widgets := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "widgets"}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}}}
	if _, err := a.objects.Resource(widgets("v1")).Namespace("default").Create(a.Context(), o, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := a.objects.Resource(widgets("v2")).Namespace("default").Get(a.Context(), name, metav1.GetOptions{})
	return err
}

// webhook returns a webhook configuration with a Service or a URL.
func webhook(name, at string, authority []byte) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: %[1]s.example.com
  clientConfig: {%[2]s, caBundle: %[3]s}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  objectSelector: {matchLabels: {ask: %[1]s}}
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 2`, name, at, base64.StdEncoding.EncodeToString(authority))
}

// behind returns a Service of type ExternalName, and a webhook with that Service.
func behind(name, host, port string, authority []byte) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: default}\nspec: {type: ExternalName, externalName: %s}\n---\n", name, host) +
		webhook(name, fmt.Sprintf("service: {namespace: default, name: %s, port: %s}", name, port), authority)
}

// elsewhere returns an APIService with the Service hook.
func elsewhere(port string, authority []byte) string {
	return fmt.Sprintf(`apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.elsewhere.example.com}
spec: {group: elsewhere.example.com, version: v1, groupPriorityMinimum: 1000, versionPriority: 10, service: {namespace: default, name: hook, port: %s}, caBundle: %s}`,
		port, base64.StdEncoding.EncodeToString(authority))
}

// aggregated gets a page of the aggregated API server.
func (a *api) aggregated() error {
	return a.page("/apis/elsewhere.example.com/v1/things", "a line of a log\n")
}

// populate creates the targets of the tests, at names of a domain: webhooks of every kind, and a pod
// with a kubelet.
func (a *api) populate(h *hook, authority []byte, closed, domain string) {
	a.Helper()
	host := "hook." + domain
	a.apply(strings.Join([]string{
		behind("closed", host, closed, authority),
		behind("missing", "missing.example.test", h.port, authority),
		webhook("url", fmt.Sprintf("url: 'https://%s:%s/'", host, h.port), authority),
		behind("hook", host, h.port, authority),
		fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: default, name: hook, port: %s}, caBundle: %s}}`,
			h.port, base64.StdEncoding.EncodeToString(authority)),
		`apiVersion: v1
kind: Node
metadata: {name: node}`,
		`apiVersion: v1
kind: Pod
metadata: {name: logged, namespace: default}
spec: {nodeName: node, automountServiceAccountToken: false, containers: [{name: c, image: i}]}`,
	}, "\n---\n"))
	a.status("nodes", "", "node", fmt.Sprintf(`{"status":{"addresses":[{"type":"Hostname","address":"kubelet.%s"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%s}}}}`, domain, h.port))
	a.status("pods", "default", "logged", `{"status":{"phase":"Running","podIP":"192.0.2.10","podIPs":[{"ip":"192.0.2.10"}]}}`)
}

func (a *api) status(resource, namespace, name, patch string) {
	a.Helper()
	err := a.client.CoreV1().RESTClient().Patch(types.MergePatchType).Resource(resource).NamespaceIfScoped(namespace, namespace != "").
		Name(name).SubResource("status").Body([]byte(patch)).Do(context.WithoutCancel(a.Context())).Error()
	must(a.T, err)
}

// user returns an error if the server does not authenticate a token.
func (a *api) user(token string) error {
	config := *a.config
	config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData, config.TLSClientConfig.CertFile, config.TLSClientConfig.KeyFile = nil, nil, "", ""
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(&config)
	if err != nil {
		return err
	}
	is, err := client.AuthenticationV1().SelfSubjectReviews().Create(a.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err == nil && is.Status.UserInfo.Username != "behind-the-tunnel" {
		return fmt.Errorf("it is that of %s", is.Status.UserInfo.Username)
	}
	return err
}
