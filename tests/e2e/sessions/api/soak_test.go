package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/pause"
	"github.com/preheat-dev/preheat/tests/product"
)

// soakClients open sessions at once, more than there may be.
const soakClients = 16

// soak is many clients that use sessions of one server.
type soak struct {
	p *product.Product
	// refused counts the answers that no session was free.
	refused atomic.Int64
	// abandoned counts the sessions that nobody closed.
	abandoned atomic.Int64
	// used are the sandboxes that a session has had.
	used sync.Map
}

// Many sessions of many clients, each used five times and closed or abandoned:
// none is lost, none is served to another client, nothing is left of any (I1,
// I4, I13).
func TestSoak(t *testing.T) {
	total := fromEnvironment(t, "PREHEAT_TEST_SESSIONS", 48)
	const idle = 10
	p := product.Start(t, "PREHEAT_MAX_SESSIONS=14", "PREHEAT_MAX_POOL_SESSIONS=12", "PREHEAT_MAX_SANDBOXES=16", "PREHEAT_POOL_SIZE=4")
	rest := settled(t, p)
	s := &soak{p: p}
	numbers := make(chan int)
	var clients sync.WaitGroup
	for range soakClients {
		clients.Go(func() {
			for n := range numbers {
				if err := s.session(t.Context(), n, idle); err != nil {
					t.Errorf("session %d: %v", n, err)
				}
			}
		})
	}
	began := time.Now()
	for n := range total {
		numbers <- n
	}
	close(numbers)
	clients.Wait()
	took := time.Since(began)
	product.Eventually(t, patience, "the abandoned sessions end", func() bool {
		var list struct{ Sessions []execution.SessionEntry }
		p.Get(t, "/v1/sessions", &list)
		return len(list.Sessions) == 0
	})
	left := settled(t, p)
	product.Eventually(t, patience, "what the sessions had is removed", func() bool {
		left = p.Leftovers(t)
		now := left
		now.RSS, now.FDs = rest.RSS, rest.FDs
		return now == rest
	})
	t.Logf("%d sessions, %d of them abandoned, in %s; %d times none was free; RSS %d KiB, before %d; %d files, before %d",
		total, s.abandoned.Load(), took.Round(time.Millisecond), s.refused.Load(), left.RSS, rest.RSS, left.FDs, rest.FDs)
}

// settled waits until the pools are full and nobody uses them, and returns what
// there is then.
func settled(t *testing.T, p *product.Product) product.Leftovers {
	t.Helper()
	product.Eventually(t, patience, "the pools are full", func() bool {
		var state struct{ Pools []execution.PoolStatus }
		p.Get(t, "/v1/pools", &state)
		for _, pool := range state.Pools {
			if pool.Warm != pool.Desired || pool.Warming+pool.Claimed > 0 {
				return false
			}
		}
		return true
	})
	return p.Leftovers(t)
}

// session opens a session, uses it five times and closes it, or abandons it.
func (s *soak) session(ctx context.Context, n, idle int) error {
	path, err := s.open(ctx, fmt.Sprintf(`{"language":"python","idle_seconds":%d}`, idle))
	if err != nil {
		return err
	}
	for i := range 5 {
		code := "print(n, open('n').read())"
		want, state := fmt.Sprintf("%d %d\n", n, n), execution.SessionKept
		if i == 0 {
			code = fmt.Sprintf("import os; print('n' in globals(), os.listdir()); n = %d; open('n', 'w').write(str(n))", n)
			want, state = "False []\n", execution.SessionFresh
		}
		var r execution.SessionResult
		if err := s.ask(ctx, "POST", path+"/execute", request(code, ""), http.StatusOK, &r); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		if r.Stdout != want || r.State != state || r.Sequence != int64(i+1) {
			return fmt.Errorf("run %d wrote %q and %q (%s, %d), not %q", i, r.Stdout, r.Stderr, r.State, r.Sequence, want)
		}
		if owner, known := s.used.LoadOrStore(r.SandboxName, path); known && owner != path {
			return fmt.Errorf("sandbox %s was another session's", r.SandboxName)
		}
	}
	if n%4 == 0 {
		s.abandoned.Add(1)
		return nil
	}
	return s.ask(ctx, "DELETE", path, "", http.StatusNoContent, nil)
}

// open opens a session, and comes again while none is free.
func (s *soak) open(ctx context.Context, request string) (string, error) {
	for {
		res, err := send(ctx, s.p, "POST", "/v1/sessions", strings.NewReader(request))
		switch {
		case err != nil:
			return "", err
		case res.StatusCode == http.StatusCreated:
			return res.Header.Get("Location"), nil
		case res.StatusCode != http.StatusTooManyRequests:
			return "", fmt.Errorf("%s: %s", res.Status, res.body)
		}
		s.refused.Add(1)
		if !pause.For(ctx, 100*time.Millisecond) {
			return "", context.Cause(ctx)
		}
	}
}

func (s *soak) ask(ctx context.Context, method, path, body string, status int, v any) error {
	res, err := send(ctx, s.p, method, path, strings.NewReader(body))
	switch {
	case err != nil:
		return err
	case res.StatusCode != status:
		return fmt.Errorf("%s: %s", res.Status, res.body)
	case v == nil:
		return nil
	}
	return json.Unmarshal([]byte(res.body), v)
}
