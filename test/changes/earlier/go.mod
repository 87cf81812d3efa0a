module github.com/anykind/anykind/test/changes/earlier

go 1.26.0

// No package imports these: go mod tidy would leave them out.
require (
	github.com/cert-manager/cert-manager v1.15.0
	github.com/external-secrets/external-secrets v0.10.0
	sigs.k8s.io/cluster-api v1.9.0
	sigs.k8s.io/gateway-api v1.2.1
	sigs.k8s.io/karpenter v1.0.0
)
