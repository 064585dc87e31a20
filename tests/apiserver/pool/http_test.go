package pool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/cloudevent"
	"github.com/preheat-dev/preheat/functions/execute/httpapi"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/internal/server"
)

// service serves a replica of execute over HTTP as its command does, and
// returns its URL.
func service(t *testing.T, p *kube.Pool) string {
	t.Helper()
	registry, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	executor := execute.New(p, execution.DefaultLimits(), execute.NewMetrics(registry), log)
	api := httpapi.New(executor, p, registry)
	events := cloudevent.New(cloudevent.Options{
		Executor: executor, API: api, Source: "/preheat/execute", Record: p, EventBytes: 1_000_000,
	})
	web, err := server.New(server.Config{Logger: log, Grace: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	events.RegisterExecute(web.App())
	api.Register(web.App())
	events.Register(web.App())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a service ended with %v", err)
		}
		api.Wait()
	})
	return "http://" + l.Addr().String()
}

// reply is what tells one completed event from another.
type reply struct{ id, sandbox, stdout string }

// post delivers an event in structured or binary mode.
func post(ctx context.Context, url, id string, structured bool) (reply, error) {
	const program = `{"language":"python","code":"print(1)"}`
	body, header := program, map[string]string{
		"Content-Type": execution.MediaJSON, "Ce-Specversion": "1.0", "Ce-Id": id, "Ce-Source": "/test", "Ce-Type": execution.TypeRequested,
	}
	if structured {
		body = fmt.Sprintf(`{"specversion": "1.0", "id": %q, "source": "/test", "type": %q, "data": %s}`, id, execution.TypeRequested, program)
		header = map[string]string{"Content-Type": execution.MediaCloudEvent}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/", strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	if res.StatusCode != http.StatusOK {
		return reply{}, fmt.Errorf("status %d: %s", res.StatusCode, text)
	}
	var r execution.Result
	if structured {
		var e struct {
			ID, Subject, Type string
			Data              execution.Result
		}
		err := json.Unmarshal(text, &e)
		return reply{e.ID, e.Subject, e.Data.Stdout}, err
	}
	err = json.Unmarshal(text, &r)
	return reply{res.Header.Get("Ce-Id"), res.Header.Get("Ce-Subject"), r.Stdout}, err
}

// TestI10OneRunPerEventOfAllServices delivers events several times to two
// services at once, in both modes, and again after the end: each runs once, and
// all its deliveries get the same reply.
func TestI10OneRunPerEventOfAllServices(t *testing.T) {
	sp, node, replicas := twoReplicas(t, 2)
	urls := []string{service(t, replicas[0]), service(t, replicas[1])}
	const events, deliveries = 4, 3
	for n := range events {
		id := fmt.Sprintf("événement %d", n)
		if n%2 == 0 {
			id = fmt.Sprintf("event-%d", n)
		}
		var mu sync.Mutex
		replies := map[reply]int{}
		deliver := func(url string, structured bool) {
			r, err := post(t.Context(), url, id, structured)
			if err != nil {
				t.Errorf("event %s: %v", id, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			replies[r]++
		}
		var wg sync.WaitGroup
		for range deliveries {
			for _, url := range urls {
				wg.Go(func() { deliver(url, false) })
				wg.Go(func() { deliver(url, true) })
			}
		}
		wg.Wait()
		for _, url := range urls {
			deliver(url, false)
			deliver(url, true)
		}
		if want := 2*len(urls)*deliveries + 2*len(urls); len(replies) != 1 {
			t.Errorf("event %s has the replies %v, want one for %d deliveries", id, replies, want)
		}
		for r := range replies {
			if r.id == "" || r.sandbox == "" || !strings.Contains(r.stdout, r.sandbox) {
				t.Errorf("event %s was answered with %v", id, r)
			}
		}
	}
	sp.Eventually("the pool is full again", func() bool { return len(sp.Pods("")) == 2 && sp.Warm() == 2 })
	if n := len(sp.Claims()); n != events {
		t.Errorf("%d claims are kept, want %d", n, events)
	}
	noFaults(t, node)
}
