package wire

import (
	"encoding/json"
	"fmt"
	"io"
)

// ReadOperation reads what a connection of RoleSession is for.
func (s *Server) ReadOperation() (Operation, error) {
	t, n, err := s.frames.head()
	switch {
	case err != nil:
		return Operation{}, fmt.Errorf("reading the operation: %w", err)
	case t != frameOperation || n > maxOperation:
		return Operation{}, fmt.Errorf("%w: %q of %d bytes instead of an operation", errFrame, t, n)
	}
	if err := s.frames.fill(n); err != nil {
		return Operation{}, fmt.Errorf("reading the operation: %w", err)
	}
	var op Operation
	if err := json.Unmarshal(s.frames.buf, &op); err != nil {
		return Operation{}, fmt.Errorf("%w: operation: %w", errFrame, err)
	}
	return op, nil
}

// Received is the content that the other end writes, up to its end.
func (s *Server) Received() io.Reader {
	s.frames.max = maxFrame
	return &content{frames: &s.frames}
}

// File sends a file's state.
func (s *Server) File(f SessionFile) error { return s.sendJSON(frameFile, f) }

// Send sends content of size bytes and its end. When from has fewer, the end
// says so.
func (s *Server) Send(from io.Reader, size int64) error { return s.content(from, size) }

// ContentWriter sends what is written to it as content, which EndItem ends.
func (s *Server) ContentWriter() io.Writer { return contentWriter{s} }

type contentWriter struct{ server *Server }

func (w contentWriter) Write(p []byte) (int, error) {
	if err := w.server.Content(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Reply ends an operation.
func (s *Server) Reply(r Reply) error { return s.sendJSON(frameReply, r) }

// SessionExit is Exit for a run in a session.
func (s *Server) SessionExit(o SessionOutcome) error { return s.sendJSON(frameExit, o) }
