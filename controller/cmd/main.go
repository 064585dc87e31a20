// Command controller runs the controllers of Preheat's warm pools.
//
// Its settings come from the environment:
//
//	PREHEAT_NAMESPACE        the namespace whose pools it keeps; empty means all
//	PREHEAT_MAX_CREATING     how many sandboxes of a pool warm up at once (16)
//	PREHEAT_MAX_EVENT_RECORDS
//	                         how many finished events a namespace keeps on
//	                         record (2000)
//	PREHEAT_MAX_EVENT_ANSWERS
//	                         how much their answers take together, compressed
//	                         (64Mi)
//	PREHEAT_MAX_CPU          a container's most processors without the loosening
//	                         Unlimited (8)
//	PREHEAT_MAX_MEMORY       its most memory (16Gi)
//	PREHEAT_MAX_VOLUME_SIZE  the most of a volume, and of a container's
//	                         ephemeral storage (16Gi)
//	PREHEAT_PROBE_ADDRESS    where GET /healthz is answered (127.0.0.1:8080)
//	SYSTEM_NAMESPACE         the namespace of its own ConfigMaps and Leases
//
// and, as with every Knative controller, from the ConfigMaps config-logging,
// config-observability (metrics, by OTLP or Prometheus) and
// config-leader-election in SYSTEM_NAMESPACE, which are read at the start.
// Traces are exported as package telemetry says, like those of the functions.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/zapr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	podfactory "knative.dev/pkg/client/injection/kube/informers/factory/filtered"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/leaderelection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/observability/metrics"
	"knative.dev/pkg/signals"

	"github.com/preheat-dev/preheat/controller/claim"
	"github.com/preheat-dev/preheat/controller/health"
	"github.com/preheat-dev/preheat/controller/index"
	"github.com/preheat-dev/preheat/controller/record"
	"github.com/preheat-dev/preheat/controller/template"
	"github.com/preheat-dev/preheat/controller/warmpool"
	"github.com/preheat-dev/preheat/internal/telemetry"
)

const (
	component    = "preheat-controller"
	flushTimeout = 5 * time.Second
	// The API server protects itself by priority and fairness; this limit is
	// for the case that the controller goes wrong.
	clientQPS, clientBurst = 500, 1000
	// leaseSilence is longer than any replica waits between two looks at a
	// Lease, with Knative's default settings too.
	leaseSilence = 3 * time.Minute
)

func main() {
	if err := run(signals.NewContext()); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

// run does what Knative's sharedmain does, but for fixed ports on all
// addresses, webhooks, and a telemetry resource that only one version of the
// OpenTelemetry SDK accepts.
func run(ctx context.Context) (err error) {
	s, err := readSettings()
	if err != nil {
		return err
	}
	cfg := injection.ParseAndGetRESTConfigOrDie()
	loops := health.New(leaseSilence)
	configure(cfg)
	cfg.Wrap(loops.Wrap)
	stop, err := serveProbes(ctx, s.ProbeAddress, loops.Check)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	ctx = podfactory.WithSelectors(ctx, index.PodSelector)
	if s.Namespace != "" {
		ctx = injection.WithNamespaceScope(ctx, s.Namespace)
	}
	ctx, startInformers := injection.EnableInjectionOrDie(ctx, cfg)
	logger, _ := sharedmain.SetupLoggerOrDie(ctx, component)
	defer func() { _ = logger.Sync() }() // fails on a terminal, without harm
	ctx = logging.WithLogger(ctx, logger)
	klog.SetLogger(zapr.NewLogger(logger.Desugar()))
	limit, err := memlimit.Set()
	logger.Infow("Memory is bounded", "runtime_limit_bytes", limit, "error", err)

	flush, err := setUpMetrics(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flush()) }()
	flushTraces, err := telemetry.SetUp(ctx, component)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flushTraces()) }()
	election, err := sharedmain.GetLeaderElectionConfig(ctx)
	if err != nil {
		return fmt.Errorf("read the settings of the leader election: %w", err)
	}
	ctx = leaderelection.WithDynamicLeaderElectorBuilder(ctx, kubeclient.Get(ctx), election.GetComponentConfig(component))

	x, err := index.New(ctx)
	if err != nil {
		return err
	}
	records, err := record.NewController(ctx, x, s.records)
	if err != nil {
		return err
	}
	keys := warmpool.NewKeys(kubeclient.Get(ctx), s.Namespace)
	blueprints := template.NewBlueprints(s.ceiling)
	controllers := []*controller.Impl{
		warmpool.NewController(ctx, x, keys, s.MaxCreating, blueprints), claim.NewController(ctx, x), template.NewController(ctx, x, blueprints), records,
	}
	startInformers()
	stopKeys, err := keys.Start(ctx)
	if err != nil {
		return err
	}
	defer stopKeys()
	return controller.StartAll(ctx, controllers...)
}

func configure(cfg *rest.Config) {
	if cfg.QPS == 0 {
		cfg.QPS, cfg.Burst = clientQPS, clientBurst
	}
	// Protobuf where the server offers it: Pods are most of the traffic.
	cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
}

// setUpMetrics exports metrics as config-observability says.
func setUpMetrics(ctx context.Context) (flush func() error, err error) {
	cfg, err := sharedmain.GetObservabilityConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the metrics: %w", err)
	}
	mp, err := metrics.NewMeterProvider(ctx, cfg.Metrics,
		sdkmetric.WithResource(resource.NewSchemaless(attribute.String("service.name", component))))
	if err != nil {
		return nil, fmt.Errorf("set up the metrics: %w", err)
	}
	otel.SetMeterProvider(mp)
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := mp.Shutdown(ctx); err != nil {
			return fmt.Errorf("flush the metrics: %w", err)
		}
		return nil
	}, nil
}
