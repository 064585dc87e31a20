package relay

import (
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/budget"
	"github.com/preheat-dev/preheat/internal/server"
)

// Transport sends requests to execute, with its deadline, and the id of the
// request that they are for. Bodies of answers break off when nothing comes of
// them for as long as Silence.
type Transport struct {
	Base     http.RoundTripper
	Deadline *Deadline
	// Root has requests for executions sent to execute's root, which takes them,
	// too.
	Root bool
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	w := NewWatchdog(req.Context())
	own := req.Clone(w.Context())
	if id := server.ID(req.Context()); id != "" {
		own.Header.Set(server.HeaderRequestID, id)
	}
	if base, ok := strings.CutSuffix(own.URL.Path, "/v1/sandbox/execute"); ok && t.Root {
		own.URL.Path = base + "/"
	}
	res, err := t.Deadline.Await(w, func() (*http.Response, error) { return t.Base.RoundTrip(own) })
	if err != nil {
		defer w.Stop()
		return nil, w.Explain(err)
	}
	body := &watchedBody{Reader: w.reader(res.Body, Silence), body: res.Body, w: w}
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); media != execution.MediaSSE {
		// It is held whole, and decoded.
		body.copies = 2
	}
	res.Body = body
	return res, nil
}

// watchedBody ends its call when it is closed.
type watchedBody struct {
	io.Reader
	body io.ReadCloser
	w    *Watchdog
	// copies is how often what is read counts as memory of the exchange.
	copies int64
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if full := budget.Take(b.w.Context(), b.copies*int64(n)); full != nil {
		return 0, full
	}
	return n, err
}

// Close leaves the connection to the next request if the body is all but read.
func (b *watchedBody) Close() error {
	defer b.w.Stop()
	b.w.drain(b.body)
	return b.body.Close()
}
