package main

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/preheat-dev/preheat/controller/template"
	"github.com/preheat-dev/preheat/internal/environment"
)

// settings are what the environment says. The package's comment lists them.
type settings struct {
	Namespace     string
	MaxCreating   int    `envDefault:"16"`
	ProbeAddress  string `envDefault:"127.0.0.1:8080"`
	MaxCPU        string `env:"MAX_CPU" envDefault:"8"`
	MaxMemory     string `envDefault:"16Gi"`
	MaxVolumeSize string `envDefault:"16Gi"`
}

// readSettings reads the environment, and the ceiling of templates out of it.
func readSettings() (s settings, ceiling template.Ceiling, err error) {
	if err := environment.Read(&s); err != nil {
		return s, ceiling, err
	}
	if s.MaxCreating < 1 {
		return s, ceiling, fmt.Errorf("PREHEAT_MAX_CREATING: %d is not above 0", s.MaxCreating)
	}
	quantity := func(variable, text string) resource.Quantity {
		q, parse := resource.ParseQuantity(text)
		if parse != nil || q.Sign() <= 0 {
			err = errors.Join(err, fmt.Errorf("%s: %q is not a quantity above 0, such as 16Gi", variable, text))
		}
		return q
	}
	ceiling = template.Ceiling{
		CPU:     quantity("PREHEAT_MAX_CPU", s.MaxCPU),
		Memory:  quantity("PREHEAT_MAX_MEMORY", s.MaxMemory),
		Storage: quantity("PREHEAT_MAX_VOLUME_SIZE", s.MaxVolumeSize),
	}
	return s, ceiling, err
}
