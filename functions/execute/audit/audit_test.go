package audit

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
)

func completed(t *testing.T, id, data string) *cloudevent.Event {
	t.Helper()
	e := cloudevent.New()
	e.SetID(id)
	e.SetSource("/preheat/execute")
	e.SetType("dev.preheat.execution.completed")
	if err := e.SetData("application/json", map[string]string{"stdout": data}); err != nil {
		t.Fatal(err)
	}
	return &e
}

func start(t *testing.T, c Config) *Sink {
	t.Helper()
	s, err := New(c, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func count(s *Sink, result string) int {
	return int(testutil.ToFloat64(s.events.WithLabelValues(result)))
}

func TestSend(t *testing.T) {
	type got struct {
		header http.Header
		body   string
	}
	seen := make(chan got, 10)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- got{r.Header, string(body)}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer web.Close()
	s := start(t, Config{URL: web.URL, Overrides: `{"extensions":{"team":"blue"}}`})
	e := completed(t, "one", "1")
	s.Send(e)
	s.Send(completed(t, "nº 2", "2"))
	s.Close(t.Context())
	bodies := map[string]string{"one": `{"stdout":"1"}`, "n%C2%BA%202": `{"stdout":"2"}`}
	for range len(bodies) {
		g := <-seen
		if id := g.header.Get("Ce-Id"); bodies[id] != g.body || g.header.Get("Ce-Team") != "blue" {
			t.Errorf("the sink got %v %s, want %v of team blue", g.header, g.body, bodies)
		}
	}
	if n := count(s, "sent"); n != 2 {
		t.Errorf("%d events are counted as sent, want 2", n)
	}
	if len(e.Extensions()) != 0 {
		t.Errorf("the caller's event has got %v", e.Extensions())
	}
	s.Send(e)
	if n := count(s, "dropped"); n != 1 {
		t.Errorf("%d events are counted as dropped after the end, want 1", n)
	}
}

// A sink that fails for a while gets its events all the same; one that refuses
// an event is not asked again.
func TestTries(t *testing.T) {
	for status, want := range map[int]struct{ tries, sent, failed int32 }{
		http.StatusServiceUnavailable: {2, 1, 0},
		http.StatusBadRequest:         {1, 0, 1},
	} {
		var calls atomic.Int32
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 1 {
				w.WriteHeader(status)
			}
		}))
		s := start(t, Config{URL: web.URL})
		s.Send(completed(t, "one", "1"))
		s.Close(t.Context())
		web.Close()
		if got := calls.Load(); got != want.tries || count(s, "sent") != int(want.sent) || count(s, "failed") != int(want.failed) {
			t.Errorf("after %d: %d tries, %d sent, %d failed, want %+v", status, got, count(s, "sent"), count(s, "failed"), want)
		}
	}
}

// A sink that does not answer holds nobody up: the queue takes what it may,
// the rest is dropped, and the end does not wait for it.
func TestSinkThatHangs(t *testing.T) {
	arrived, release := make(chan struct{}, senders), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer web.Close()
	defer close(release)
	s := start(t, Config{URL: web.URL})
	s.Send(completed(t, "first", "1"))
	<-arrived // it is no longer in the queue
	large := strings.Repeat("x", 1<<20)
	const n = 40
	for range n {
		s.Send(completed(t, "large", large))
	}
	const fit = maxBytes/(1<<20) - 1 // the document around it counts as well
	if got := count(s, "dropped"); got != n-fit {
		t.Errorf("%d of %d large events are dropped, want %d", got, n, n-fit)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.Close(ended)
	if got := count(s, "failed"); got != fit+1 {
		t.Errorf("%d events have failed at the end, want %d", got, fit+1)
	}
}

// Events do not wait for one that is on its way, unless there are many.
func TestEventsAreSentSideBySide(t *testing.T) {
	arrived, release := make(chan struct{}, senders), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer web.Close()
	s := start(t, Config{URL: web.URL})
	for range senders {
		s.Send(completed(t, "one", "1"))
	}
	for range senders {
		<-arrived
	}
	close(release)
	s.Close(t.Context())
	if n := count(s, "sent"); n != senders {
		t.Errorf("%d events are counted as sent, want %d", n, senders)
	}
}

func TestSinkThatIsGone(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	web.Close()
	s := start(t, Config{URL: web.URL})
	s.Send(completed(t, "one", "1"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	s.Close(ctx)
	if got := count(s, "failed"); got != 1 {
		t.Errorf("%d events have failed, want 1", got)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{URL: "sink"}, {URL: "ftp://sink"}, {URL: "http://sink", Overrides: "{"},
		{URL: "http://sink", Overrides: `{"extensions":{"not-a-name":"x"}}`}, {URL: "https://sink", CACerts: "none"},
	} {
		if s, err := New(c, prometheus.NewRegistry(), slog.New(slog.DiscardHandler)); err == nil {
			s.Close(t.Context())
			t.Errorf("%+v is taken", c)
		}
	}
}
