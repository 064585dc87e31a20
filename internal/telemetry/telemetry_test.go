package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"

	"github.com/preheat-dev/preheat/internal/telemetry"
)

// TestSetUp: spans reach the collector that the environment names, at the
// latest when flushed, and none is made where it names none.
func TestSetUp(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	flush, err := telemetry.SetUp(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, span := otel.Tracer("test").Start(t.Context(), "unseen"); span.IsRecording() {
		t.Error("spans are recorded though nobody asked for it")
	}
	if err := flush(); err != nil {
		t.Error(err)
	}

	bodies := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies <- r.URL.Path + string(data)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=the-place")
	if flush, err = telemetry.SetUp(t.Context(), "the-service"); err != nil {
		t.Fatal(err)
	}
	_, span := otel.Tracer("test").Start(t.Context(), "the-span")
	span.End()
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	body := <-bodies
	for _, part := range []string{"/v1/traces", "the-service", "the-span", "the-place"} {
		if !strings.Contains(body, part) {
			t.Errorf("the collector got %q, which lacks %q", body, part)
		}
	}
}

// TestOff: the variables of the specification that switch traces off do so,
// though a collector is named.
func TestOff(t *testing.T) {
	for name, value := range map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none"} {
		t.Run(name, func(t *testing.T) {
			before := otel.GetTracerProvider()
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(name, value)
			flush, err := telemetry.SetUp(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			if otel.GetTracerProvider() != before {
				t.Error("spans are exported")
			}
			if err := flush(); err != nil {
				t.Error(err)
			}
		})
	}
}
