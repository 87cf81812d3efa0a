package servicecidr

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

// The ServiceCIDR is created and repaired. Other ranges lead to a warning Event.
func TestServiceCIDR(t *testing.T) {
	const ready = "Ready=True Kubernetes default Service CIDR is ready"
	for _, tt := range []struct {
		name, stored, flags string
		change              func(w *controllertest.World)
		want, warned        string
	}{
		{name: "none", flags: "10.0.0.0/24", want: "10.0.0.0/24 " + ready},
		{name: "ready already", stored: `{spec: {cidrs: [10.0.0.0/24]}, status: {conditions: [{type: Ready, status: "True", message: long ago}]}}`, flags: "10.0.0.0/24", want: "10.0.0.0/24 Ready=True long ago"},
		{name: "Ready is False", stored: `{spec: {cidrs: [10.0.0.0/24]}, status: {conditions: [{type: Ready, status: "False", message: why}]}}`, flags: "10.0.0.0/24", want: "10.0.0.0/24 Ready=False why"},
		{name: "Ready is Unknown", stored: `{spec: {cidrs: [10.0.0.0/24]}, status: {conditions: [{type: Ready, status: Unknown}, {type: A, status: "True", message: b}]}}`, flags: "10.0.0.0/24",
			want: "10.0.0.0/24 " + ready + " A=True b"},
		{name: "another family is added", stored: `{spec: {cidrs: [10.0.0.0/24]}}`, flags: "10.0.0.0/24,fd00::/112", want: "10.0.0.0/24 fd00::/112 " + ready},
		{name: "another range", stored: `{spec: {cidrs: [10.1.0.0/24]}}`, flags: "10.0.0.0/24", want: "10.1.0.0/24", warned: "[KubernetesDefaultServiceCIDRInconsistent]"},
		{name: "deleted", flags: "10.0.0.0/24", change: func(w *controllertest.World) { w.Delete("servicecidr kubernetes", "") }, want: "10.0.0.0/24 " + ready},
		{name: "held while it is deleted", flags: "10.0.0.0/24", change: func(w *controllertest.World) {
			w.Edit("servicecidr kubernetes", func(t object.Tree) { object.SetFinalizers(t, []string{"networking.k8s.io/service-cidr-finalizer"}) })
			w.Delete("servicecidr kubernetes", "")
			w.Wait()
			if !object.Deleting(w.Get("servicecidr kubernetes")) {
				w.T.Error("it is not held")
			}
			w.Release("servicecidr kubernetes")
		}, want: "10.0.0.0/24 " + ready},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cidrs []netip.Prefix
				for text := range strings.SplitSeq(tt.flags, ",") {
					cidrs = append(cidrs, netip.MustParsePrefix(text))
				}
				w := controllertest.New(t, []controller.Descriptor{{Name: Name, New: New(cidrs)}})
				w.Create("namespace default")
				if tt.stored != "" {
					w.Store("servicecidr kubernetes", tt.stored)
				}
				w.Start()
				w.Wait()
				if tt.change != nil {
					tt.change(w)
					w.Wait()
				}
				if got := shown(w.Get("servicecidr kubernetes")); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				if got := fmt.Sprint(w.Warnings()); got != tt.warned && got+tt.warned != "[]" {
					t.Errorf("warned %s, want %s", got, tt.warned)
				}
			})
		})
	}
}

func shown(t object.Tree) string {
	out := fmt.Sprint(kind.Texts(t, "spec", "cidrs"))
	out = out[1 : len(out)-1]
	for _, c := range kind.List(t, "status", "conditions") {
		condition := c.(object.Tree)
		out += fmt.Sprintf(" %s=%s %s", kind.Text(condition, "type"), kind.Text(condition, "status"), kind.Text(condition, "message"))
	}
	return out
}
