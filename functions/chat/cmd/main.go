// Command cmd is the chat function as a service of its own, as it runs on a
// cluster. It is configured by the environment, see settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	serving "knative.dev/serving/pkg/client/clientset/versioned/typed/serving/v1"

	"github.com/preheat-dev/preheat/functions/chat"
	"github.com/preheat-dev/preheat/functions/chat/services"
	"github.com/preheat-dev/preheat/functions/doors"
	"github.com/preheat-dev/preheat/internal/budget"
	"github.com/preheat-dev/preheat/internal/environment"
	"github.com/preheat-dev/preheat/internal/metric"
	"github.com/preheat-dev/preheat/internal/process"
	"github.com/preheat-dev/preheat/internal/server"
	"github.com/preheat-dev/preheat/internal/telemetry"
	"github.com/preheat-dev/preheat/ui"
)

// settings is the whole environment of this command.
type settings struct {
	environment.Server
	chat.Config
	doors.Settings
	// BodyLimit bounds a request, in bytes.
	BodyLimit int `envDefault:"33554432"`
	// ShutdownLinger is how long after SIGTERM requests are still taken: a
	// Service sends some until its endpoints have been changed everywhere.
	ShutdownLinger time.Duration
	// ServicesNamespace is where the platform's Knative Services are, to show
	// them; none are shown without.
	ServicesNamespace string
}

func main() { process.Main("chat", run) }

func run(ctx context.Context) error {
	var s settings
	if err := environment.Read(&s); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: s.LogLevel}))
	// Kubernetes adds variables for services, which may begin alike: one that
	// is not known is worth a line, not a failure.
	unknown, err := environment.Unknown(&s)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		log.Warn("Unknown variables have no effect", "names", unknown)
	}
	if err := s.Locate("127.0.0.1:8080"); err != nil {
		return err
	}
	return serve(ctx, s, log)
}

func serve(ctx context.Context, s settings, log *slog.Logger) (err error) {
	flush, err := telemetry.SetUp(ctx, "preheat-chat")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flush()) }()
	metrics := metric.NewRegistry()
	memory, err := budget.ForProcess(s.MemoryBudgetMIB, metrics, log)
	if err != nil {
		return err
	}
	page, built := ui.FS()
	if !built {
		log.Warn("the page is not part of this build")
	}
	lister, err := serviceLister(s.ServicesNamespace)
	if err != nil {
		return err
	}
	function, err := chat.New(chat.Options{
		Config: s.Config, Page: page, Forward: true, Services: lister, Registerer: metrics, Logger: log,
	})
	if err != nil {
		return err
	}
	srv, err := server.New(server.Config{
		Logger: log, BodyLimit: s.BodyLimit, Budget: memory, Linger: s.ShutdownLinger, Grace: s.ShutdownGrace,
		AllowedHosts: s.AllowedHosts, AllowedOrigins: s.AllowedOrigins, Quiet: []string{"/healthz", "/readyz", "/metrics"},
	})
	if err != nil {
		return err
	}
	app := srv.App()
	server.Documents(app)
	function.Register(app)
	programs, err := function.Executions()
	if err != nil {
		return err
	}
	if err := s.Settings.Register(app, programs, log); err != nil {
		return err
	}
	healthy := func(f *fiber.Ctx) error { return f.SendString("ok\n") }
	app.Get("/healthz", healthy)
	app.Get("/readyz", healthy)
	app.Get("/metrics", server.HTTPHandler(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})))

	ln, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return err
	}
	log.Info("serving", "address", ln.Addr().String())
	ctx, cancel := context.WithCancel(ctx)
	probed := make(chan error, 1)
	go func() { probed <- function.Run(ctx) }()
	err = srv.Serve(ctx, ln)
	cancel()
	return errors.Join(err, <-probed)
}

// serviceLister reads namespace with the rights of this Pod.
func serviceLister(namespace string) (chat.ServiceLister, error) {
	if namespace == "" {
		return nil, nil
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("PREHEAT_SERVICES_NAMESPACE needs a Pod with a service account: %w", err)
	}
	client, err := serving.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return services.New(client, namespace), nil
}
