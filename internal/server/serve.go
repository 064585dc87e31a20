package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// lateRequest is how long after the start of a shutdown a request that
	// was not complete yet may still arrive.
	lateRequest = time.Second
	// lastWords is how long handlers may take to say goodbye once their
	// contexts have ended, before their connections are closed.
	lastWords = time.Second
	// stubborn is how long Serve waits for handlers that go on after that.
	stubborn = 5 * time.Second
)

// Serve answers requests on ln until ctx ends, and closes ln. After the end of
// ctx it serves for Config.Linger more, stops accepting, waits up to Config.Grace
// for requests in flight, ends the contexts of the others with ErrShutdown and
// closes their connections. It returns nil when no connection is left. Serve may
// be called once.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	s.routes = s.app.Handler()
	served := make(chan error, 1)
	go func() { served <- s.web.Serve(&listener{ln, s.conns}) }()
	failed := s.serve(ctx, served)
	close(s.draining)
	closed := ln.Close()
	if failed == nil {
		<-served
		failed = closed
	}
	s.conns.refusing.Wait()
	err := s.shutdown()
	s.cut(ErrShutdown)
	return errors.Join(failed, err)
}

// serve returns when it is time to shut down, with an error if there is no
// listener any more.
func (s *Server) serve(ctx context.Context, served <-chan error) error {
	lost := func(err error) error { return fmt.Errorf("accept connections: %w", err) }
	select {
	case <-ctx.Done():
	case err := <-served:
		close(s.leaving)
		return lost(err)
	}
	close(s.leaving)
	select {
	case <-time.After(s.config.Linger):
		return nil
	case err := <-served:
		return lost(err)
	}
}

func (s *Server) shutdown() error {
	grace, cancel := context.WithTimeout(context.Background(), s.config.Grace)
	defer cancel()
	s.conns.drain(time.Now().Add(lateRequest))
	if s.conns.wait(grace) {
		return nil
	}
	s.log.Warn("cutting requests that outlived the grace period", "connections", s.conns.count())
	// Kept-alive connections must not wait for another request.
	s.conns.drain(time.Now())
	s.cut(ErrShutdown)
	if s.waitFor(lastWords) {
		return nil
	}
	s.conns.closeAll()
	if s.waitFor(stubborn) {
		return nil
	}
	return fmt.Errorf("%d connections are still being served after their end", s.conns.count())
}

func (s *Server) waitFor(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return s.conns.wait(ctx)
}
