package console

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	shopPods        = "/api/v1/namespaces/shop/pods"
	shopConfigMaps  = "/api/v1/namespaces/shop/configmaps"
	shopSecrets     = "/api/v1/namespaces/shop/secrets"
	shopDeployments = "/apis/apps/v1/namespaces/shop/deployments"
	shopDatabases   = "/apis/example.com/v1/namespaces/shop/databases"
	rbacGroup       = "/apis/rbac.authorization.k8s.io/v1"
)

// databases is the kind of a controller that has owners of all its parts.
const databases = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"databases.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
	"names":{"plural":"databases","singular":"database","kind":"Database","shortNames":["db"]},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
	"properties":{"size":{"type":"integer","minimum":1,"maximum":1000,"description":"Gigabytes of the volume. It cannot shrink."},"host":{"type":"string"}}}}}}}]}}`

// shop fills a server with the objects of the questions: a Deployment that is not ready, its dependents, a custom resource
// with parts, a namespace that is held by a finalizer, and n ConfigMaps in a namespace at the end of the alphabet. The
// statuses are written here, since no controller runs.
func shop(t *testing.T, f *Fixture, n int) {
	t.Helper()
	for _, ns := range []string{"shop", "old", "zoo"} {
		f.Create(t, "/api/v1/namespaces", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, ns))
	}
	all(t, n, func(ctx context.Context, i int) error {
		return f.create(ctx, "/api/v1/namespaces/zoo/configmaps", rawJSON(configMap(fmt.Sprintf("animal-%05d", i), "x")))
	})
	startKubelet(t, f)
	f.Patch(t, "/api/v1/nodes/node/status", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	workloads(t, f)
	parts(t, f)
	rights(t, f)
	f.Create(t, "/api/v1/namespaces/old/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"rest","finalizers":["example.com/hold"]}}`)
	if err := f.Do(t.Context(), http.MethodDelete, "/api/v1/namespaces/old", nil, nil); err != nil {
		t.Fatal(err)
	}
}

// workloads creates two Deployments: web is not ready, and api is.
func workloads(t *testing.T, f *Fixture) {
	t.Helper()
	deployment := func(name, image string, replicas int, settings string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%[1]q,"labels":{"app":%[1]q}},"spec":{"replicas":%[3]d,"selector":{"matchLabels":{"app":%[1]q}},
			"template":{"metadata":{"labels":{"app":%[1]q}},"spec":{"containers":[{"name":"main","image":%[2]q,"envFrom":[{"configMapRef":{"name":%[4]q}}]}]}}}}`, name, image, replicas, settings)
	}
	f.Create(t, shopConfigMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"level":"info"}}`)
	f.Create(t, shopDeployments+"?fieldManager=helm", deployment("web", "registry.example/web:1.27", 3, "web-settings"), deployment("api", "registry.example/api:2.4", 1, "settings"))
	f.as(t, "bob", http.MethodPatch, shopDeployments+"/web?fieldManager=autoscaler", `{"spec":{"replicas":5}}`)
	f.Patch(t, shopDeployments+"/web/status?fieldManager=deployment-controller", `{"status":{"observedGeneration":2,"replicas":5,"updatedReplicas":5,"unavailableReplicas":5,"conditions":[{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable",
		"message":"Deployment does not have minimum availability.","lastTransitionTime":"2026-11-28T08:00:00Z","lastUpdateTime":"2026-11-28T08:00:00Z"}]}}`)
	f.Patch(t, shopDeployments+"/api/status?fieldManager=deployment-controller", `{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable",
		"message":"Deployment has minimum availability.","lastTransitionTime":"2026-11-28T08:00:00Z","lastUpdateTime":"2026-11-28T08:00:00Z"}]}}`)
	f.Create(t, "/api/v1/namespaces/shop/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"checkout"},"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}`)
	for _, d := range []struct{ name, image, settings, status string }{
		{"web", "registry.example/web:1.27", "web-settings", `{"phase":"Pending","conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady","message":"containers with unready status: [main]"}],"containerStatuses":[{"name":"main","image":"i","imageID":"","ready":false,"restartCount":7,
			"state":{"waiting":{"reason":"CreateContainerConfigError","message":"configmap \"web-settings\" not found"}}}]}`},
		{"api", "registry.example/api:2.4", "settings", `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"main","image":"i","imageID":"","ready":true,"restartCount":0,"started":true,"state":{"running":{"startedAt":"2026-11-28T08:00:00Z"}}}]}`},
	} {
		set := d.name + "-7c5"
		f.Create(t, "/apis/apps/v1/namespaces/shop/replicasets", fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":%[1]q,"labels":{"app":%[2]q},%[3]s},"spec":{"replicas":1,"selector":{"matchLabels":{"app":%[2]q}},
			"template":{"metadata":{"labels":{"app":%[2]q}},"spec":{"containers":[{"name":"main","image":%[4]q}]}}}}`, set, d.name, owned(t, f, "apps/v1", "Deployment", d.name, shopDeployments), d.image))
		f.Patch(t, "/apis/apps/v1/namespaces/shop/replicasets/"+set+"/status", `{"status":{"observedGeneration":1,"replicas":1}}`)
		f.Create(t, shopPods, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%[1]s-x","labels":{"app":%[2]q},%[3]s},"spec":{"nodeName":"node","automountServiceAccountToken":false,
			"containers":[{"name":"main","image":%[4]q,"envFrom":[{"configMapRef":{"name":%[5]q}}]}]}}`, set, d.name, owned(t, f, "apps/v1", "ReplicaSet", set, "/apis/apps/v1/namespaces/shop/replicasets"), d.image, d.settings))
		f.Patch(t, shopPods+"/"+set+"-x/status", `{"status":`+d.status+`}`)
	}
	f.Create(t, "/api/v1/namespaces/shop/events", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"type":"Warning","reason":"Failed","message":"Error: configmap \"web-settings\" not found","count":3,"source":{"component":"kubelet"},
		"involvedObject":{"apiVersion":"v1","kind":"Pod","name":"web-7c5-x","namespace":"shop","uid":"`+f.UID(t, shopPods+"/web-7c5-x")+`"},"firstTimestamp":"2026-11-28T08:00:00Z","lastTimestamp":"2026-11-28T08:00:00Z"}`)
}

