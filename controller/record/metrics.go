package record

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	names "github.com/preheat-dev/preheat/internal/metric"
)

// metrics are the numbers of events' records, per namespace.
type metrics struct {
	records, bytes   metric.Int64Gauge
	dropped, removed metric.Int64Counter
}

func newMetrics() (*metrics, error) {
	meter := otel.Meter("github.com/preheat-dev/preheat/controller/record")
	m := &metrics{}
	errs := make([]error, 4)
	described := func(name names.Name) metric.InstrumentOption { return metric.WithDescription(name.Describe().Help) }
	m.records, errs[0] = meter.Int64Gauge(string(names.EventRecords), described(names.EventRecords))
	m.bytes, errs[1] = meter.Int64Gauge(string(names.EventAnswerBytes), described(names.EventAnswerBytes))
	m.dropped, errs[2] = meter.Int64Counter(string(names.AnswersDropped), described(names.AnswersDropped))
	m.removed, errs[3] = meter.Int64Counter(string(names.RecordsRemoved), described(names.RecordsRemoved))
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make the metrics of events' records: %w", err)
	}
	return m, nil
}

// record notes what a namespace holds and what went.
func (m *metrics) record(ctx context.Context, namespace string, records []record, dropped, removed int) {
	var sum int64
	for _, r := range records {
		sum += r.bytes
	}
	attrs := metric.WithAttributeSet(attribute.NewSet(attribute.String("namespace", namespace)))
	m.records.Record(ctx, int64(len(records)), attrs)
	m.bytes.Record(ctx, sum, attrs)
	m.dropped.Add(ctx, int64(dropped), attrs)
	m.removed.Add(ctx, int64(removed), attrs)
}
