package servers

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/anykind/anykind/test/compare/wire"
)

// Definitions is the path of CustomResourceDefinitions.
const Definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// Wait returns when something is true, or with an error after minutes.
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

// Settle returns when a server has made up its mind about the definition in an answer,
// or has not after some time.
func Settle(ctx context.Context, c *wire.Client, a *wire.Answer, enough time.Duration) {
	var d struct{ Metadata struct{ Name string } }
	if json.Unmarshal(a.Body, &d) != nil || d.Metadata.Name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	_ = Wait(ctx, func() bool { // what never settles differs in what follows
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
