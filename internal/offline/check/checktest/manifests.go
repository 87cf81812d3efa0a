// Package checktest writes manifests for measurements of anykind check and of programs for the same task.
//
// The manifests are those of a small application, of four kinds. Three of the kinds are built in, and one of them,
// Deployment, has many fields. All manifests are valid. The package does not check them.
package checktest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Definition is the CustomResourceDefinition of a kind among the manifests.
const Definition = `apiVersion: apiextensions.k8s.io/v1
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
`

// kinds are the kinds of manifests, with a number in their names.
var kinds = [...]string{`apiVersion: stable.example.com/v1
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

// Manifests writes n manifests to files of ten in a folder.
func Manifests(folder string, n int) error {
	for i := 0; i < n; i += 10 {
		var text strings.Builder
		for j := i; j < min(i+10, n); j++ {
			fmt.Fprintf(&text, "---\n"+kinds[j%len(kinds)], j)
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("objects-%05d.yaml", i)), []byte(text.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}
