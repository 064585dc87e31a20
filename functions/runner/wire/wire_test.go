package wire

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// recorder is a sink that keeps everything.
type recorder struct {
	started   int
	output    [2]string
	skipped   [2]int64
	results   []execution.RichResult
	artifacts []execution.Artifact
}

func (r *recorder) Started() { r.started++ }
func (r *recorder) Output(s execution.Stream, data []byte, skipped int64) {
	r.output[s] += string(data)
	r.skipped[s] += skipped
}
func (r *recorder) Result(x execution.RichResult) { r.results = append(r.results, x) }
func (r *recorder) Artifact(x execution.Artifact) { r.artifacts = append(r.artifacts, x) }

var generous = Limits{Output: 1 << 20, Results: 10, ResultBytes: 1 << 20, Artifacts: 10, ArtifactBytes: 1 << 20}

// serve runs a server beside a client that executes run, and returns what the
// client got. The server's function ends before serve returns.
func serve(t *testing.T, run Run, server func(*Server)) (*recorder, Outcome, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = theirs.Close() }()
		server(NewServer(theirs))
	}()
	got := &recorder{}
	outcome, err := NewClient(ours, "t").Execute(t.Context(), run, got)
	_ = ours.Close()
	<-done
	return got, outcome, err
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// greet is how a runner begins a connection.
func greet(t *testing.T, s *Server) {
	t.Helper()
	check(t, s.Ready())
	if h, err := s.Hello(); err != nil || h != (Hello{Version: Version, Token: "t", Role: RoleRun}) {
		t.Errorf("the hello is %+v, %v", h, err)
	}
}

func TestRun(t *testing.T) {
	run := Run{
		Language: "python", Code: []byte("\x00\xff"), Stdin: []byte("in"), Args: []string{"a", ""},
		Env: map[string]string{"A": ""}, Files: []File{{Path: "p", Content: []byte{}}}, Limits: generous,
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 10_000) // several pieces
	want := Outcome{Status: execution.StatusFailed, ExitCode: 3, Start: 2, Run: 5, Notes: []string{"n"}}
	got, outcome, err := serve(t, run, func(s *Server) {
		greet(t, s)
		received, err := s.ReadRun()
		check(t, err)
		if !reflect.DeepEqual(received, run) {
			t.Errorf("the runner got %+v", received)
		}
		check(t, s.Started(), s.Output(execution.Stdout, []byte("one"), 0), s.Output(execution.Stderr, []byte("err"), 0), s.Output(execution.Stdout, []byte("two"), 7))
		check(t, s.BeginResult([]Part{{"text/html", 4}, {"text/plain", 1}}, 3), s.Content([]byte("<b>\xffb")), s.EndItem(""))
		check(t, s.BeginResult([]Part{{"image/png", int64(len(large))}}, 6), s.Content(large), s.EndItem(""))
		check(t, s.Artifact(execution.Artifact{Path: "a", Size: 2, MIME: "text/plain"}, strings.NewReader("é")))
		check(t, s.Artifact(execution.Artifact{Path: "nul", Size: 1}, strings.NewReader("\x00")))
		check(t, s.Artifact(execution.Artifact{Path: "link", Size: 9, Omitted: "symbolic link"}, nil))
		check(t, s.Artifact(execution.Artifact{Path: "empty"}, strings.NewReader("")), s.Exit(want))
	})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(outcome, want) {
		t.Errorf("the outcome is %+v", outcome)
	}
	wanted := &recorder{
		started: 1, output: [2]string{"onetwo", "err"}, skipped: [2]int64{7, 0},
		results: []execution.RichResult{
			{MIME: "text/html", Data: "<b>\uFFFD", Position: 3, Alternatives: []execution.Representation{{MIME: "text/plain", Data: "b"}}},
			{MIME: "image/png", Data: base64.StdEncoding.EncodeToString(large), Position: 6, Alternatives: []execution.Representation{}},
		},
		artifacts: []execution.Artifact{
			{Path: "a", Size: 2, MIME: "text/plain", Encoding: "utf-8", Content: "é"}, {Path: "nul", Size: 1, Encoding: "base64", Content: "AA=="},
			{Path: "link", Size: 9, Encoding: "utf-8", Omitted: "symbolic link"}, {Path: "empty", Encoding: "utf-8"},
		},
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("the sink got\n%+v, not\n%+v", got, wanted)
	}
}

// TestContentThatEndsEarly: a result is dropped, an artifact says so.
func TestContentThatEndsEarly(t *testing.T) {
	got, _, err := serve(t, Run{Limits: generous}, func(s *Server) {
		greet(t, s)
		_, err := s.ReadRun()
		check(t, err, s.Started())
		check(t, s.BeginResult([]Part{{"image/png", 5}}, 0), s.Content([]byte("x")), s.EndItem(Unreadable))
		if err := s.Artifact(execution.Artifact{Path: "a", Size: 5}, strings.NewReader("xy")); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("Artifact returned %v", err)
		}
		check(t, s.BeginResult([]Part{{"text/plain", 2}}, 0), s.Content([]byte("ok")), s.EndItem(""), s.Exit(Outcome{}))
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &recorder{
		started: 1, results: []execution.RichResult{{MIME: "text/plain", Data: "ok", Alternatives: []execution.Representation{}}},
		artifacts: []execution.Artifact{{Path: "a", Size: 5, Encoding: "utf-8", Omitted: Unreadable}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the sink got %+v", got)
	}
}

// raw is a frame whatever is in it.
func raw(t frameType, payload string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{byte(t)}, uint32(len(payload))), payload...)
}

