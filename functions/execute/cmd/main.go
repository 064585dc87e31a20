// Command cmd is the execute function as a service of its own, on the warm
// pools of a cluster. It is configured by the environment, see settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/audit"
	"github.com/preheat-dev/preheat/functions/execute/cloudevent"
	"github.com/preheat-dev/preheat/functions/execute/httpapi"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/internal/budget"
	"github.com/preheat-dev/preheat/internal/environment"
	"github.com/preheat-dev/preheat/internal/metric"
	"github.com/preheat-dev/preheat/internal/process"
	"github.com/preheat-dev/preheat/internal/server"
	"github.com/preheat-dev/preheat/internal/telemetry"
)

// settings is the environment of this command. K_SINK, if set, gets copies of completed
// events, see package audit. Traces have OpenTelemetry's own variables,
// see package telemetry.
type settings struct {
	environment.Server
	environment.Execution
	// Namespace holds the warm pools.
	Namespace string `envDefault:"runc-warmpool"`
	// ConnectTimeout bounds the wait for the API server at the start.
	ConnectTimeout time.Duration `envDefault:"30s"`
	// EventSource is the source attribute of the events that it answers with.
	EventSource string `envDefault:"/preheat/execute"`
	// EventBytes bounds the events that it answers with: brokers take a MiB.
	EventBytes int `envDefault:"1000000"`
	// EventTTL is how long answers to events are kept for later deliveries.
	EventTTL time.Duration `envDefault:"10m"`
}

func main() { process.Main("execute", run) }

func run(ctx context.Context) error {
	var s settings
	if err := environment.Read(&s); err != nil {
		return err
	}
	if err := s.validate(); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: s.LogLevel}))
	klog.SetSlogLogger(log) // what the clients of the API server say
	if err := s.Locate("127.0.0.1:8081"); err != nil {
		return err
	}
	return serve(ctx, s, log)
}

func serve(ctx context.Context, s settings, log *slog.Logger) (err error) {
	flush, err := telemetry.SetUp(ctx, "preheat-execute")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flush()) }()
	metrics := metric.NewRegistry()
	memory, err := budget.ForProcess(s.MemoryBudgetMIB, metrics, log)
	if err != nil {
		return err
	}
	pool, err := connect(ctx, s, metrics, log)
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
	events := cloudevent.New(cloudevent.Options{
		Executor: executor, API: api, Source: s.EventSource, Record: pool, EventBytes: s.EventBytes, Sink: sink,
	})
	web, err := server.New(server.Config{
		Logger: log, BodyLimit: cloudevent.MaxBody(executor.Limits()), Budget: memory, Grace: s.ShutdownGrace, AllowedHosts: s.AllowedHosts, AllowedOrigins: s.AllowedOrigins,
		Quiet: []string{"/healthz", "/readyz", "/metrics"},
	})
	if err != nil {
		return err
	}
	api.Register(web.App())
	server.Documents(web.App())
	events.RegisterExecute(web.App())
	events.Register(web.App())

	// It listens once the pools are known, so that a Pod that is ready works.
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String(), "namespace", s.Namespace)
	err = web.Serve(ctx, listener)
	api.Wait()
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
	return kube.New(ctx, kube.Config{Client: client, Namespace: s.Namespace, Remember: s.EventTTL, MaxSessions: s.MaxSessions, MaxPoolSessions: s.MaxPoolSessions}, kube.NewMetrics(metrics), log)
}

func (s settings) validate() error {
	switch {
	case s.EventBytes < 16<<10:
		return errors.New("PREHEAT_EVENT_BYTES must be 16384 or more")
	case s.EventTTL < time.Second || s.EventTTL > 24*time.Hour:
		return errors.New("PREHEAT_EVENT_TTL must be from 1s to 24h")
	case s.ConnectTimeout <= 0:
		return errors.New("PREHEAT_CONNECT_TIMEOUT must be positive")
	}
	return s.Execution.Validate()
}
