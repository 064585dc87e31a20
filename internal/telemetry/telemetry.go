// Package telemetry exports traces by OTLP over HTTP when the environment asks
// for it, by the variables of the OpenTelemetry specification:
// OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT says where
// to, OTEL_TRACES_SAMPLER which ones, OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES by which name. Without an endpoint there are no
// traces, nor with OTEL_SDK_DISABLED=true or OTEL_TRACES_EXPORTER=none.
package telemetry

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// flushTimeout bounds the export of the last spans.
const flushTimeout = 5 * time.Second

// SetUp makes the process's spans go where the environment says. The returned
// function exports what is left, and is to be called at the end.
func SetUp(ctx context.Context, service string) (flush func() error, err error) {
	if !wanted() {
		return func() error { return nil }, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read what the traces are about: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	otel.SetTracerProvider(provider)
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			return fmt.Errorf("export the last traces: %w", err)
		}
		return nil
	}, nil
}

func wanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}
