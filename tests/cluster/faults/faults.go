// Package faults stands between a client and an API server and lets calls go
// wrong the way they do in clusters: refused with a status, committed without
// an answer, answered late, cut off.
package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Call is an API call, as a fault sees it.
type Call struct {
	// Verb is the HTTP method, or "LIST" or "WATCH".
	Verb string
	// Resource is the plural name, with the subresource after a slash.
	Resource string
}

const watchVerb = "WATCH"

// Fault is what happens to a call.
type Fault struct {
	// Status refuses the call with an HTTP status; 0 does not.
	Status int
	// Lose carries the call out and loses the answer.
	Lose bool
	// Delay holds the call back first.
	Delay time.Duration
	// Lag is how much later than the API server says it a watch says it.
	Lag time.Duration
}

// errLost is what a client sees of a lost answer.
var errLost = errors.New("the connection was lost")

// Injector decides about calls.
type Injector struct {
	mu     sync.Mutex
	decide func(Call) Fault
	count  map[Call]int
	// watches end the open watches.
	watches map[*watched]context.CancelFunc
}

// New returns an injector that lets every call pass.
func New() *Injector {
	return &Injector{decide: func(Call) Fault { return Fault{} }, count: map[Call]int{}, watches: map[*watched]context.CancelFunc{}}
}

// Set replaces the decision.
func (i *Injector) Set(decide func(Call) Fault) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.decide = decide
}

// Clear lets every call pass again.
func (i *Injector) Clear() { i.Set(func(Call) Fault { return Fault{} }) }

// Count is how many calls of a kind there were.
func (i *Injector) Count(c Call) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.count[c]
}

// Total is how many calls there were.
func (i *Injector) Total() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range i.count {
		n += c
	}
	return n
}

// CutWatches ends every open watch.
func (i *Injector) CutWatches() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, cancel := range i.watches {
		cancel()
	}
}

// Wrap makes a client's configuration go through the injector.
func (i *Injector) Wrap(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) { return i.roundTrip(next, req) })
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (i *Injector) roundTrip(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	call := callOf(req)
	i.mu.Lock()
	i.count[call]++
	fault := i.decide(call)
	i.mu.Unlock()
	if fault.Delay > 0 {
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(fault.Delay):
		}
	}
	if fault.Status != 0 {
		return refuse(req, fault.Status)
	}
	if call.Verb == watchVerb {
		return i.watch(next, req, fault.Lag)
	}
	resp, err := next.RoundTrip(req)
	if err == nil && fault.Lose {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return nil, errLost
	}
	return resp, err
}

// watched is the body of a watch that can be cut.
type watched struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (w *watched) Close() error {
	w.end()
	return w.ReadCloser.Close()
}

func (i *Injector) watch(next http.RoundTripper, req *http.Request, lag time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	resp, err := next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	w := &watched{ReadCloser: resp.Body}
	if lag > 0 {
		w.ReadCloser = late(resp.Body, lag)
	}
	w.end = func() {
		cancel()
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.watches, w)
	}
	i.mu.Lock()
	i.watches[w] = cancel
	i.mu.Unlock()
	resp.Body = w
	return resp, nil
}

// callOf names the call of a request, such as
// /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUBRESOURCE.
func callOf(req *http.Request) Call {
	c := Call{Verb: req.Method}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	skip := 2 // api/v1
	if parts[0] == "apis" {
		skip = 3
	}
	if len(parts) > skip+2 && parts[skip] == "namespaces" {
		skip += 2
	}
	if len(parts) > skip {
		c.Resource = parts[skip]
	}
	if len(parts) > skip+2 {
		c.Resource += "/" + parts[skip+2]
	}
	if req.Method == http.MethodGet && len(parts) == skip+1 {
		c.Verb = "LIST"
	}
	if req.URL.Query().Get("watch") != "" {
		c.Verb = watchVerb
	}
	return c
}

func refuse(req *http.Request, code int) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Message: fmt.Sprintf("injected %d", code), Reason: reasons[code],
	}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

var reasons = map[int]metav1.StatusReason{
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusConflict: metav1.StatusReasonConflict,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
}
