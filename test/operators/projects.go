package operators

// Projects are the projects whose manifests are applied.
var Projects = []*Project{
	{Name: "argo-cd", Module: "github.com/argoproj/argo-cd/v3", Namespace: "argocd", Parts: []Part{
		{Path: "manifests/install.yaml", Render: files}}},
	{Name: "argo-rollouts", Module: "github.com/argoproj/argo-rollouts", Namespace: "argo-rollouts", Parts: []Part{
		{Path: "manifests/install.yaml", Render: files}}},
	{Name: "cert-manager", Module: "github.com/cert-manager/cert-manager", Namespace: "cert-manager", Parts: []Part{
		{Path: "deploy/crds", Render: files},
		{Path: "deploy/charts/cert-manager", Render: chart(nil)}}},
	{Name: "cluster-api", Module: "sigs.k8s.io/cluster-api", Needs: []string{"cert-manager"}, Parts: []Part{
		{Path: "core/config/default", Render: kustomized},
		{Path: "bootstrap/kubeadm/config/default", Render: kustomized},
		{Path: "controlplane/kubeadm/config/default", Render: kustomized}}},
	{Name: "contour", Module: "github.com/projectcontour/contour", Parts: []Part{
		{Path: "examples/render/contour.yaml", Render: files}}},
	{Name: "descheduler", Module: "sigs.k8s.io/descheduler", Parts: []Part{
		{Path: "kubernetes/deployment", Render: kustomized}}},
	{Name: "external-secrets", Module: "github.com/external-secrets/external-secrets", Namespace: "external-secrets", Parts: []Part{
		{Path: "config/crds/bases", Render: files},
		{Path: "deploy/charts/external-secrets", Render: chart(nil)}}},
	{Name: "external-snapshotter", Module: "github.com/kubernetes-csi/external-snapshotter/v8", Parts: []Part{
		{Path: "config/crd", Of: "github.com/kubernetes-csi/external-snapshotter/client/v8", Render: kustomized},
		{Path: "deploy/kubernetes/snapshot-controller", Render: kustomized}}},
	{Name: "gatekeeper", Module: "github.com/open-policy-agent/gatekeeper/v3", Parts: []Part{
		{Path: "deploy/gatekeeper.yaml", Render: files}}},
	{Name: "gateway-api", Module: "sigs.k8s.io/gateway-api", Parts: []Part{
		{Path: "config/crd", Render: kustomized}}},
	{Name: "karpenter", Module: "sigs.k8s.io/karpenter", Namespace: "karpenter", Parts: []Part{
		{Path: "kwok/apis/crds", Render: files},
		{Path: "kwok/charts", Render: chart(map[string]any{"settings": map[string]any{"featureGates": map[string]any{
			"staticCapacity": false, "spotToSpotConsolidation": false, "nodeRepair": false, "capacityBuffer": false}}})}}},
	{Name: "keda", Module: "github.com/kedacore/keda/v2", Needs: []string{"prometheus-operator"}, Parts: []Part{
		{Path: "config/default", Render: kustomized}}},
	{Name: "knative-serving", Module: "knative.dev/serving", Without: []string{"caching.internal.knative.dev/v1alpha1", "networking.internal.knative.dev/v1alpha1"}, Parts: []Part{
		{Path: "config/core", Render: files}}},
	{Name: "kustomize-controller", Module: "github.com/fluxcd/kustomize-controller", Namespace: "kustomize-system", Parts: []Part{
		{Path: "config/crd", Render: kustomized},
		{Path: "config/rbac", Render: kustomized},
		{Path: "config/manager", Render: kustomized}}},
	{Name: "kwok", Module: "sigs.k8s.io/kwok", Parts: []Part{
		{Path: "kustomize/crd", Render: kustomized},
		{Path: "kustomize/kwok", Render: kustomized},
		{Path: "kustomize/stage/fast", Render: kustomized}}},
	{Name: "kyverno", Module: "github.com/kyverno/kyverno", Parts: []Part{
		{Path: "config/install-latest-testing.yaml", Render: files}}},
	{Name: "metrics-server", Module: "sigs.k8s.io/metrics-server", Parts: []Part{
		{Path: "manifests/base", Render: kustomized}}},
	{Name: "prometheus-operator", Module: "github.com/prometheus-operator/prometheus-operator", Parts: []Part{
		{Path: "bundle.yaml", Render: files}}},
	{Name: "source-controller", Module: "github.com/fluxcd/source-controller", Parts: []Part{
		{Path: "config/default", Render: kustomized}}},
	{Name: "velero", Module: "github.com/vmware-tanzu/velero", Parts: []Part{
		{Path: "config/crd/v1/bases", Render: files},
		{Path: "config/crd/v2alpha1/bases", Render: files}}},
}