// owned returns the reference to an owner.
func owned(t *testing.T, f *Fixture, version, kind, name, path string) string {
	t.Helper()
	return fmt.Sprintf(`"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true}]`, version, kind, name, f.UID(t, path+"/"+name))
}

// parts creates a Database with its parts, a Secret, and a ConfigMap that bob changes and deletes.
func parts(t *testing.T, f *Fixture) {
	t.Helper()
	f.Create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", databases)
	f.Create(t, shopDatabases, `{"apiVersion":"example.com/v1","kind":"Database","metadata":{"name":"orders"},"spec":{"size":40,"host":"db-17.example.net"}}`)
	owner := owned(t, f, "example.com/v1", "Database", "orders", shopDatabases)
	f.Create(t, shopConfigMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"orders-tuning",`+owner+`}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"beta":"enabled-for-all"}}`)
	f.Create(t, shopSecrets, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"orders-login",`+owner+`},"stringData":{"password":"swordfish"}}`)
	f.as(t, "bob", http.MethodDelete, shopConfigMaps+"/flags", "")
}

// rights creates the bindings of two users: bob changes objects, and jane may delete Secrets. A webhook sees Pods.
func rights(t *testing.T, f *Fixture) {
	t.Helper()
	f.Create(t, rbacGroup+"/clusterroles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"secret-keeper"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get","delete"]}]}`)
	f.Create(t, rbacGroup+"/clusterrolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"keepers"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"secret-keeper"},"subjects":[{"kind":"User","name":"jane","apiGroup":"rbac.authorization.k8s.io"}]}`)
	f.Create(t, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"image-policy"},"webhooks":[{"name":"images.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
		"failurePolicy":"Ignore","clientConfig":{"url":"https://127.0.0.1:1/"},"objectSelector":{"matchLabels":{"reviewed":"never"}},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]}]}`)
}

// as sends a request as another user, with the rights of a cluster-admin.
func (f *Fixture) as(t *testing.T, user, method, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Impersonate-User", user)
	r.Header.Set("Impersonate-Group", "system:masters")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := f.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, path, answer.Status)
	}
}

// secondContext adds a context of the same server to the kubeconfig.
func secondContext(t *testing.T, f *Fixture) {
	t.Helper()
	data, err := os.ReadFile(f.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		APIVersion     string `json:"apiVersion"`
		Kind           string `json:"kind"`
		CurrentContext string `json:"current-context"`
		Clusters       []any  `json:"clusters"`
		Users          []any  `json:"users"`
		Contexts       []struct {
			Name    string         `json:"name"`
			Context map[string]any `json:"context"`
		} `json:"contexts"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	second := config.Contexts[0]
	second.Name = "spare"
	config.Contexts = append(config.Contexts, second)
	if data, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Kubeconfig, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
