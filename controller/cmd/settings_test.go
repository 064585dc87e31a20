package main

import (
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/controller/record"
	"github.com/preheat-dev/preheat/controller/template"
)

func TestSettings(t *testing.T) {
	s, err := readSettings()
	if err != nil {
		t.Fatal(err)
	}
	ceiling := s.ceiling
	if want := template.DefaultCeiling(); ceiling.CPU.Cmp(want.CPU) != 0 || ceiling.Memory.Cmp(want.Memory) != 0 || ceiling.Storage.Cmp(want.Storage) != 0 {
		t.Errorf("the ceiling is %v, want the default %v", ceiling, want)
	}
	t.Setenv("PREHEAT_MAX_MEMORY", "2Gi")
	if s, err = readSettings(); err != nil || s.ceiling.Memory.String() != "2Gi" {
		t.Errorf("the ceiling is %v (%v), want 2Gi", s.ceiling.Memory.String(), err)
	}
	if want := (record.Limits{Records: 2000, Bytes: 64 << 20}); s.records != want {
		t.Errorf("the limits of records are %+v, want %+v", s.records, want)
	}
	for _, variable := range []string{"PREHEAT_MAX_CPU", "PREHEAT_MAX_MEMORY", "PREHEAT_MAX_VOLUME_SIZE", "PREHEAT_MAX_CREATING",
		"PREHEAT_MAX_EVENT_RECORDS", "PREHEAT_MAX_EVENT_ANSWERS"} {
		for _, value := range []string{"0", "-1", "much"} {
			t.Run(variable+"="+value, func(t *testing.T) {
				t.Setenv(variable, value)
				if _, err := readSettings(); err == nil || !strings.Contains(err.Error(), variable) {
					t.Errorf("err = %v, want one that names %s", err, variable)
				}
			})
		}
	}
}
