package mcp

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/client"
	"github.com/preheat-dev/preheat/internal/server"
)

type instant struct{}

func (instant) Stream(_ context.Context, _ execution.Request, h client.Handler) (*execution.Exit, error) {
	code := 0
	err := h.Start(execution.Start{SandboxName: "python-1"})
	if err == nil {
		err = h.Output(execution.Stdout, []byte("hello\n"), 0)
	}
	return &execution.Exit{Status: execution.StatusSucceeded, ExitCode: &code, SandboxName: "python-1"}, err
}

func (instant) Execute(context.Context, execution.Request, string) (*execution.Result, error) {
	return &execution.Result{Status: execution.StatusSucceeded, SandboxName: "python-1", Stdout: "hello\n"}, nil
}

// BenchmarkCall is what the protocol itself costs: the program takes no time.
func BenchmarkCall(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	s, err := server.New(server.Config{Logger: log, BodyLimit: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	New(instant{}, log).Register(s.App())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			b.Error(err)
		}
	}()
	const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"bash","code":"echo hello"}}}`
	for b.Loop() {
		req, err := http.NewRequest(http.MethodPost, "http://"+listener.Addr().String()+Path, strings.NewReader(message))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || !strings.Contains(string(body), "hello") {
			b.Fatal(err, string(body))
		}
	}
}
