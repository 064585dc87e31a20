// Command standalone is chat and execute in one process, with a warm pool of
// runc containers on this machine: what `make run` starts. It is configured by
// the environment; see settings. With a command it is a client of a server, see
// package cli.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/functions/chat"
	"github.com/preheat-dev/preheat/functions/cli"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/audit"
	"github.com/preheat-dev/preheat/functions/execute/cloudevent"
	"github.com/preheat-dev/preheat/functions/execute/httpapi"
	"github.com/preheat-dev/preheat/functions/execute/pool/local"
	"github.com/preheat-dev/preheat/functions/execute/pool/runc"
	"github.com/preheat-dev/preheat/internal/budget"
	"github.com/preheat-dev/preheat/internal/metric"
	"github.com/preheat-dev/preheat/internal/process"
	"github.com/preheat-dev/preheat/internal/server"
	"github.com/preheat-dev/preheat/internal/telemetry"
	"github.com/preheat-dev/preheat/ui"
)

func main() {
	code := 0
	process.Main("preheat", func(ctx context.Context) (err error) {
		code, err = cli.Main(ctx, run)
		return err
	})
	os.Exit(code)
}

func run(ctx context.Context) (err error) {
	s, err := readSettings()
	if err != nil {
		return err
	}
	chatConfig, err := chat.ConfigFromEnv()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: s.LogLevel}))
	flush, err := telemetry.SetUp(ctx, "preheat")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flush()) }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("PREHEAT_LISTEN: %w", err)
	}
	defer func() { err = errors.Join(err, closed(listener.Close())) }()

	metrics := metric.NewRegistry()
	memory, err := budget.ForProcess(s.MemoryBudgetMIB, metrics, log)
	if err != nil {
		return err
	}
	backend, err := runc.New(ctx, s.sandboxes(), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	pool, err := local.New(s.pools(), backend, local.NewMetrics(metrics), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	executor := execute.New(pool, s.Limits(), execute.NewMetrics(metrics), log)
	sink, closeSink, err := audit.FromEnv(metrics, log)
	if err != nil {
		return err
	}
	defer closeSink(context.WithoutCancel(ctx))
	api := httpapi.New(executor, pool, metrics)
	events := cloudevent.New(cloudevent.Options{Executor: executor, API: api, Source: "/preheat/execute", Sink: sink})
	chatFunction, err := newChat(chatConfig, s, listener.Addr(), metrics, log)
	if err != nil {
		return err
	}
	web, err := server.New(server.Config{
		Logger: log, BodyLimit: max(maxBody, cloudevent.MaxBody(executor.Limits())), Budget: memory, Grace: s.ShutdownGrace, AllowedHosts: hosts(s, listener.Addr()), AllowedOrigins: s.AllowedOrigins,
		Quiet: []string{"/healthz", "/readyz", "/metrics"},
	})
	if err != nil {
		return err
	}
	server.Documents(web.App())
	api.Register(web.App())
	events.Register(web.App())
	chatFunction.Register(web.App())
	programs, err := chatFunction.Executions()
	if err != nil {
		return err
	}
	if err := s.Settings.Register(web.App(), programs, log); err != nil {
		return err
	}

	var background sync.WaitGroup
	defer background.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	background.Go(func() {
		if err := chatFunction.Run(ctx); err != nil {
			log.Error("Looking for model servers ended", "error", err)
		}
	})
	log.Info("listening", "url", "http://"+listener.Addr().String())
	err = web.Serve(ctx, listener)
	api.Wait()
	return err
}

// hosts are the names for which the server answers: those that are configured,
// and the one address that it listens on, if it is one.
func hosts(s settings, listener net.Addr) []string {
	if ip := listener.(*net.TCPAddr).IP; !ip.IsUnspecified() {
		return append(slices.Clone(s.AllowedHosts), ip.String())
	}
	return s.AllowedHosts
}

// newChat returns the chat function, whose executions go to this process over
// loopback, as they go to another one on a cluster.
func newChat(c chat.Config, s settings, self net.Addr, r prometheus.Registerer, log *slog.Logger) (*chat.Chat, error) {
	c.LLM, c.ChatURL = s.LLM, ""
	c.ExecuteURL = "http://" + reachable(self)
	page, _ := ui.FS()
	// This process is no model server, though it may have the port of one.
	others := slices.DeleteFunc(chat.LocalServers(), func(url string) bool { return url == c.ExecuteURL })
	return chat.New(chat.Options{Config: c, Page: page, Registerer: r, Logger: log, Local: others})
}

// reachable is an address at which this machine reaches a listener of its own.
func reachable(listener net.Addr) string {
	a := *listener.(*net.TCPAddr)
	if a.IP.IsUnspecified() {
		a.IP = net.IPv4(127, 0, 0, 1)
	}
	return a.String()
}

func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
