package pool_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// TestI10IdempotencyKeyOfAllServices sends a request with a key to two services
// at once and again: it runs once, and another one under its key nowhere.
func TestI10IdempotencyKeyOfAllServices(t *testing.T) {
	_, _, replicas := twoReplicas(t, 2)
	urls := []string{service(t, replicas[0]), service(t, replicas[1])}
	send := func(ctx context.Context, url, body string) (int, string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/sandbox/execute", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		req.Header.Set("Content-Type", execution.MediaJSON)
		req.Header.Set(execution.HeaderIdempotencyKey, "one")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return res.StatusCode, string(text)
	}
	const program = `{"language":"python","code":"print(1)"}`
	var mu sync.Mutex
	answers := map[string]int{}
	for range 2 {
		var sent sync.WaitGroup
		for _, url := range urls {
			sent.Go(func() {
				status, text := send(t.Context(), url, program)
				if status != http.StatusOK {
					t.Errorf("status %d: %s", status, text)
				}
				mu.Lock()
				defer mu.Unlock()
				answers[text]++
			})
		}
		sent.Wait()
	}
	if len(answers) != 1 {
		t.Errorf("%d answers: %v", len(answers), answers)
	}
	for _, url := range urls {
		if status, text := send(t.Context(), url, `{"language":"python","code":"print(2)"}`); status != http.StatusUnprocessableEntity {
			t.Errorf("status %d: %s", status, text)
		}
	}
}
