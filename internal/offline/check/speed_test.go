package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkRun checks manifests of built-in and custom kinds, 10 objects a file.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	const manifests = 10_000
	writeManifests(b, dir, manifests)
	b.ResetTimer()
	for b.Loop() {
		report, err := Run(b.Context(), []string{dir}, nil, Options{AllowPrivileged: true})
		if err != nil {
			b.Fatal(err)
		}
		if s := report.Summary; s.Accepted != manifests+1 {
			b.Fatal(s)
		}
	}
	b.ReportMetric(float64(manifests)*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}

func writeManifests(t testing.TB, dir string, n int) {
	t.Helper()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("crd.yaml", `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: self.minimum <= self.replicas}
            properties:
              schedule: {type: string, pattern: '^(\S+ ){4}\S+$'}
              minimum: {type: integer, default: 1}
              replicas: {type: integer, maximum: 100}
              env:
                type: array
                items: {type: object, required: [name], properties: {name: {type: string}, value: {type: string}}}
`)
	kinds := []string{`apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: crontab-%[1]d
  labels: {app: web, part: worker}
spec:
  schedule: "0 4 * * *"
  replicas: 3
  env:
  - name: A
    value: one
  - name: B
    value: two
`, `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-%[1]d
  labels:
    app: web
spec:
  replicas: 3
  selector:
    matchLabels:
      app: web-%[1]d
  template:
    metadata:
      labels:
        app: web-%[1]d
    spec:
      containers:
      - name: web
        image: registry.example.com/web:1.0
        ports:
        - containerPort: 8080
        env:
        - name: LEVEL
          value: info
        resources:
          requests:
            cpu: 100m
            memory: 128Mi
        readinessProbe:
          httpGet:
            path: /healthz
            port: 8080
        volumeMounts:
        - name: settings
          mountPath: /etc/settings
      volumes:
      - name: settings
        configMap:
          name: settings-%[1]d
`, `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings-%[1]d
data:
  level: info
  settings.json: |
    {"a": 1, "b": [1, 2, 3]}
`, `apiVersion: v1
kind: Service
metadata:
  name: web-%[1]d
spec:
  selector:
    app: web-%[1]d
  ports:
  - name: http
    port: 80
    targetPort: 8080
`}
	for i := 0; i < n; i += 10 {
		var text strings.Builder
		for j := i; j < min(i+10, n); j++ {
			text.WriteString("---\n")
			fmt.Fprintf(&text, kinds[j%len(kinds)], j)
		}
		write(fmt.Sprintf("objects-%05d.yaml", i), text.String())
	}
}
