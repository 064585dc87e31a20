// Package environment reads the settings of a program from its environment.
//
// A field's variable is the prefix and the field's name in capitals, with _
// between words: PREHEAT_QUEUE_TIMEOUT for QueueTimeout. A struct inside needs
// a tag `envPrefix:"LLM_"`, unless it is embedded; `envDefault:"30s"` is what
// holds without the variable, or with an empty one.
package environment

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// Prefix begins the name of every variable of ours.
const Prefix = "PREHEAT_"

func options() env.Options { return env.Options{Prefix: Prefix, UseFieldNameByDefault: true} }

// Read fills the struct to which settings points. An error names the variable,
// never its value, which may be a secret.
func Read(settings any) error {
	var wrong env.ParseError
	err := env.ParseWithOptions(settings, options())
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return fmt.Errorf("%s is not a valid %s", variable(settings, wrong.Name), wrong.Type)
	default:
		return fmt.Errorf("read the environment: %w", err)
	}
}

// variable is the name of the variable that fills a field.
func variable(settings any, field string) string {
	all, err := env.GetFieldParamsWithOptions(settings, options())
	if err != nil {
		return field
	}
	// The library names the field alone.
	for _, p := range all {
		if strings.ReplaceAll(p.OwnKey, "_", "") == strings.ToUpper(field) {
			return p.Key
		}
	}
	return field
}

// Unknown lists the variables with our prefix that fill no field of settings.
// Kubernetes adds some for services that happen to begin alike.
func Unknown(settings any) ([]string, error) {
	all, err := env.GetFieldParamsWithOptions(settings, options())
	if err != nil {
		return nil, fmt.Errorf("list the settings: %w", err)
	}
	var unknown []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		known := slices.ContainsFunc(all, func(p env.FieldParams) bool { return p.Key == name })
		if strings.HasPrefix(name, Prefix) && !known {
			unknown = append(unknown, name)
		}
	}
	return unknown, nil
}
