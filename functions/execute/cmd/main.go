// Command cmd is the execute function as a service of its own, on the warm
// pools of a cluster. It is configured by the environment, see settings.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kelseyhightower/envconfig"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/audit"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/functions/execute/transport"
	"github.com/preheat-dev/preheat/internal/server"
	"github.com/preheat-dev/preheat/internal/telemetry"
)

const envPrefix = "PREHEAT"

// settings is the environment of this command: PREHEAT_ and the field's name
// in capitals, words separated by _. K_SINK, if set, gets copies of completed
// events, see package audit. Traces have OpenTelemetry's own variables,
// see package telemetry.
type settings struct {
	// Namespace holds the warm pools.
	Namespace string `default:"runc-warmpool"`
	// ConnectTimeout bounds the wait for the API server at the start.
	ConnectTimeout time.Duration `split_words:"true" default:"30s"`
	// Listen is host:port; by default 127.0.0.1:8081, or 0.0.0.0:$PORT where
	// PORT is set, as Knative does.
	Listen string
	// AllowedHosts and AllowedOrigins say which requests get through. By
	// default those for loopback names do, and with PORT those for any host.
	AllowedHosts   []string `split_words:"true"`
	AllowedOrigins []string `split_words:"true"`
	// EventSource is the source attribute of the events that it answers with.
	EventSource string `split_words:"true" default:"/preheat/execute"`
	// DirectSource is that of chat's events, which are not delivered twice.
	DirectSource string `split_words:"true" default:"/preheat/chat"`
	// ShutdownGrace is how long executions may go on after SIGTERM.
	ShutdownGrace time.Duration `split_words:"true" default:"10s"`
	// EventBytes bounds the events that it answers with: brokers take a MiB.
	EventBytes int `split_words:"true" default:"1000000"`
	// EventTTL is how long answers to events are kept for later deliveries.
	EventTTL time.Duration `envconfig:"EVENT_TTL" default:"10m"`
	LogLevel slog.Level    `split_words:"true" default:"info"`

	// Timeout and MaxTimeout bound a program's time, by default and at most;
	// QueueTimeout is how long a request waits for a sandbox, EventQueueTimeout
	// how long an event does that may be delivered again.
	Timeout           time.Duration `default:"30s"`
	MaxTimeout        time.Duration `split_words:"true" default:"300s"`
	QueueTimeout      time.Duration `split_words:"true" default:"10s"`
	EventQueueTimeout time.Duration `split_words:"true" default:"120s"`
	// SandboxMemoryMIB, SandboxCores and SandboxProcesses are what the
	// pools' templates give to each sandbox.
	SandboxMemoryMIB int64   `split_words:"true" default:"512"`
	SandboxCores     float64 `split_words:"true" default:"1"`
	SandboxProcesses int64   `split_words:"true" default:"128"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "execute:", err)
		os.Exit(1)
	}
}

func run() error {
	var s settings
	if err := envconfig.Process(envPrefix, &s); err != nil {
		return err
	}
	if err := s.validate(); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: s.LogLevel}))
	if port := os.Getenv("PORT"); port != "" {
		s.Listen = cmp.Or(s.Listen, net.JoinHostPort("0.0.0.0", port))
		if len(s.AllowedHosts) == 0 {
			s.AllowedHosts = []string{"*"}
		}
	}
	s.Listen = cmp.Or(s.Listen, "127.0.0.1:8081")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return serve(ctx, s, log)
}

func serve(ctx context.Context, s settings, log *slog.Logger) (err error) {
	flush, err := telemetry.SetUp(ctx, "preheat-execute")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flush()) }()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	pool, err := connect(ctx, s, metrics, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	executor := execute.New(pool, s.limits(), execute.NewMetrics(metrics), log)
	sink, closeSink, err := audit.Bound(metrics, log)
	if err != nil {
		return err
	}
	defer closeSink(context.WithoutCancel(ctx))
	events := transport.New(transport.Options{
		Executor: executor, Pool: pool, Gatherer: metrics, EventSource: s.EventSource, DirectSource: s.DirectSource,
		Record: pool, EventBytes: s.EventBytes, Sink: sink,
	})
	web, err := server.New(server.Config{
		Logger: log, Grace: s.ShutdownGrace, AllowedHosts: s.AllowedHosts, AllowedOrigins: s.AllowedOrigins,
		Quiet: []string{"/healthz", "/readyz", "/metrics"},
	})
	if err != nil {
		return err
	}
	events.RegisterExecute(web.App())
	server.Documents(web.App())
	events.Register(web.App())

	// It listens once the pools are known, so that a Pod that is ready works.
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String(), "namespace", s.Namespace)
	err = web.Serve(ctx, listener)
	events.Wait()
	return err
}

// connect watches the pools, with the Pod's service account or, outside of a
// cluster, as the kubeconfig says.
func connect(ctx context.Context, s settings, metrics prometheus.Registerer, log *slog.Logger) (*kube.Pool, error) {
	client, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		client, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	client.UserAgent = "preheat-execute"
	ctx, cancel := context.WithTimeout(ctx, s.ConnectTimeout)
	defer cancel()
	return kube.New(ctx, kube.Config{Client: client, Namespace: s.Namespace, Remember: s.EventTTL}, kube.NewMetrics(metrics), log)
}

func (s settings) validate() error {
	switch {
	case s.Timeout <= 0 || s.MaxTimeout < s.Timeout:
		return errors.New("PREHEAT_TIMEOUT must be positive and not above PREHEAT_MAX_TIMEOUT")
	case s.QueueTimeout <= 0:
		return errors.New("PREHEAT_QUEUE_TIMEOUT must be positive")
	case s.EventQueueTimeout <= 0:
		return errors.New("PREHEAT_EVENT_QUEUE_TIMEOUT must be positive")
	case s.EventBytes < 16<<10:
		return errors.New("PREHEAT_EVENT_BYTES must be 16384 or more")
	case s.EventTTL < time.Second || s.EventTTL > 24*time.Hour:
		return errors.New("PREHEAT_EVENT_TTL must be from 1s to 24h")
	case s.ConnectTimeout <= 0:
		return errors.New("PREHEAT_CONNECT_TIMEOUT must be positive")
	case s.SandboxMemoryMIB < 32:
		return errors.New("PREHEAT_SANDBOX_MEMORY_MIB must be 32 or more")
	}
	return nil
}

func (s settings) limits() execution.ServerLimits {
	l := execution.DefaultLimits()
	l.Default.TimeoutSeconds, l.Maximum.TimeoutSeconds = s.Timeout.Seconds(), s.MaxTimeout.Seconds()
	l.Default.MemoryBytes, l.Maximum.MemoryBytes = s.SandboxMemoryMIB<<20, s.SandboxMemoryMIB<<20
	l.QueueSeconds, l.EventQueueSeconds = s.QueueTimeout.Seconds(), s.EventQueueTimeout.Seconds()
	l.CPUs, l.Processes = s.SandboxCores, s.SandboxProcesses
	return l
}
