package app

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

// BenchmarkConversion measures requests in a version that objects are not stored in: converted by a webhook
// in the same process, by rules, and without a conversion. A write converts the object twice. The first list
// of 5,000 objects converts all of them; later ones find the results. The numbers of one run are to be
// compared with each other.
func BenchmarkConversion(b *testing.B) {
	const objects = 5000
	for _, by := range []conversionBy{byWebhook, byRules, byNone} {
		b.Run(string(by), func(b *testing.B) {
			r := &random{converting: startConverting(b), Rand: rand.New(rand.NewPCG(1, 1)), by: by}
			r.define(r.crdOf("v1"))
			create := func(version, name string) {
				r.must("POST", path(version, ""), crontab(version, name, inner(encoded(r.fields(version, crontabModel{host: "localhost", port: "80", note: "a note"}))), ""), 201)
			}
			for i := range objects {
				create("v1", fmt.Sprint("c", i))
			}
			again := 0
			b.Run("list", func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					again++
					r.define(r.other(again)) // its objects are converted again
					r.must("GET", path("v1", "c0"), "", 200)
					b.StartTimer()
					r.must("GET", path("v1beta1", ""), "", 200)
				}
			})
			b.Run("get", func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					again++
					name := fmt.Sprint("n", again)
					create("v1", name)
					b.StartTimer()
					r.must("GET", path("v1beta1", name), "", 200)
				}
			})
			b.Run("create", func(b *testing.B) {
				for b.Loop() {
					again++
					create("v1beta1", fmt.Sprint("w", again))
				}
			})
		})
	}
}

// other returns the definition with another description.
func (r *random) other(n int) string {
	crd := object.Tree{}
	if err := json.Unmarshal([]byte(r.crdOf("v1")), &crd); err != nil {
		r.t.Fatal(err)
	}
	for _, v := range crd["spec"].(object.Tree)["versions"].([]any) {
		v.(object.Tree)["schema"].(object.Tree)["openAPIV3Schema"].(object.Tree)["description"] = fmt.Sprint("number ", n)
	}
	return encoded(crd)
}
