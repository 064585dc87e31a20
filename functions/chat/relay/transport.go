package relay

import (
	"io"
	"net/http"

	"github.com/preheat-dev/preheat/internal/server"
)

// Transport sends requests to execute, with its deadline, and the id of the
// request that they are for. Bodies of answers break off when nothing comes of
// them for as long as Silence.
type Transport struct {
	Base     http.RoundTripper
	Deadline *Deadline
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	w := NewWatchdog(req.Context())
	own := req.Clone(w.Context())
	if id := server.ID(req.Context()); id != "" {
		own.Header.Set(server.HeaderRequestID, id)
	}
	res, err := t.Deadline.Await(w, func() (*http.Response, error) { return t.Base.RoundTrip(own) })
	if err != nil {
		defer w.Stop()
		return nil, w.Explain(err)
	}
	res.Body = &watchedBody{Reader: w.reader(res.Body, Silence), body: res.Body, w: w}
	return res, nil
}

// watchedBody ends its call when it is closed.
type watchedBody struct {
	io.Reader
	body io.Closer
	w    *Watchdog
}

func (b *watchedBody) Close() error {
	defer b.w.Stop()
	return b.body.Close()
}
