package server

import (
	"context"
	"errors"
	"sync"
)

// Draining is closed when Drain has begun.
func (s *Server) Draining() <-chan struct{} { return s.draining.Done() }

// Drain stops the Server without cutting anybody short: from now on it is not
// ready and takes no connection; watches end; clients are told to go; requests
// under way are answered. When ctx ends before that, the connections that are
// left are closed and the error says so.
func (s *Server) Drain(ctx context.Context) error {
	s.drain()
	var group sync.WaitGroup
	ended := make(chan struct{})
	group.Go(func() { s.connections.CloseUnused(ended) })
	err := s.http.Shutdown(ctx)
	close(ended)
	group.Wait()
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.connections.Wait()
	return err
}
