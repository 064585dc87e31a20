package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// script is a connection whose peer says what it has to say and no more.
type script struct {
	net.Conn
	r io.Reader
}

func (s *script) Read(p []byte) (int, error)       { return s.r.Read(p) }
func (s *script) Write(p []byte) (int, error)      { return len(p), nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// FuzzFrames: what is a frame is the same after writing and reading it again,
// and everything else is an error.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(raw(frameReady, ""))
	f.Add(append(raw(frameStdout, "12345678data"), raw(frameExit, "{}")...))
	f.Add([]byte{byte(frameRun), 0xff, 0xff, 0xff, 0xff, 1})
	f.Add(raw(frameRun, strings.Repeat("x", 70<<10))[:66<<10])
	f.Fuzz(func(t *testing.T, data []byte) {
		in := frameReader{r: bytes.NewReader(data), max: maxFrame}
		var again bytes.Buffer
		for {
			kind, payload, err := in.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errFrame) {
					t.Fatalf("the error is %v", err)
				}
				break
			}
			if err := writeFrame(&again, kind, payload); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(data, again.Bytes()) {
			t.Fatalf("%q was read as %q", data, again.Bytes())
		}
		if cap(in.buf) > 2*len(data)+256<<10 {
			t.Fatalf("%d bytes were allocated for %d", cap(in.buf), len(data))
		}
	})
}

// FuzzClient: whatever a runner sends, the client takes no more than the
// limits allow.
func FuzzClient(f *testing.F) {
	ready := raw(frameReady, "")
	add := func(frames ...[]byte) { f.Add(bytes.Join(append([][]byte{ready}, frames...), nil)) }
	add(raw(frameStarted, ""), raw(frameStdout, "\x00\x00\x00\x00\x00\x00\x00\x05data"), raw(frameExit, `{"status":"succeeded"}`))
	add(raw(frameResult, `{"mime":"text/html"}`), raw(frameData, "<b>"), raw(frameStderr, "\x00\x00\x00\x00\x00\x00\x00\x00x"), raw(frameEnd, ""))
	add(raw(frameArtifact, `{"path":"a","size":3}`), raw(frameData, "\xff\x00"), raw(frameEnd, "unreadable"))
	add(raw(frameFailure, `{"code":"used"}`))
	f.Add(append(raw(frameReady, `{"version":2}`), raw(frameExit, "{}")...))
	f.Add(append(raw(frameReady, `{"version":0}`), raw(frameExit, "{}")...))
	limits := Limits{Output: 64, Results: 2, ResultBytes: 64, Artifacts: 2, ArtifactBytes: 64}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := &recorder{}
		_, _ = NewClient(&script{r: bytes.NewReader(data)}, "t").Execute(t.Context(), Run{Limits: limits}, got)
		if len(got.output[0]) > 64 || len(got.output[1]) > 64 || len(got.results) > 2 || len(got.artifacts) > 2 {
			t.Fatalf("more than the limits: %+v", got)
		}
		for _, a := range got.artifacts {
			if a.Omitted != "" && a.Content != "" {
				t.Fatalf("an artifact both with content and without: %+v", a)
			}
		}
	})
}

// FuzzReadRun: whatever execute sends, it is a hello and a run or an error, and
// the hello takes no more than it may.
func FuzzReadRun(f *testing.F) {
	run := raw(frameRun, `{"token":"t","language":"python","code":"cHJpbnQoMSk=","limits":{"timeout":1000000000}}`)
	f.Add(run)
	f.Add(append(raw(frameHello, `{"version":2,"token":"t","role":"run"}`), run...))
	f.Add(append(raw(frameHello, `{"version":3,"role":"attach"}`), run...))
	f.Add(raw(frameHello, strings.Repeat("x", maxHello+1)))
	f.Add(raw(frameRun, `{"code":"?"}`))
	f.Add(raw(frameRun, `{"token":{"token":[`))
	f.Add(raw(frameCancel, ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewServer(&script{r: bytes.NewReader(data)})
		hello, err := s.Hello()
		if cap(s.frames.buf) > 2*maxHello {
			t.Fatalf("%d bytes were allocated for a hello", cap(s.frames.buf))
		}
		if err != nil {
			return
		}
		if hello.Version < oldest || hello.Version > Version || hello.Role != RoleRun || len(hello.Token) > maxHello {
			t.Fatalf("the hello is %+v", hello)
		}
		run, err := s.ReadRun()
		if err == nil && len(run.Code) > len(data) {
			t.Fatalf("%d bytes of code from %d", len(run.Code), len(data))
		}
	})
}
