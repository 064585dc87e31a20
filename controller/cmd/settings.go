package main

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/preheat-dev/preheat/controller/record"
	"github.com/preheat-dev/preheat/controller/template"
	"github.com/preheat-dev/preheat/internal/environment"
)

// settings are what the environment says. The package's comment lists them.
type settings struct {
	Namespace       string
	MaxCreating     int    `envDefault:"16"`
	MaxEventRecords int    `envDefault:"2000"`
	MaxEventAnswers string `envDefault:"64Mi"`
	ProbeAddress    string `envDefault:"127.0.0.1:8080"`
	MaxCPU          string `env:"MAX_CPU" envDefault:"8"`
	MaxMemory       string `envDefault:"16Gi"`
	MaxVolumeSize   string `envDefault:"16Gi"`

	// ceiling and records are made of the above.
	ceiling template.Ceiling
	records record.Limits
}

// readSettings reads the environment.
func readSettings() (s settings, err error) {
	if err := environment.Read(&s); err != nil {
		return s, err
	}
	above0 := func(variable string, n int) {
		if n < 1 {
			err = errors.Join(err, fmt.Errorf("%s: %d is not above 0", variable, n))
		}
	}
	above0("PREHEAT_MAX_CREATING", s.MaxCreating)
	above0("PREHEAT_MAX_EVENT_RECORDS", s.MaxEventRecords)
	quantity := func(variable, text string) resource.Quantity {
		q, parse := resource.ParseQuantity(text)
		if parse != nil || q.Sign() <= 0 {
			err = errors.Join(err, fmt.Errorf("%s: %q is not a quantity above 0, such as 16Gi", variable, text))
		}
		return q
	}
	s.ceiling = template.Ceiling{
		CPU:     quantity("PREHEAT_MAX_CPU", s.MaxCPU),
		Memory:  quantity("PREHEAT_MAX_MEMORY", s.MaxMemory),
		Storage: quantity("PREHEAT_MAX_VOLUME_SIZE", s.MaxVolumeSize),
	}
	answers := quantity("PREHEAT_MAX_EVENT_ANSWERS", s.MaxEventAnswers)
	s.records = record.Limits{Records: s.MaxEventRecords, Bytes: answers.Value()}
	return s, err
}
