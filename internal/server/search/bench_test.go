package search

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

var documents = flag.Int("documents", 20_000, "documents of BenchmarkFind")

// BenchmarkFind measures queries over an index of many objects of usual kinds:
//
//	go test ./internal/server/search -run '^$' -bench Find -benchtime 200x -documents 1000000
func BenchmarkFind(b *testing.B) {
	x := filled(b, *documents)
	for _, query := range []string{
		"a", "we", "web", "web-17", "web-17-5d9c", "running", "10.4.17.20", "nosuchtext", "registry.example.com", "containerd://",
		"web running", "pod team-3", "a e", "api 1.17.3 node-7", "backoff restarting failed",
	} {
		b.Run(query, func(b *testing.B) {
			words, times := Words(query), make([]time.Duration, 0, b.N)
			n := 0
			for b.Loop() {
				begun := time.Now()
				n = 0
				x.Find(words, func(*Kind, string) bool { return true }, func(Document) bool { n++; return n <= 50 })
				times = append(times, time.Since(begun))
			}
			slices.Sort(times)
			b.ReportMetric(float64(n), "found")
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// filled returns an index of generated objects, and logs its size.
func filled(b *testing.B, n int) *Index {
	b.Helper()
	var was, is runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&was)
	begun, x := time.Now(), NewIndex()
	random, size := rand.New(rand.NewPCG(1, 2)), 0
	number := 0
	for _, part := range []struct {
		kind  Kind
		share int // in percent
		make  func(*rand.Rand, int) (namespace, name, data string)
	}{
		{Kind{Resource: "configmaps", Kind: "ConfigMap"}, 10, configMap},
		{Kind{Resource: "events", Kind: "Event"}, 20, event},
		{Kind{Resource: "pods", Kind: "Pod"}, 50, pod},
		{Kind{Group: "apps", Resource: "replicasets", Kind: "ReplicaSet"}, 15, replicaSet},
		{Kind{Resource: "secrets", Kind: "Secret", Secret: true}, 5, secret},
	} {
		kind := x.AddKind(&part.kind)
		for i := range n * part.share / 100 {
			namespace, name, data := part.make(random, i)
			size += len(data)
			number++
			add(b, x, &stored{kind, namespace, name, data}, int64(number))
		}
	}
	x.Sorted()
	took := time.Since(begun)
	runtime.GC()
	runtime.ReadMemStats(&is)
	b.Logf("%d documents of %d bytes, %.1f µs each; %d bytes of memory each, %d distinct texts of %d bytes",
		number, size/number, took.Seconds()*1e6/float64(number), int(is.HeapAlloc-was.HeapAlloc)/number,
		x.values.len+x.labels.len, text(x)/max(1, x.values.len+x.labels.len))
	return x
}

func text(x *Index) (n int) {
	for _, d := range []*dictionary{&x.labels, &x.values} {
		for i := range d.chunks {
			n += len(d.chunks[i].text)
		}
	}
	return n
}

var apps = []string{"web", "api", "worker", "cache", "billing", "search", "mail", "login", "queue", "report"}

func place1(r *rand.Rand) (namespace, app string) {
	team := r.IntN(400)
	return fmt.Sprintf("team-%d", team), fmt.Sprintf("%s-%d", apps[r.IntN(len(apps))], team%50)
}

const letters = "bcdfghjklmnpqrstvwxz2456789"

func suffix(r *rand.Rand, n int) string {
	s := make([]byte, n)
	for i := range s {
		s[i] = letters[r.IntN(len(letters))]
	}
	return string(s)
}

func uid(r *rand.Rand) string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Uint64()&(1<<48-1))
}

func pod(r *rand.Rand, i int) (namespace, name, data string) {
	namespace, app := place1(r)
	hash := suffix(r, 2) + "9c4d7f6b"
	name = app + "-" + hash + "-" + suffix(r, 5)
	node, version := r.IntN(5000), fmt.Sprintf("1.%d.%d", r.IntN(40), r.IntN(10))
	stamp := fmt.Sprintf("2026-03-%02dT%02d:%02d:%02dZ", 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60))
	data = `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"prometheus.io/scrape":"true"},"creationTimestamp":"` + stamp + `","generateName":"` + app + "-" + hash + `-","labels":{"app":"` + app + `","pod-template-hash":"` + hash + `","version":"` + version + `"},"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}},"manager":"kube-controller-manager","operation":"Update","time":"` + stamp + `"}],"name":"` + name + `","namespace":"` + namespace + `","ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"` + app + "-" + hash + `","uid":"` + uid(r) + `"}],"uid":"` + uid(r) + `"},"spec":{"containers":[{"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"POD_IP","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}}],"image":"registry.example.com/` + app + `:` + version + `","imagePullPolicy":"IfNotPresent","livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"name":"main","ports":[{"containerPort":8080,"name":"http","protocol":"TCP"}],"resources":{"limits":{"memory":"512Mi"},"requests":{"cpu":"100m","memory":"256Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-` + suffix(r, 5) + `","readOnly":true}]}],"dnsPolicy":"ClusterFirst","enableServiceLinks":true,"nodeName":"node-` + fmt.Sprint(node) + `","preemptionPolicy":"PreemptLowerPriority","priority":0,"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"serviceAccount":"default","serviceAccountName":"default","terminationGracePeriodSeconds":30,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}],"volumes":[{"name":"kube-api-access","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}}]}}]},"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"` + stamp + `","status":"True","type":"Initialized"},{"lastTransitionTime":"` + stamp + `","status":"True","type":"Ready"},{"lastTransitionTime":"` + stamp + `","status":"True","type":"PodScheduled"}],"containerStatuses":[{"containerID":"containerd://` + fmt.Sprintf("%016x%016x%016x%016x", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()) + `","image":"registry.example.com/` + app + `:` + version + `","imageID":"registry.example.com/` + app + `@sha256:` + fmt.Sprintf("%064x", version) + `","lastState":{},"name":"main","ready":true,"restartCount":` + fmt.Sprint(r.IntN(4)) + `,"started":true,"state":{"running":{"startedAt":"` + stamp + `"}}}],"hostIP":"10.1.` + fmt.Sprintf("%d.%d", node>>8, node&255) + `","phase":"Running","podIP":"10.` + fmt.Sprintf("%d.%d.%d", 2+i>>16&63, i>>8&255, i&255) + `","podIPs":[{"ip":"10.` + fmt.Sprintf("%d.%d.%d", 2+i>>16&63, i>>8&255, i&255) + `"}],"qosClass":"Burstable","startTime":"` + stamp + `"}}`
	return namespace, name, data
}

