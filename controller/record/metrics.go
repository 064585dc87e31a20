package record

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
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
	m.records, errs[0] = meter.Int64Gauge("preheat_event_records", metric.WithDescription("Finished events that are on record."))
	m.bytes, errs[1] = meter.Int64Gauge("preheat_event_answer_bytes", metric.WithDescription("Compressed answers on record."))
	m.dropped, errs[2] = meter.Int64Counter("preheat_event_answers_dropped_total",
		metric.WithDescription("Answers that were dropped from their records for want of room."))
	m.removed, errs[3] = meter.Int64Counter("preheat_event_records_removed_total",
		metric.WithDescription("Records that were removed before their time for want of room."))
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
