package server

import "net/http"

// keepRest bounds the rest of a body that is read, though nobody asked for
// it, so that its connection can be kept. It is net/http's bound, too.
const keepRest = 256 << 10

// response is the http.ResponseWriter that handlers get. It offers Flush, and
// the rest of net/http's by http.ResponseController.
type response struct {
	http.ResponseWriter
	exchange *exchange

	wrote  bool
	status int
	sent   int64
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	if !w.wrote && status >= http.StatusOK {
		w.wrote, w.status = true, status
		if w.exchange.closes() {
			w.Header().Set("Connection", "close")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	w.sent += int64(n)
	return n, err
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *response) FlushError() error {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// closes reports whether the connection ends with the response: the server
// leaves, or more of the body is to come than it is worth to wait for.
func (x *exchange) closes() bool {
	select {
	case <-x.server.leaving:
		return true
	default:
		return x.body.endsConnection()
	}
}

// flushed is a writer that sends at once what it is given.
type flushed struct{ w *response }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, f.w.FlushError()
}