// TestRunnerThatIsNoLongerItself: what the protocol or the limits do not allow
// is an error, and what came before it is kept.
func TestRunnerThatIsNoLongerItself(t *testing.T) {
	output := func(n int) []byte { return raw(frameStdout, strings.Repeat("\x00", 8)+strings.Repeat("x", n)) }
	tests := []struct {
		name   string
		frames [][]byte
	}{
		{"unknown frame", [][]byte{raw('?', "")}},
		{"a second ready", [][]byte{raw(frameReady, "")}},
		{"run", [][]byte{raw(frameRun, "{}")}},
		{"short output", [][]byte{raw(frameStdout, "1234567")}},
		{"negative skip", [][]byte{raw(frameStdout, strings.Repeat("\xff", 8))}},
		{"too much output", [][]byte{output(60), output(41)}},
		{"frame beyond the limit", [][]byte{{byte(frameStdout), 0xff, 0xff, 0xff, 0xff}}},
		{"content without an item", [][]byte{raw(frameData, "x")}},
		{"end without an item", [][]byte{raw(frameEnd, "")}},
		{"an item within another", [][]byte{raw(frameResult, "{}"), raw(frameArtifact, "{}")}},
		{"an item that is no JSON", [][]byte{raw(frameArtifact, "{")}},
		{"too many results", [][]byte{raw(frameResult, "{}"), raw(frameEnd, ""), raw(frameResult, "{}")}},
		{"too many artifacts", [][]byte{raw(frameArtifact, "{}"), raw(frameEnd, ""), raw(frameArtifact, "{}")}},
		{"parts larger than the content", [][]byte{raw(frameResult, `{"parts":[{"mime":"a/b","size":9}]}`), raw(frameData, "x"), raw(frameEnd, "")}},
		{"too much content", [][]byte{raw(frameResult, "{}"), raw(frameData, strings.Repeat("x", 101))}},
		{"exit that is no JSON", [][]byte{raw(frameExit, "x")}},
		{"failure that is no JSON", [][]byte{raw(frameFailure, "x")}},
		{"nothing more", nil},
		{"half a frame", [][]byte{output(10)[:9]}},
	}
	limits := Limits{Output: 100, Results: 1, ResultBytes: 100, Artifacts: 1, ArtifactBytes: 100}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				s := NewServer(theirs)
				greet(t, s)
				_, err := s.ReadRun()
				check(t, err, s.Output(execution.Stderr, []byte("before"), 0))
				for _, f := range tt.frames {
					if _, err := theirs.Write(f); err != nil {
						break // the client has had enough
					}
				}
				_ = theirs.Close()
			}()
			got := &recorder{}
			outcome, err := NewClient(ours, "t").Execute(t.Context(), Run{Limits: limits}, got)
			_ = ours.Close()
			<-done
			if err == nil {
				t.Errorf("no error, but the outcome %+v", outcome)
			}
			if got.output[execution.Stderr] != "before" {
				t.Errorf("the sink got %+v", got)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	_, _, err := serve(t, Run{Limits: generous}, func(s *Server) {
		greet(t, s)
		_, err := s.ReadRun()
		check(t, err, s.Fail(&Failure{Code: FailureUsed, Detail: "d"}))
	})
	var failure *Failure
	if !errors.As(err, &failure) || failure.Code != FailureUsed || failure.Detail != "d" {
		t.Errorf("the error is %v", err)
	}
}

// TestI8Cancel: the end of the context reaches the runner, whose last report
// still counts; one that says nothing is not waited for.
func TestI8Cancel(t *testing.T) {
	for _, silent := range []bool{false, true} {
		ours, theirs := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s := NewServer(theirs)
			greet(t, s)
			_, err := s.ReadRun()
			check(t, err, s.Started())
			cancel()
			s.AwaitEnd()
			if !silent {
				check(t, s.Exit(Outcome{Status: execution.StatusCancelled}))
			}
			s.AwaitEnd() // the client closes
		}()
		outcome, err := NewClient(ours, "t").Execute(ctx, Run{Limits: generous}, &recorder{})
		_ = ours.Close()
		<-done
		switch {
		case silent && !errors.Is(err, context.Canceled):
			t.Errorf("the error of a silent runner is %v", err)
		case !silent && (err != nil || outcome.Status != execution.StatusCancelled):
			t.Errorf("the outcome is %+v, %v", outcome, err)
		}
	}
}

// TestNothingIsSentInADeadContext: a runner that has had its hello gets no run.
func TestNothingIsSentInADeadContext(t *testing.T) {
	ours, theirs := net.Pipe()
	client := NewClient(ours, "t")
	done := make(chan error, 1)
	go func() {
		s := NewServer(theirs)
		check(t, s.Ready())
		if _, err := s.Hello(); err != nil {
			t.Error(err)
		}
		_, err := theirs.Read(make([]byte, 1))
		done <- err
	}()
	if err := client.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Execute(ctx, Run{Limits: generous}, &recorder{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	_ = ours.Close()
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Errorf("the runner read: %v", err)
	}
}

func TestReadyEndsWithItsContext(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := NewClient(ours, "t").Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

// TestLengthThatLies: memory follows what was sent, not what was announced.
func TestLengthThatLies(t *testing.T) {
	announced := append([]byte{byte(frameRun)}, 0, 0xff, 0xff, 0xff)
	f := frameReader{r: bytes.NewReader(append(announced, "few"...)), max: maxRunFrame}
	if _, _, err := f.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the error is %v", err)
	}
	if cap(f.buf) > 256<<10 {
		t.Errorf("%d bytes were allocated for 3", cap(f.buf))
	}
}