func replicaSet(r *rand.Rand, _ int) (namespace, name, data string) {
	namespace, app := place1(r)
	hash := suffix(r, 10)
	name = app + "-" + hash
	version := fmt.Sprintf("1.%d.%d", r.IntN(40), r.IntN(10))
	data = `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"annotations":{"deployment.kubernetes.io/desired-replicas":"3","deployment.kubernetes.io/revision":"` + fmt.Sprint(r.IntN(50)) + `"},"creationTimestamp":"2026-03-01T00:00:00Z","labels":{"app":"` + app + `","pod-template-hash":"` + hash + `"},"name":"` + name + `","namespace":"` + namespace + `","ownerReferences":[{"apiVersion":"apps/v1","controller":true,"kind":"Deployment","name":"` + app + `","uid":"` + uid(r) + `"}],"uid":"` + uid(r) + `"},"spec":{"replicas":` + fmt.Sprint(r.IntN(5)) + `,"selector":{"matchLabels":{"app":"` + app + `","pod-template-hash":"` + hash + `"}},"template":{"metadata":{"labels":{"app":"` + app + `","pod-template-hash":"` + hash + `"}},"spec":{"containers":[{"image":"registry.example.com/` + app + `:` + version + `","name":"main","resources":{"requests":{"cpu":"100m"}}}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always"}}},"status":{"observedGeneration":1,"replicas":0}}`
	return namespace, name, data
}

func event(r *rand.Rand, _ int) (namespace, name, data string) {
	namespace, app := place1(r)
	of := app + "-" + suffix(r, 10) + "-" + suffix(r, 5)
	name = of + fmt.Sprintf(".%016x", r.Uint64())
	messages := []string{
		"Successfully assigned " + namespace + "/" + of + " to node-" + fmt.Sprint(r.IntN(5000)), "Started container main", "Created container main",
		"Back-off restarting failed container main in pod " + of + "_" + namespace, "Container image \\\"registry.example.com/" + app + "\\\" already present on machine",
	}
	data = `{"apiVersion":"v1","count":1,"firstTimestamp":"2026-03-01T00:00:00Z","involvedObject":{"apiVersion":"v1","kind":"Pod","name":"` + of + `","namespace":"` + namespace + `","uid":"` + uid(r) + `"},"kind":"Event","lastTimestamp":"2026-03-01T00:00:00Z","message":"` + messages[r.IntN(len(messages))] + `","metadata":{"name":"` + name + `","namespace":"` + namespace + `","uid":"` + uid(r) + `"},"reason":"` + []string{"Scheduled", "Started", "Created", "BackOff", "Pulled"}[r.IntN(5)] + `","source":{"component":"kubelet","host":"node-` + fmt.Sprint(r.IntN(5000)) + `"},"type":"Normal"}`
	return namespace, name, data
}

func configMap(r *rand.Rand, i int) (namespace, name, data string) {
	namespace, app := place1(r)
	name = fmt.Sprintf("%s-config-%d", app, i)
	data = `{"apiVersion":"v1","data":{"application.properties":"server.port=8080\ndatabase.url=jdbc:postgresql://db-` + fmt.Sprint(r.IntN(1000)) + `:5432/` + app + `\nlog.level=info\n","feature":"` + suffix(r, 12) + `"},"kind":"ConfigMap","metadata":{"labels":{"app":"` + app + `"},"name":"` + name + `","namespace":"` + namespace + `","uid":"` + uid(r) + `"}}`
	return namespace, name, data
}

func secret(r *rand.Rand, i int) (namespace, name, data string) {
	namespace, app := place1(r)
	name = fmt.Sprintf("%s-secret-%d", app, i)
	data = `{"apiVersion":"v1","data":{"password":"` + suffix(r, 24) + `"},"kind":"Secret","metadata":{"labels":{"app":"` + app + `"},"name":"` + name + `","namespace":"` + namespace + `","uid":"` + uid(r) + `"},"type":"Opaque"}`
	return namespace, name, data
}
