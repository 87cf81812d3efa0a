module github.com/anykind/anykind/test/corpus/published

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	sigs.k8s.io/gateway-api v1.6.3
)
