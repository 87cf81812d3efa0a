package core

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

// componentStatuses reports the health of the store and of other components. They are not stored.
func componentStatuses(o Dependencies) *resource.Definition {
	reader := components{
		checks: map[string]func(context.Context) (bool, string){
			"scheduler":          asking(o.Network, "https://127.0.0.1:10259/healthz"),
			"controller-manager": asking(o.Network, "https://127.0.0.1:10257/healthz"),
			"etcd-0":             storeHealth(o.Store),
		},
		names: []string{"scheduler", "controller-manager", "etcd-0"},
	}
	return kind.Kind[*corev1.ComponentStatus, *corev1.ComponentStatusList]{
		Definition: resource.Definition{
			Plural: "componentstatuses", ShortNames: []string{"cs"}, Verbs: []string{"get", "list"},
		},
		Version: &resource.Version{Reader: reader},
		Columns: `
			Status   string  status   "Status of the component conditions"
			Message  string  message  "Message of the component conditions"
			Error    string  error    "Error of the component conditions"
		`,
		Cells: kind.Cells{
			"status": func(obj map[string]any) any {
				switch kind.Text(health(obj), "status") {
				case "":
					return "Unknown"
				case string(corev1.ConditionTrue):
					return "Healthy"
				}
				return "Unhealthy"
			},
			"message": func(obj map[string]any) any { return kind.Text(health(obj), "message") },
			"error":   func(obj map[string]any) any { return kind.Text(health(obj), "error") },
		},
	}.New()
}

// health returns the condition Healthy.
func health(obj map[string]any) map[string]any {
	for _, c := range kind.List(obj, "conditions") {
		if condition, ok := c.(map[string]any); ok && condition["type"] == string(corev1.ComponentHealthy) {
			return condition
		}
	}
	return nil
}

// components computes ComponentStatuses. A check returns whether a component is healthy, and a
// message.
type components struct {
	names  []string
	checks map[string]func(context.Context) (bool, string)
}

func (c components) Names() []string { return c.names }

func (c components) Read(ctx context.Context, name string) map[string]any {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	healthy, message := c.checks[name](ctx)
	condition := map[string]any{"type": string(corev1.ComponentHealthy), "status": string(corev1.ConditionFalse)}
	if healthy {
		condition["status"] = string(corev1.ConditionTrue)
	}
	if message != "" {
		condition["message"] = message
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "ComponentStatus",
		"metadata": map[string]any{"name": name}, "conditions": []any{condition},
	}
}

// storeHealth checks the store. It is healthy if it responds.
func storeHealth(check func(context.Context) error) func(context.Context) (bool, string) {
	return func(ctx context.Context) (bool, string) {
		if err := check(ctx); err != nil {
			return false, err.Error()
		}
		return true, "ok"
	}
}

// asking checks a component at an address. The message is its response.
func asking(network http.RoundTripper, address string) func(context.Context) (bool, string) {
	const longest = 10 << 10
	client := &http.Client{Transport: network}
	return func(ctx context.Context) (bool, string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return false, err.Error()
		}
		answer, err := client.Do(r)
		if err != nil {
			return false, err.Error()
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, longest))
		switch {
		case err != nil:
			return false, err.Error()
		case answer.StatusCode >= 200 && answer.StatusCode < 400:
			return true, string(text)
		}
		return false, fmt.Sprintf("HTTP probe failed with statuscode: %d", answer.StatusCode)
	}
}
