package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
)

// SetEventHeaders sets the headers of an event stream on c's response, those
// that keep proxies from holding it back among them.
func SetEventHeaders(c *fiber.Ctx) {
	c.Set(fiber.HeaderContentType, execution.MediaSSE)
	c.Set(fiber.HeaderCacheControl, "no-cache, no-transform")
	c.Set("X-Accel-Buffering", "no")
}

// Ping is the frame that says, on an idle stream, that it is still there.
type Ping string

const (
	// PingEvent is the ping of an execution's stream.
	PingEvent Ping = "event: " + execution.EventPing + "\ndata: {}\n\n"
	// PingComment is for clients that would take any event for data.
	PingComment Ping = ": ping\n\n"
)

// Stream answers c with a stream of server-sent events, as StreamBytes does
// with bytes. While produce sends nothing, a PingEvent goes out every
// PingInterval.
func Stream(c *fiber.Ctx, produce func(ctx context.Context, events *SSE) error) error {
	return StreamWithPing(c, PingEvent, produce)
}

// StreamWithPing is Stream with another ping.
func StreamWithPing(c *fiber.Ctx, ping Ping, produce func(ctx context.Context, events *SSE) error) error {
	SetEventHeaders(c)
	return StreamBytes(c, func(ctx context.Context, w io.Writer) error {
		events := &SSE{w: w, ping: []byte(ping), last: time.Now()}
		stop := make(chan struct{})
		var pinger sync.WaitGroup
		pinger.Go(func() { events.keepAlive(exchangeFrom(ctx).server.config.PingInterval, stop) })
		defer pinger.Wait()
		defer close(stop)
		return produce(ctx, events)
	})
}

func exchangeFrom(ctx context.Context) *exchange { return ctx.Value(contextKey{}).(*exchange) }

// SSE writes server-sent events, each of which is sent at once. It is safe for
// use by several goroutines.
type SSE struct {
	mu   sync.Mutex
	w    io.Writer
	ping []byte
	buf  bytes.Buffer
	last time.Time
	// number is the id of the last numbered event.
	number int
}

// Send sends one event with data as JSON, on one line.
func (s *SSE) Send(event string, data any) error { return s.send("", event, data) }

// SendNumbered is Send for an event with an id, the next number. A client that
// loses a stream of such events says so when it comes again.
func (s *SSE) SendNumbered(event string, data any) error {
	s.mu.Lock()
	s.number++
	id := "id: " + strconv.Itoa(s.number) + "\n"
	s.mu.Unlock()
	return s.send(id, event, data)
}

func (s *SSE) send(id, event string, data any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Reset()
	s.buf.WriteString(id)
	s.buf.WriteString("event: ")
	s.buf.WriteString(event)
	s.buf.WriteString("\ndata: ")
	e := json.NewEncoder(&s.buf)
	e.SetEscapeHTML(false)
	// The encoder ends its one line with a newline.
	if err := e.Encode(data); err != nil {
		return fmt.Errorf("encode event %s: %w", event, err)
	}
	s.buf.WriteByte('\n')
	return s.flush()
}

// Frame sends a complete frame, blank line included, as it is.
func (s *SSE) Frame(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	if _, err := s.w.Write(frame); err != nil {
		return fmt.Errorf("send frame: %w", err)
	}
	return nil
}

const keepBuffer = 64 << 10

func (s *SSE) flush() error {
	s.last = time.Now()
	_, err := s.w.Write(s.buf.Bytes())
	if s.buf.Cap() > keepBuffer {
		s.buf = bytes.Buffer{}
	}
	if err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return nil
}

func (s *SSE) idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.last)
}

// keepAlive sends a ping whenever nothing was sent for interval, until stop.
func (s *SSE) keepAlive(interval time.Duration, stop <-chan struct{}) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		if left := interval - s.idle(); left > 0 {
			timer.Reset(left)
			continue
		}
		if s.Frame(s.ping) != nil {
			return
		}
		timer.Reset(interval)
	}
}

// Resumes reports whether c's client lost a stream and asks for its rest.
func Resumes(c *fiber.Ctx) bool { return c.Get(execution.HeaderLastEventID) != "" }

// NothingToResume answers c so that its client, an EventSource by its habits,
// does not come again.
func NothingToResume(c *fiber.Ctx) error {
	c.Response().Header.SetNoDefaultContentType(true)
	c.Status(fiber.StatusNoContent)
	return nil
}
