package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/preheat-dev/preheat/api/execution"
)

// Server is the runner's end of a connection. Its writing methods may be
// called from several goroutines; each frame is written whole.
type Server struct {
	in     *bufio.Reader
	frames frameReader
	// run is the length of the run's payload, once hasRun says that its head
	// has been read.
	run    int
	hasRun bool

	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewServer returns a server on conn. The caller keeps the ownership of conn.
func NewServer(conn io.ReadWriter) *Server {
	in := bufio.NewReaderSize(conn, 32<<10)
	return &Server{in: in, frames: frameReader{r: in, max: maxRunFrame}, w: conn}
}

// Hello reads what the connection begins with. It reads no more than a hello is
// long. The error is a *Failure when the runner does not speak its version or role.
func (s *Server) Hello() (Hello, error) {
	t, n, err := s.frames.head()
	switch {
	case err != nil:
		return Hello{}, fmt.Errorf("reading the hello: %w", err)
	case t == frameRun:
		s.run, s.hasRun = n, true
		return s.helloOfRun()
	case t != frameHello || n > maxHello:
		return Hello{}, fmt.Errorf("%w: %q of %d bytes instead of hello", errFrame, t, n)
	}
	if err := s.frames.fill(n); err != nil {
		return Hello{}, fmt.Errorf("reading the hello: %w", err)
	}
	var h Hello
	if err := json.Unmarshal(s.frames.buf, &h); err != nil {
		return Hello{}, fmt.Errorf("%w: hello: %w", errFrame, err)
	}
	if !speaks(h) {
		return Hello{}, &Failure{
			Code:   FailureVersion,
			Detail: fmt.Sprintf("the runner speaks versions %d to %d and has no version %d with the role %.20q", oldest, Version, h.Version, h.Role),
		}
	}
	return h, nil
}

// speaks reports whether the runner speaks the version and the role of h.
func speaks(h Hello) bool {
	switch h.Role {
	case RoleRun:
		return h.Version > oldest && h.Version <= Version
	case RoleSession:
		return h.Version >= sessions && h.Version <= Version
	}
	return false
}

// helloOfRun is the hello of version 1, which is how the run begins.
func (s *Server) helloOfRun() (Hello, error) {
	h := Hello{Version: oldest, Role: RoleRun}
	start, err := s.in.Peek(min(s.run, maxHello))
	if err != nil {
		return Hello{}, fmt.Errorf("reading the token of the run: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(start))
	for _, want := range []json.Token{json.Delim('{'), "token"} {
		if got, err := d.Token(); err != nil || got != want {
			return h, nil // it has none
		}
	}
	if got, err := d.Token(); err == nil {
		h.Token, _ = got.(string)
	}
	return h, nil
}

// AwaitRun returns when the head of the run is there. It reads no more than that.
func (s *Server) AwaitRun() error {
	if s.hasRun {
		return nil
	}
	t, n, err := s.frames.head()
	if err != nil {
		return fmt.Errorf("waiting for the run: %w", err)
	}
	if t != frameRun {
		return fmt.Errorf("%w: %q instead of run", errFrame, t)
	}
	s.run, s.hasRun = n, true
	return nil
}

// ReadRun reads the run.
func (s *Server) ReadRun() (Run, error) {
	if err := s.AwaitRun(); err != nil {
		return Run{}, err
	}
	err := s.frames.fill(s.run)
	payload := s.frames.buf
	s.frames.buf = nil // it may be large, and little comes after it
	if err != nil {
		return Run{}, fmt.Errorf("reading the run: %w", err)
	}
	var r Run
	if err := json.Unmarshal(payload, &r); err != nil {
		return Run{}, fmt.Errorf("%w: run: %w", errFrame, err)
	}
	return r, nil
}

// readiness is the payload of frameReady.
type readiness struct {
	Version int `json:"version"`
}

// AwaitEnd returns when execute cancels or goes away.
func (s *Server) AwaitEnd() {
	// A cancel frame, any other frame (none is allowed now) and the end of
	// the connection all mean the same.
	_, _, _ = s.frames.next()
}

// Ready says that a run can be taken.
func (s *Server) Ready() error { return s.sendJSON(frameReady, readiness{Version}) }

// Started says that the program has been handed over.
func (s *Server) Started() error { return s.send(frameStarted, nil) }

// Output sends a piece of a stream, skipped bytes after the piece before it.
func (s *Server) Output(stream execution.Stream, data []byte, skipped int64) error {
	t := frameStdout
	if stream == execution.Stderr {
		t = frameStderr
	}
	payload := make([]byte, 8, 8+len(data))
	binary.BigEndian.PutUint64(payload, uint64(skipped))
	return s.send(t, append(payload, data...))
}

// BeginResult opens a rich result, the contents of whose parts follow one after
// the other. position counts the bytes of stdout before it.
func (s *Server) BeginResult(parts []Part, position int64) error {
	return s.sendJSON(frameResult, resultHead{MIME: parts[0].MIME, Position: position, Parts: parts})
}

// Content sends bytes of the open item.
func (s *Server) Content(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), pieceLen)
		if err := s.send(frameData, p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// EndItem ends the open item. broken says why its content is not whole, if it
// is not: execute then drops a result, and an artifact's content.
func (s *Server) EndItem(broken string) error { return s.send(frameEnd, []byte(broken)) }

// Artifact sends an artifact with a.Size bytes of content, or none if content
// is nil. When it has fewer, execute gets the artifact without any.
func (s *Server) Artifact(a execution.Artifact, content io.Reader) error {
	size := a.Size
	if content == nil {
		content, size = eof{}, 0
	}
	if err := s.sendJSON(frameArtifact, a); err != nil {
		return err
	}
	return s.content(content, size)
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// Unreadable is why an item is not whole whose content cannot be read.
const Unreadable = "unreadable"

// content sends the content of the open item, a piece at a time, and ends it.
func (s *Server) content(content io.Reader, size int64) error {
	piece := make([]byte, min(pieceLen, size))
	for size > 0 {
		n, err := io.ReadFull(content, piece[:min(pieceLen, size)])
		if err != nil {
			return errors.Join(io.ErrUnexpectedEOF, s.EndItem(Unreadable))
		}
		if err := s.send(frameData, piece[:n]); err != nil {
			return err
		}
		size -= int64(n)
	}
	return s.EndItem("")
}

// Exit sends the terminal frame of a run that was carried out.
func (s *Server) Exit(o Outcome) error { return s.sendJSON(frameExit, o) }

// Fail sends the terminal frame of a run that was not.
func (s *Server) Fail(f *Failure) error { return s.sendJSON(frameFailure, f) }

func (s *Server) sendJSON(t frameType, v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = writeJSON(s.w, t, v)
	}
	return s.err
}

func (s *Server) send(t frameType, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = writeFrame(s.w, t, payload)
	}
	return s.err
}
