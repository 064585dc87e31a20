package server_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/internal/server"
)

// A server that is told to stop before it has begun to serve, or just then,
// stops all the same: it neither hangs nor goes on to serve.
func TestStopWhileStarting(t *testing.T) {
	const rounds = 200
	for i := range rounds {
		s, err := server.New(server.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 0 {
			cancel()
		} else {
			go cancel() // while Serve starts
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, ln) }()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
		case <-time.After(patience):
			t.Fatalf("round %d: Serve goes on", i)
		}
		if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			t.Fatalf("round %d: the listener is open", i)
		}
	}
}
