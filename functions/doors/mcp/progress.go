package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/doors/capture"
)

const (
	// progressInterval is the shortest time between two notifications; output
	// in between is in the later one.
	progressInterval = 100 * time.Millisecond
	// silence is how long a call says nothing: proxies cut idle connections.
	silence = 10 * time.Second
)

// progress sends what a program writes to a client that asked for it, and a sign
// of life to all.
type progress struct {
	notify func(message string)
	alive  func()
	began  time.Time

	mu   sync.Mutex
	text strings.Builder

	end  chan struct{}
	done sync.WaitGroup
}

func newProgress(ctx context.Context, call *mcp.CallToolRequest, x *exchange) *progress {
	p := &progress{began: time.Now(), alive: x.ping, end: make(chan struct{})}
	if token := call.Params.GetProgressToken(); token != nil {
		p.notify = func(message string) {
			// A client that is gone ends the call elsewhere.
			_ = call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Message: message, Progress: time.Since(p.began).Seconds(),
			})
		}
		p.alive = func() { p.notify(fmt.Sprintf("The program runs for %d seconds.", int(time.Since(p.began).Seconds()))) }
	}
	p.done.Go(p.send)
	return p
}

// observer takes what a client asked to see.
func (p *progress) observer() capture.Observer {
	if p.notify == nil {
		return capture.Observer{}
	}
	return capture.Observer{
		Start: func(s execution.Start) { p.say("The program runs in the sandbox " + s.SandboxName + ".\n") },
		Output: func(_ execution.Stream, data []byte) {
			p.say(strings.ToValidUTF8(string(data), "\uFFFD"))
		},
	}
}

// say adds to what is sent next.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.WriteString(text)
}

func (p *progress) flush() bool {
	p.mu.Lock()
	text := p.text.String()
	p.text.Reset()
	p.mu.Unlock()
	if text == "" {
		return false
	}
	p.notify(text)
	return true
}

// stop returns when nothing is sent any more.
func (p *progress) stop() {
	close(p.end)
	p.done.Wait()
	if p.notify != nil {
		p.flush()
	}
}

func (p *progress) send() {
	interval := silence
	if p.notify != nil {
		interval = progressInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-p.end:
			return
		case <-tick.C:
		}
		switch {
		case p.notify != nil && p.flush():
			last = time.Now()
		case time.Since(last) >= silence-interval/2:
			p.alive()
			last = time.Now()
		}
	}
}
