package contract

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// A sink that is bound gets a completed event of each execution that an event
// asked for, which is each that came through chat, streamed ones included.
func TestSink(t *testing.T) {
	type audited struct {
		header http.Header
		body   []byte
	}
	seen := make(chan audited, 10)
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- audited{r.Header, body}
	}))
	defer sink.Close()
	p := product.Start(t, "K_SINK="+sink.URL, `K_CE_OVERRIDES={"extensions":{"team":"blue"}}`)

	program := execution.Request{Language: "python", Code: "print('seen')"}
	stream := []string{accept, execution.MediaSSE}
	for way, how := range map[string]struct {
		path   string
		header []string
		stdout string
		kept   int64
	}{
		"JSON":  {pathExecute, nil, "seen\n", 5},
		"event": {"/", binaryEvent("1"), "seen\n", 5},
		// The output of a stream is the caller's; the event says so.
		"stream": {pathExecute, stream, "", 0},
	} {
		res, body := p.Post(t, how.path, program, how.header...)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d: %s", way, res.StatusCode, body)
		}
		select {
		case got := <-seen:
			if got.header.Get("Ce-Type") != execution.TypeCompleted || got.header.Get("Ce-Team") != "blue" {
				t.Errorf("%s: the sink got %v", way, got.header)
			}
			var r execution.Result
			if err := json.Unmarshal(got.body, &r); err != nil || r.Stdout != how.stdout ||
				r.Truncated.Stdout.CapturedBytes != how.kept || r.Truncated.Stdout.TotalBytes != 5 || r.Truncated.Stdout.Truncated != (how.kept == 0) {
				t.Errorf("%s: %v in %s", way, err, got.body)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the sink got nothing", way)
		}
	}
}
