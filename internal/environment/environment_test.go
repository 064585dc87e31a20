package environment_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/internal/environment"
)

type model struct {
	URL    string
	APIKey string
	Wait   time.Duration `envDefault:"5m"`
}

type settings struct {
	environment.Server
	environment.Execution
	Model    model `envPrefix:"LLM_"`
	EventTTL time.Duration
}

func TestRead(t *testing.T) {
	t.Setenv("PREHEAT_LLM_API_KEY", "hunter2")
	t.Setenv("PREHEAT_EVENT_TTL", "1m")
	t.Setenv("PREHEAT_SANDBOX_MEMORY_MIB", "64")
	t.Setenv("PREHEAT_ALLOWED_HOSTS", "a.example,b.example")
	t.Setenv("PREHEAT_LOG_LEVEL", "warn")
	var s settings
	if err := environment.Read(&s); err != nil {
		t.Fatal(err)
	}
	if s.Model.APIKey != "hunter2" || s.Model.Wait != 5*time.Minute || s.EventTTL != time.Minute || s.SandboxMemoryMIB != 64 ||
		!slices.Equal(s.AllowedHosts, []string{"a.example", "b.example"}) || s.LogLevel.String() != "WARN" || s.QueueTimeout != 10*time.Second {
		t.Errorf("read %+v", s)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	if got := s.Limits().Maximum.MemoryBytes; got != 64<<20 {
		t.Errorf("the limit of memory is %d", got)
	}
}

func TestErrorsNameTheVariableAndNotItsValue(t *testing.T) {
	for _, name := range []string{
		"PREHEAT_TIMEOUT", "PREHEAT_SANDBOX_MEMORY_MIB", "PREHEAT_SANDBOX_CORES", "PREHEAT_LOG_LEVEL", "PREHEAT_LLM_WAIT", "PREHEAT_EVENT_TTL",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "hunter2")
			err := environment.Read(&settings{})
			if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestValidateNamesTheVariable(t *testing.T) {
	for name, value := range map[string]string{
		"PREHEAT_TIMEOUT": "301s", "PREHEAT_QUEUE_TIMEOUT": "0s", "PREHEAT_EVENT_QUEUE_TIMEOUT": "-1s",
		"PREHEAT_SANDBOX_MEMORY_MIB": "31", "PREHEAT_SANDBOX_CORES": "0", "PREHEAT_SANDBOX_PROCESSES": "1",
		"PREHEAT_MAX_SESSIONS": "-1", "PREHEAT_MAX_POOL_SESSIONS": "25", "PREHEAT_SESSION_IDLE": "2h", "PREHEAT_SESSION_LIFETIME": "25h",
		"PREHEAT_SESSION_FILE_MIB": "0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			var s settings
			if err := environment.Read(&s); err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	t.Setenv("PREHEAT_CHAT_SERVICE_HOST", "10.0.0.1")
	t.Setenv("PREHEAT_LLM_URL", "http://127.0.0.1:1")
	unknown, err := environment.Unknown(&settings{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(unknown, "PREHEAT_CHAT_SERVICE_HOST") || slices.Contains(unknown, "PREHEAT_LLM_URL") {
		t.Errorf("unknown: %v", unknown)
	}
}

func TestLocate(t *testing.T) {
	for _, test := range []struct {
		name, listen, port string
		hosts              []string
		want, fault        string
		wantHosts          []string
	}{
		{name: "nothing said", want: "127.0.0.1:1"},
		{name: "a port, as Knative sets", port: "8080", want: "0.0.0.0:8080", wantHosts: []string{"*"}},
		{name: "hosts are kept", port: "8080", hosts: []string{"a"}, want: "0.0.0.0:8080", wantHosts: []string{"a"}},
		{name: "an address goes before", listen: "[::1]:2", port: "8080", want: "[::1]:2", wantHosts: []string{"*"}},
		{name: "no port in the address", listen: "localhost", fault: "PREHEAT_LISTEN"},
		{name: "no number", port: "http", fault: "PORT"},
		{name: "too large", port: "65536", fault: "PORT"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("PORT", test.port)
			s := environment.Server{Listen: test.listen, AllowedHosts: test.hosts}
			err := s.Locate("127.0.0.1:1")
			if test.fault != "" {
				if err == nil || !strings.Contains(err.Error(), test.fault) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || s.Listen != test.want || !slices.Equal(s.AllowedHosts, test.wantHosts) {
				t.Errorf("%v: %+v", err, s)
			}
		})
	}
}
