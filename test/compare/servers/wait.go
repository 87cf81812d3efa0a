package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/test/compare/wire"
)

// Definitions is the path of CustomResourceDefinitions.
const Definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// Wait polls a condition, and returns an error after some minutes.
func Wait(ctx context.Context, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Settle waits until a server has set the conditions of the definition in a response, for a limited
// time.
func Settle(ctx context.Context, c *wire.Client, a *wire.Answer, enough time.Duration) {
	var d struct{ Metadata struct{ Name string } }
	if json.Unmarshal(a.Body, &d) != nil || d.Metadata.Name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	_ = Wait(ctx, func() bool { // a definition that never settles shows in later differences
		var now struct {
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
		a := c.Do(ctx, wire.Step{Method: "GET", Path: Definitions + "/" + d.Metadata.Name})
		if a.Code != http.StatusOK || json.Unmarshal(a.Body, &now) != nil {
			return true
		}
		for _, condition := range now.Status.Conditions {
			if condition.Type == "Established" && condition.Status == "True" || condition.Type == "NamesAccepted" && condition.Status == "False" {
				return true
			}
		}
		return false
	})
}

// SettleSchema waits until a server has written the status of the FlowSchema in a response, for a
// limited time. A controller of each server writes it after the response.
func SettleSchema(ctx context.Context, c *wire.Client, a *wire.Answer, enough time.Duration) {
	const schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/"
	type schema struct {
		Metadata struct{ Name string }
		Spec     struct{ PriorityLevelConfiguration struct{ Name string } }
		Status   struct {
			Conditions []struct{ Type, Message string }
		}
	}
	var written schema
	if json.Unmarshal(a.Body, &written) != nil || written.Metadata.Name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	_ = Wait(ctx, func() bool { // a status that a client removed may stay empty
		var now schema
		a := c.Do(ctx, wire.Step{Method: "GET", Path: schemas + written.Metadata.Name})
		if a.Code != http.StatusOK || json.Unmarshal(a.Body, &now) != nil {
			return true
		}
		level := fmt.Sprintf("%q", now.Spec.PriorityLevelConfiguration.Name)
		return slices.ContainsFunc(now.Status.Conditions, func(condition struct{ Type, Message string }) bool {
			return condition.Type == "Dangling" && strings.Contains(condition.Message, level)
		})
	})
}
