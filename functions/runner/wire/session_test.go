package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// between connects a client and a runner that serves one operation, and returns
// the client and what waits for the runner's end.
func between(t *testing.T, serve func(*Server, Operation) error) (*Client, func()) {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = theirs.Close() }()
		s := NewServer(theirs)
		check(t, s.Ready())
		h, err := s.Hello()
		check(t, err)
		if h.Role != RoleSession || h.Token != "t" {
			t.Errorf("the hello is %+v", h)
		}
		op, err := s.ReadOperation()
		check(t, err)
		if err := serve(s, op); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	}()
	return NewClient(ours, "t"), func() { _ = ours.Close(); <-done }
}

func TestOpenSession(t *testing.T) {
	want := Operation{Session: "id", Kind: OperationOpen, Idle: time.Minute, Lifetime: time.Hour}
	run := Run{Language: "python", Code: []byte{}, Files: []File{{Path: "a", Content: []byte("b")}}}
	c, end := between(t, func(s *Server, op Operation) error {
		got, err := s.ReadRun()
		if err != nil || op != want || !reflect.DeepEqual(got, run) {
			t.Errorf("%+v with %+v, %v", op, got, err)
		}
		return s.Reply(Reply{})
	})
	defer end()
	if err := c.Open(t.Context(), Operation{Session: "id", Idle: time.Minute, Lifetime: time.Hour}, run); err != nil {
		t.Fatal(err)
	}
}

// TestRunInSession: a run has what a single run has, its state, and an end when
// its caller's context ends.
func TestRunInSession(t *testing.T) {
	want := SessionOutcome{Outcome: Outcome{Status: execution.StatusCancelled, ExitCode: 130}, State: execution.SessionKept, Sequence: 7}
	ctx, cancel := context.WithCancel(t.Context())
	c, end := between(t, func(s *Server, op Operation) error {
		if _, err := s.ReadRun(); err != nil || op.Execution != "e" || op.Kind != OperationRun {
			t.Errorf("%+v, %v", op, err)
		}
		check(t, s.Started(), s.Output(execution.Stdout, []byte("1"), 0))
		cancel()
		s.AwaitEnd()
		return s.SessionExit(want)
	})
	defer end()
	sink := &recorder{}
	got, err := c.RunIn(ctx, Operation{Session: "id", Execution: "e"}, Run{Limits: generous}, sink)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAsk(t *testing.T) {
	files := []SessionFile{{Path: "a", Size: 1, ETag: `"1"`}, {Path: "b/ü"}}
	c, end := between(t, func(s *Server, op Operation) error {
		if op.Kind != OperationList || op.Max != 2 {
			t.Errorf("%+v", op)
		}
		for _, f := range files {
			check(t, s.File(f))
		}
		return s.Reply(Reply{More: true})
	})
	defer end()
	var got []SessionFile
	reply, err := c.Ask(t.Context(), Operation{Kind: OperationList, Max: 2}, func(f SessionFile) { got = append(got, f) })
	if err != nil || !reply.More || !reflect.DeepEqual(got, files) {
		t.Errorf("%+v, %+v, %v", reply, got, err)
	}
}

// TestContents: contents pass through in pieces, in both directions.
func TestContents(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	t.Run("read", func(t *testing.T) {
		c, end := between(t, func(s *Server, op Operation) error {
			check(t, s.File(SessionFile{Path: op.Path, Size: int64(len(content))}))
			return s.Send(bytes.NewReader(content), int64(len(content)))
		})
		defer end()
		f, r, err := c.Read(t.Context(), Operation{Path: "p", Length: -1})
		check(t, err)
		got, err := io.ReadAll(r)
		if err != nil || f.Path != "p" || !bytes.Equal(got, content) {
			t.Errorf("%+v, %d bytes, %v", f, len(got), err)
		}
	})
	t.Run("a file that became shorter", func(t *testing.T) {
		c, end := between(t, func(s *Server, _ Operation) error {
			check(t, s.File(SessionFile{Size: 10}))
			_ = s.Send(strings.NewReader("short"), 10)
			return nil
		})
		defer end()
		_, r, err := c.Read(t.Context(), Operation{})
		check(t, err)
		if got, err := io.ReadAll(r); err == nil {
			t.Errorf("%q is all, it says", got)
		}
	})
	t.Run("write", func(t *testing.T) {
		c, end := between(t, func(s *Server, op Operation) error {
			got, err := io.ReadAll(s.Received())
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			check(t, s.File(SessionFile{Path: op.Path}))
			return s.Reply(Reply{Created: true})
		})
		defer end()
		f, created, err := c.Write(t.Context(), Operation{Path: "p"}, bytes.NewReader(content))
		if err != nil || f.Path != "p" || !created {
			t.Errorf("%+v, %v, %v", f, created, err)
		}
	})
	t.Run("a body that ends early", func(t *testing.T) {
		broken := errors.New("the body broke")
		c, end := between(t, func(s *Server, _ Operation) error {
			if got, err := io.ReadAll(s.Received()); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%q, %v", got, err)
			}
			return nil
		})
		_, _, err := c.Write(t.Context(), Operation{}, io.MultiReader(strings.NewReader("part"), failing{broken}))
		end()
		if !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestOperationFailures: each operation can fail in place of what is to come.
func TestOperationFailures(t *testing.T) {
	want := &Failure{Code: FailureBusy, Detail: "e"}
	for name, do := range map[string]func(*Client) error{
		"open": func(c *Client) error { return c.Open(t.Context(), Operation{}, Run{}) },
		"run": func(c *Client) error {
			_, err := c.RunIn(t.Context(), Operation{}, Run{}, &recorder{})
			return err
		},
		"ask": func(c *Client) error {
			_, err := c.Ask(t.Context(), Operation{Kind: OperationStatus}, nil)
			return err
		},
		"read": func(c *Client) error {
			_, _, err := c.Read(t.Context(), Operation{})
			return err
		},
		"archive": func(c *Client) error {
			_, err := c.Archive(t.Context(), Operation{})
			return err
		},
		"write": func(c *Client) error {
			_, _, err := c.Write(t.Context(), Operation{}, strings.NewReader(""))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, end := between(t, func(s *Server, op Operation) error {
				if op.Kind == OperationOpen || op.Kind == OperationRun {
					_, err := s.ReadRun()
					check(t, err)
				}
				if op.Kind == OperationWrite {
					_, err := io.ReadAll(s.Received())
					check(t, err)
				}
				return s.Fail(want)
			})
			defer end()
			var failure *Failure
			if err := do(c); !errors.As(err, &failure) || *failure != *want {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestRunnerWithoutSessions: an older runner is not asked for what it does not know.
func TestRunnerWithoutSessions(t *testing.T) {
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(t, writeFrame(theirs, frameReady, []byte(`{"version":2}`)))
	}()
	if err := NewClient(ours, "t").Open(t.Context(), Operation{}, Run{}); !errors.Is(err, ErrNoSessions) {
		t.Error(err)
	}
	<-done
}
