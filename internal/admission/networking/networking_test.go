package networking_test

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/networking"
	"github.com/anykind/anykind/internal/store/stored"
)

func world(t *testing.T) *admissiontest.World {
	return admissiontest.New(t, func(w *admissiontest.World) []any {
		classes := stored.List[networkingv1.IngressClass](w.Cache, w.Kinds, networkingv1.Resource("ingressclasses"))
		return []any{&networking.DefaultIngressClass{Classes: classes}, networking.DenyServiceExternalIPs{}}
	})
}

// A new Ingress gets a class.
func TestIngresses(t *testing.T) {
	const class = `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: a}, spec: {controller: example.com/c}}`
	const isDefault = `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: b, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: example.com/c}}`
	tests := []struct{ name, have, metadata, spec, want string }{
		{"the default", class + "\n---\n" + isDefault, ``, ``, `"b"`},
		{"there is none", class, ``, ``, ``},
		{"another", isDefault, ``, `ingressClassName: a,`, `"a"`},
		{"one in an annotation", isDefault, `, annotations: {kubernetes.io/ingress.class: a}`, ``, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := world(t)
			w.Have(test.have)
			made, err := w.Create("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i" + test.metadata + "}, spec: {" + test.spec + " defaultBackend: {service: {name: s, port: {number: 1}}}}}")
			if got := admissiontest.Field(made, "spec.ingressClassName"); err != nil || got != test.want {
				t.Errorf("%s %v, want %s", got, err, test.want)
			}
		})
	}
}

// A Service cannot add an external IP, and keeps its existing ones.
func TestServices(t *testing.T) {
	w := world(t)
	const denied = `services "s" is forbidden: Use of external IPs is denied by admission control`
	service := func(ips string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, clusterIPs: [None], ports: [{port: 1}], externalIPs: " + ips + "}}"
	}
	if _, err := w.Create(service("[192.0.2.1]")); err == nil || err.Error() != denied {
		t.Errorf("%v, want %s", err, denied)
	}
	if _, err := w.Create(service("[]")); err != nil {
		t.Error(err)
	}
	if _, err := w.Update(service("[192.0.2.1]"), ""); err == nil || err.Error() != denied {
		t.Errorf("%v, want %s", err, denied)
	}
}
