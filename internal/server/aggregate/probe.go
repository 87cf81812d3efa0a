package aggregate

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// probes is the number of parallel probes of a Backend. One success suffices.
	probes    = 5
	probeTime = 5 * time.Second
)

// Probe requests the discovery of the version from its Backend, as this server. The error is in
// Kubernetes' words.
func (s *Service) Probe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // for probes that are still running
	results := make(chan error, probes)
	for range probes {
		go func() { results <- s.probe(ctx) }()
	}
	var err error
	for range probes {
		if err = <-results; err == nil {
			return nil
		}
	}
	s.Backend.Forget()
	return err
}

func (s *Service) probe(ctx context.Context) error {
	to, err := s.Backend.Resolve(ctx)
	if err != nil {
		return err
	}
	to.Path = s.Path()
	failed := func(err error) error { return fmt.Errorf("failing or missing response from %v: %w", to, err) }
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return failed(err)
	}
	client := http.Client{
		Transport: s.Backend.As(Self()), Timeout: probeTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		return failed(err)
	}
	_ = answer.Body.Close() // The body is not read.
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices {
		return failed(fmt.Errorf("bad status from %v: %d", to, answer.StatusCode))
	}
	return nil
}
