package chat_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/client"
	"github.com/preheat-dev/preheat/functions/chat"
)

// A program run for others has chat's deadline: an execute that never answers
// ends in an error.
func TestExecutionsHaveADeadline(t *testing.T) {
	gone := make(chan struct{})
	c := testConfig()
	c.ExecuteTimeout = 10 * time.Millisecond
	c.ExecuteURL = serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/limits" {
			_, _ = w.Write([]byte(`{}`))
			return
		}
		<-r.Context().Done()
		close(gone)
	})
	function, err := chat.New(chat.Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	programs, err := function.Executions()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	exit, err := programs.Stream(ctx, execution.Request{Language: "python", Code: "x"}, client.Handler{})
	if exit != nil || err == nil || ctx.Err() != nil {
		t.Errorf("%v, %v", exit, err)
	}
	<-gone
}
