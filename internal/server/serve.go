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
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		if err := s.peers.run(); err != nil {
			s.log.Error("The ends of clients are no longer noticed", "error", err)
		}
	}()
	served := make(chan error, 1)
	go func() { served <- s.app.Listener(s.conns.listener(ln)) }()

	var failed error
	end := func(err error) {
		if err == nil {
			err = net.ErrClosed
		}
		failed = fmt.Errorf("accept connections: %w", err)
		served <- nil
	}
	select {
	case <-ctx.Done():
		close(s.leaving)
		select {
		case <-time.After(s.config.Linger):
		case err := <-served:
			end(err)
		}
	case err := <-served:
		end(err)
	}
	err := s.shutdown(ln)
	<-served
	s.cut(ErrShutdown)
	s.peers.close()
	<-watching
	return errors.Join(failed, err)
}

func (s *Server) shutdown(ln net.Listener) error {
	close(s.draining)
	s.conns.drain(time.Now().Add(lateRequest))
	grace, cancel := context.WithTimeout(context.Background(), s.config.Grace)
	defer cancel()
	// An error says that the grace period passed, or that the listener was
	// closed already; what matters is whether connections are left.
	_ = s.app.ShutdownWithContext(grace)
	// fasthttp closes only listeners that it has begun to serve.
	_ = ln.Close()
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
