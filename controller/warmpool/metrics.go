package warmpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	names "github.com/preheat-dev/preheat/internal/metric"
	"github.com/preheat-dev/preheat/internal/plan"
)

const scope = "github.com/preheat-dev/preheat/controller/warmpool"

// metrics are the pool's numbers, per namespace and pool.
type metrics struct {
	warm, warming, claimed, desired metric.Int64Gauge
	refill                          metric.Float64Histogram
}

func newMetrics() (*metrics, error) {
	meter := otel.Meter(scope)
	var errs []error
	gauge := func(name names.Name) metric.Int64Gauge {
		g, err := meter.Int64Gauge(string(name), metric.WithDescription(name.Describe().Help))
		errs = append(errs, err)
		return g
	}
	m := &metrics{
		warm:    gauge(names.PoolWarm),
		warming: gauge(names.PoolWarming),
		claimed: gauge(names.PoolClaimed),
		desired: gauge(names.PoolDesired),
	}
	var err error
	m.refill, err = meter.Float64Histogram(string(names.RefillSeconds),
		metric.WithDescription(names.RefillSeconds.Describe().Help),
		metric.WithExplicitBucketBoundaries(.05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 10, 30, 60))
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("make the pool's metrics: %w", err)
	}
	return m, nil
}

func of(pool *v1alpha1.SandboxWarmPool) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("namespace", pool.Namespace), attribute.String("pool", pool.Name)))
}

func (m *metrics) pool(ctx context.Context, pool *v1alpha1.SandboxWarmPool, s plan.State, a plan.Actions) {
	t, attrs := count(s), of(pool)
	m.warm.Record(ctx, int64(t.warm), attrs)
	m.warming.Record(ctx, int64(t.warming), attrs)
	m.claimed.Record(ctx, int64(t.claimed), attrs)
	m.desired.Record(ctx, int64(a.Desired), attrs)
}

// forget brings the numbers of a pool that is gone to zero.
func (m *metrics) forget(ctx context.Context, pool *v1alpha1.SandboxWarmPool) {
	m.pool(ctx, pool, plan.State{}, plan.Actions{})
}

func (m *metrics) refilled(ctx context.Context, pool *v1alpha1.SandboxWarmPool, took time.Duration) {
	m.refill.Record(ctx, took.Seconds(), of(pool))
}
