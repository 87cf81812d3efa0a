package server

import (
	"context"
	"errors"
	"sync"
)

// Draining is closed once Drain is called.
func (s *Server) Draining() <-chan struct{} { return s.draining.Done() }

// Drain shuts the Server down gracefully. The server is no longer ready and accepts no
// connection, watches end, clients are asked to reconnect elsewhere, and requests in flight are
// answered. When ctx ends first, the remaining connections are closed and Drain returns an error.
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
	s.backups.close()
	return err
}
