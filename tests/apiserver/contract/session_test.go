package contract_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/sandboxes"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
	"github.com/preheat-dev/preheat/tests/product"
)

// land is a pool of real sandboxes that replicas of execute share.
type land struct {
	*stage.Space
	t    *testing.T
	real *sandboxes.Node
}

func newLand(t *testing.T, warm int32) *land {
	t.Helper()
	return newLandOf(t, warm, 6)
}

func newLandOf(t *testing.T, warm, most int32) *land {
	t.Helper()
	real, err := sandboxes.New(filepath.Join(product.Root(t), "build"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &land{Space: shared.Space(t), t: t, real: real}
	t.Cleanup(func() {
		if err := real.Close(); err != nil {
			t.Error(err)
		}
	})
	node := l.Node(fakenode.Options{Start: real.Start, Ended: real.Ended, Deleted: func(pod *corev1.Pod) {
		if err := real.End(pod); err != nil {
			t.Error(err)
		}
	}})
	code := l.Pool("code", "python", warm)
	code.Spec.MaxSandboxes = ptr.To(most)
	l.Create(l.Template("python", node), code)
	return l
}

// replica starts a replica of execute that may open so many sessions.
func (l *land) replica(sessions int) *kube.Pool {
	l.t.Helper()
	p := l.ClaimantOf(kube.Config{MaxSessions: sessions, MaxPoolSessions: sessions})
	l.Eventually("the pool is known", func() bool { return len(p.Status()) == 1 && p.Status()[0].Warm > 0 })
	return p
}

func (l *land) open(p *kube.Pool, idle, lifetime time.Duration) (pool.Session, error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	return p.OpenSession(ctx, pool.SessionClaim{
		Claim:   pool.Claim{Language: "python", ID: "request", Deadline: time.Now().Add(lifetime)},
		Session: execution.NewSessionID(), Idle: idle, Files: []pool.File{{Path: "in.txt", Content: []byte("in")}},
	})
}

// said takes what a program writes to stdout.
type said struct{ text strings.Builder }

func (*said) Started()                                       {}
func (*said) Result(execution.RichResult)                    {}
func (*said) Artifact(execution.Artifact)                    {}
func (s *said) Output(_ execution.Stream, d []byte, _ int64) { s.text.Write(d) }

// run runs a cell by a replica, and returns what it wrote.
func (l *land) run(p *kube.Pool, id, code string) (pool.SessionOutcome, string, error) {
	l.t.Helper()
	s, err := p.Session(l.t.Context(), id)
	if err != nil {
		return pool.SessionOutcome{}, "", err
	}
	var out said
	o, err := s.Run(l.t.Context(), "execution", pool.Run{Language: "python", Code: []byte(code), Limits: pool.Limits{
		Timeout: time.Minute, Output: 1 << 20, TotalOutput: 1 << 24,
	}}, &out)
	return o, out.text.String(), err
}

// must is run whose cell writes want.
func (l *land) must(p *kube.Pool, id, code, want string) {
	l.t.Helper()
	if o, text, err := l.run(p, id, code); err != nil || text != want || o.Status != execution.StatusSucceeded {
		l.t.Errorf("%s: %+v, %q, %v", code, o, text, err)
	}
}

// ended waits until a session has ended, as a replica sees it.
func (l *land) ended(p *kube.Pool, id string, want execution.SessionEnd) {
	l.t.Helper()
	var over *pool.SessionEndedError
	var err error
	l.Eventually("the session has ended", func() bool {
		_, err = p.Session(l.t.Context(), id)
		return errors.As(err, &over)
	})
	if over.Reason != want {
		l.t.Errorf("it ended: %s, and not %s", over.Reason, want)
	}
}

// gone waits until nothing of a sandbox is left.
func (l *land) gone(sandbox string) {
	l.t.Helper()
	l.Eventually("the sandbox is gone", func() bool { return !l.real.Exists(sandbox) })
}

// TestI13SessionOutlivesReplicas: every replica serves a session, whichever opened
// it, also without a controller; it ends for all of them.
func TestI13SessionOutlivesReplicas(t *testing.T) {
	l := newLand(t, 2)
	controller := l.Controller()
	a, b := l.replica(3), l.replica(3)
	s, err := l.open(a, time.Hour, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	id := s.Info().ID
	l.must(a, id, "x = 1; print(open('in.txt').read())", "in\n")
	l.must(b, id, "x += 1; print(x)", "2\n")
	if list, err := b.Sessions(t.Context()); err != nil || len(list) != 1 || list[0].ID != id || list[0].Language != "python" || list[0].Idle != time.Hour {
		t.Errorf("%+v, %v", list, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	controller.Kill()
	l.must(b, id, "x += 1; print(x)", "3\n")
	l.Controller()
	c := l.replica(3)
	l.must(c, id, "x += 1; print(x)", "4\n")
	theirs, err := c.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, created, err := theirs.Write(t.Context(), "dir/out", strings.NewReader("text")); err != nil || !created {
		t.Errorf("%v, %v", created, err)
	}
	_, content, err := theirs.Open(t.Context(), "dir/out", 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(content); err != nil || string(text) != "ex" || content.Close() != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := b.EndSession(t.Context(), id); err != nil {
		t.Error(err)
	}
	l.ended(b, id, execution.SessionClosed)
	l.ended(c, id, execution.SessionClosed)
	if err := c.EndSession(t.Context(), id); err != nil {
		t.Errorf("ending it again: %v", err)
	}
	if _, err := theirs.Status(t.Context()); !errors.As(err, new(*pool.SessionEndedError)) {
		t.Errorf("whoever has it still: %v", err)
	}
	l.gone(s.Info().Sandbox)
}

// TestI4SessionsEndByThemselves: idle, old, and with their sandbox; each says why.
func TestI4SessionsEndByThemselves(t *testing.T) {
	l := newLand(t, 2)
	l.Controller()
	p := l.replica(3)
	for _, test := range []struct {
		idle, lifetime time.Duration
		do             func(s pool.Session)
		want           execution.SessionEnd
	}{
		{time.Second, time.Hour, func(pool.Session) {}, execution.SessionIdle},
		{time.Hour, 2 * time.Second, func(pool.Session) {}, execution.SessionExpired},
		{time.Hour, time.Hour, func(s pool.Session) {
			if err := l.real.Kill(t.Context(), s.Info().Sandbox); err != nil {
				t.Error(err)
			}
		}, execution.SessionSandboxLost},
	} {
		s, err := l.open(p, test.idle, test.lifetime)
		if err != nil {
			t.Fatal(err)
		}
		test.do(s)
		l.ended(p, s.Info().ID, test.want)
		if _, _, err := l.run(p, s.Info().ID, "print(1)"); !errors.As(err, new(*pool.SessionEndedError)) {
			t.Errorf("a run after its end: %v", err)
		}
		l.gone(s.Info().Sandbox)
	}
}

// TestSessionsAreBounded: the one too many is refused, no other is ended for it,
// and one that nobody opened is not there.
func TestSessionsAreBounded(t *testing.T) {
	l := newLand(t, 2)
	l.Controller()
	p := l.replica(1)
	s, err := l.open(p, time.Hour, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.open(p, time.Hour, time.Hour); !errors.Is(err, pool.ErrTooManySessions) {
		t.Errorf("the second: %v", err)
	}
	l.must(p, s.Info().ID, "print(1)", "1\n")
	for _, id := range []string{execution.NewSessionID()} {
		if _, err := p.Session(t.Context(), id); !errors.Is(err, pool.ErrNoSession) {
			t.Errorf("an unknown one: %v", err)
		}
		if err := p.EndSession(t.Context(), id); !errors.Is(err, pool.ErrNoSession) {
			t.Errorf("ending an unknown one: %v", err)
		}
	}
	if err := p.EndSession(t.Context(), s.Info().ID); err != nil {
		t.Error(err)
	}
	l.gone(s.Info().Sandbox)
	if s, err = l.open(p, time.Hour, time.Hour); err != nil {
		t.Fatalf("after its end: %v", err)
	}
	if err := p.EndSession(t.Context(), s.Info().ID); err != nil {
		t.Error(err)
	}
}
