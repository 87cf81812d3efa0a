package rest_test

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin"
)

const (
	deployments = "/apis/apps/v1/namespaces/default/deployments"
	deployment  = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"default"},"spec":{"replicas":3,
		"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
)

// The Scale of a built-in kind has the selector as text, and can be written by every kind of
// write.
func TestScaleOfDeployment(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const scale = deployments + "/a/scale"
	s.post(deployments, deployment).is(201)
	const want = `{"kind":"autoscaling/v1 Scale","spec":{"replicas":3},"status":{"replicas":0,"selector":"app=a"}}`
	shown := s.get(scale).is(200)
	if got := scaleOf(shown); got != want {
		t.Errorf("%s, want %s", got, want)
	}

	s.put(scale, strings.Replace(shown.body, `"replicas":3`, `"replicas":4`, 1)).is(200, `"replicas":4`)
	s.put(scale, shown.body).is(409, "the object has been modified")
	s.merge(scale, `{"spec":{"replicas":5}}`).is(200, `"replicas":5`)
	s.do("PATCH", scale, "application/json-patch+json", `[{"op":"replace","path":"/spec/replicas","value":6}]`).is(200, `"replicas":6`)
	// A strategic merge patch applies to the Scale, which has no template.
	s.do("PATCH", scale, "application/strategic-merge-patch+json", `{"spec":{"replicas":7,"template":null}}`).is(200, `"replicas":7`)
	s.get(deployments+"/a").is(200, `"replicas":7`, `"generation":5`, `"image":"i"`)

	for _, wrong := range []struct {
		patch string
		code  int
		words string
	}{
		{`{"spec":{"replicas":-1}}`, 422, `Scale.autoscaling \"a\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`},
		{`{"metadata":{"uid":"x"}}`, 409, `Operation cannot be fulfilled on deployments/scale.apps \"a\": Precondition failed: UID in precondition: x, UID in object meta: `},
		{`{"metadata":{"resourceVersion":"1000"}}`, 409, "the object has been modified"},
	} {
		s.merge(scale, wrong.patch).is(wrong.code, wrong.words)
	}
}

// A manager that applies a Scale owns the replicas of the object.
func TestScaleOfDeploymentOwners(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	s.apply(deployments+"/a", "owner", deployment).is(201)
	apply := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"default"},"spec":{"replicas":2}}`
	s.apply(deployments+"/a/scale", "scaler", apply).is(409, `conflict with \"owner\"`, ".spec.replicas")
	s.do("PATCH", deployments+"/a/scale?fieldManager=scaler&force=true", "application/apply-patch+yaml", apply).is(200, `"replicas":2`)
	s.apply(deployments+"/a", "owner", deployment).is(409, `conflict with \"scaler\" with subresource \"scale\"`, ".spec.replicas")
}
