// Package audit sends copies of completed events to a sink that somebody has
// bound to execute, as a Knative SinkBinding does. It keeps nobody waiting and
// fails nobody: events go through a bounded queue, and what does not fit, or
// cannot be delivered in some tries, is dropped and counted.
package audit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	ce "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/functions/execute/cloudevent"
	"github.com/preheat-dev/preheat/functions/execute/cloudevent/ceheader"
	"github.com/preheat-dev/preheat/internal/metric"
)

const (
	// maxQueued and maxBytes bound the queue.
	maxQueued = 1000
	maxBytes  = 16 << 20
	// senders is how many events are on their way at once.
	senders = 4
	// tryTimeout bounds one try, and tries how often an event is sent.
	tryTimeout = 10 * time.Second
	tries      = 3
	// firstPause is about that after the first try; each further one is four
	// times as long.
	firstPause = 500 * time.Millisecond
	// grace is how long the events that are left may take at the end.
	grace = 5 * time.Second
)

// FromEnv starts to send to the sink that the environment names as Knative does:
// K_SINK, K_CE_OVERRIDES and K_CA_CERTS (knative.dev/eventing, SinkBinding).
// Without one the sink is nil. The function closes it.
func FromEnv(r prometheus.Registerer, log *slog.Logger) (cloudevent.Sink, func(context.Context), error) {
	c := Config{URL: os.Getenv("K_SINK"), Overrides: os.Getenv("K_CE_OVERRIDES"), CACerts: os.Getenv("K_CA_CERTS")}
	if c.URL == "" {
		return nil, func(context.Context) {}, nil
	}
	s, err := New(c, r, log)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// Config is where events go.
type Config struct {
	// URL is the sink's, http or https.
	URL string
	// Overrides is JSON, {"extensions": {name: value}}: attributes that every
	// event gets. It may be empty.
	Overrides string
	// CACerts are PEM certificates to trust beside the system's.
	CACerts string
}

// Sink is a sink and the events on their way to it.
type Sink struct {
	url        string
	extensions map[string]string
	client     *http.Client
	log        *slog.Logger
	events     *prometheus.CounterVec

	// mu guards bytes, which counts what is queued or on its way, and closed.
	mu     sync.Mutex
	bytes  int
	closed bool
	queue  chan *ce.Event

	ctx     context.Context // ends when what is queued is given up
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New starts to send to a sink, until Close.
func New(c Config, r prometheus.Registerer, log *slog.Logger) (*Sink, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("the sink's URL is not that of a web server")
	}
	var overrides struct {
		Extensions map[string]string `json:"extensions"`
	}
	if c.Overrides != "" {
		if err := json.Unmarshal([]byte(c.Overrides), &overrides); err != nil {
			return nil, fmt.Errorf("the sink's overrides: %w", err)
		}
	}
	client, err := newClient(c.CACerts)
	if err != nil {
		return nil, err
	}
	s := &Sink{
		url: c.URL, extensions: overrides.Extensions, client: client, log: log, queue: make(chan *ce.Event, maxQueued),
	}
	probe := ce.New()
	for name, value := range s.extensions {
		probe.SetExtension(name, value)
	}
	if len(probe.Extensions()) != len(s.extensions) {
		return nil, errors.New("the sink's overrides: an extension's name has other characters than a-z and 0-9")
	}
	s.events = metric.NewCounter(r, metric.AuditEvents)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for range senders {
		s.running.Go(s.run)
	}
	return s, nil
}

func newClient(caCerts string) (*http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if caCerts != "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM([]byte(caCerts)) {
			return nil, errors.New("the sink's certificates: there is none in PEM")
		}
		t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t, Timeout: tryTimeout}, nil
}

// Send queues e, whose data must not change any more. Events may arrive in
// another order.
func (s *Sink) Send(e *ce.Event) {
	queued := *e
	queued.Context = e.Context.Clone()
	for name, value := range s.extensions {
		queued.SetExtension(name, value)
	}
	size := len(queued.Data())
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.bytes+size <= maxBytes {
		select {
		case s.queue <- &queued:
			s.bytes += size
			return
		default:
		}
	}
	s.events.WithLabelValues("dropped").Inc()
}

// Close sends what is queued, for some seconds and until ctx ends.
func (s *Sink) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.queue)
	}
	s.mu.Unlock()
	// What is left when ctx ends is given up.
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	s.running.Wait()
	s.cancel()
	s.client.CloseIdleConnections()
}

// run sends what is queued until the queue is closed and empty.
func (s *Sink) run() {
	for e := range s.queue {
		err := s.deliver(e)
		s.mu.Lock()
		s.bytes -= len(e.Data())
		s.mu.Unlock()
		if err != nil {
			s.events.WithLabelValues("failed").Inc()
			s.log.Warn("A completed event did not reach the sink", "event", e.ID(), "error", err)
			continue
		}
		s.events.WithLabelValues("sent").Inc()
	}
}

// deliver sends one event, several times if that may help.
func (s *Sink) deliver(e *ce.Event) error {
	pauses := &backoff.ExponentialBackOff{
		InitialInterval: firstPause, Multiplier: 4, RandomizationFactor: 0.5, MaxInterval: tryTimeout,
	}
	_, err := backoff.Retry(s.ctx, func() (struct{}, error) {
		again, err := s.post(e)
		if err != nil && !again {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0))
	return err
}

// post sends an event once, and reports whether to send it again.
func (s *Sink) post(e *ce.Event) (again bool, err error) {
	req, err := cehttp.NewHTTPRequestFromEvent(s.ctx, s.url, *e)
	if err != nil {
		return false, fmt.Errorf("encode the event: %w", err)
	}
	ceheader.EncodeAll(req.Header)
	res, err := s.client.Do(req)
	if err != nil {
		return s.ctx.Err() == nil, fmt.Errorf("send the event: %w", err)
	}
	// Read to its end, a short answer leaves the connection for the next.
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	_ = res.Body.Close()
	switch {
	case res.StatusCode < http.StatusMultipleChoices:
		return false, nil
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= http.StatusInternalServerError:
		again = true
	}
	return again, fmt.Errorf("the sink answered %s", res.Status)
}
