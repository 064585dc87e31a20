package main

import (
	"slices"
	"testing"

	"github.com/preheat-dev/preheat/internal/language"
)

// The pools of one machine offer every language of the image, and those that
// they start ahead can be.
func TestPoolsOfferAllLanguages(t *testing.T) {
	s := settings{PoolSize: 1, JavascriptPoolSize: 1, MaxSandboxes: 4}
	c := s.pools()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	var offered []string
	for _, p := range c.Pools {
		offered = append(offered, p.Languages...)
		for _, name := range p.Warm {
			if l, ok := language.Find(name); !ok || len(l.Warm) == 0 || !slices.Contains(p.Languages, name) {
				t.Errorf("the pool %s cannot start %s ahead", p.Name, name)
			}
		}
	}
	if got, want := slices.Sorted(slices.Values(offered)), slices.Sorted(slices.Values(language.Names())); !slices.Equal(got, want) {
		t.Errorf("the languages are %v, not %v", got, want)
	}
}
