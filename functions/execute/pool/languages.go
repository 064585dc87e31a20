package pool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/language"
)

// Alias is an alias that more than one language claims.
type Alias struct {
	Name string
	// Owner is the language that it stands for, Other another claimant.
	Owner, Other string
}

// String says who has it.
func (a Alias) String() string {
	return fmt.Sprintf("the alias %q of %s stands for %s", a.Name, a.Other, a.Owner)
}

// MergeLanguages lists the languages that pools offer, in the order of their
// first descriptions, each of which is one pool's own. Names and aliases are in
// lower case in the list, and each stands for one language:
//
//   - A language's name is never another one's alias.
//   - An offered language of the sandbox image has the aliases of package
//     language, whatever pools say: callers rely on them.
//   - Any other alias that two languages claim stands for the language whose
//     name sorts first.
//
// The conflicts are the aliases that pools claim in vain.
func MergeLanguages(described []execution.Language) (merged []execution.Language, conflicts []Alias) {
	at := map[string]int{}
	claims := map[string][]string{}
	for _, d := range described {
		name := strings.ToLower(d.Name)
		if _, known := at[name]; !known {
			at[name] = len(merged)
			merged = append(merged, execution.Language{Name: name})
		}
		add(&merged[at[name]], d)
		for _, a := range d.Aliases {
			claims[name] = append(claims[name], strings.ToLower(a))
		}
	}
	owned, conflicts := assign(claims, slices.Sorted(maps.Keys(at)))
	for i := range merged {
		merged[i].Aliases = append([]string{}, owned[merged[i].Name]...)
	}
	return merged, conflicts
}

// add puts one pool's description to those of others.
func add(l *execution.Language, d execution.Language) {
	l.Version = cmp.Or(l.Version, d.Version)
	l.Warm = l.Warm || d.Warm
	for _, p := range d.Pools {
		if !slices.Contains(l.Pools, p) {
			l.Pools = append(l.Pools, p)
		}
	}
}

// assign decides what aliases stand for, names in order being the languages
// that there are.
func assign(claims map[string][]string, names []string) (owned map[string][]string, conflicts []Alias) {
	owned = map[string][]string{}
	owners := map[string]string{} // of names and aliases
	for _, name := range names {
		owners[name] = name
	}
	give := func(name, alias string) (owner string) {
		if owner, taken := owners[alias]; taken {
			return owner
		}
		owners[alias] = name
		owned[name] = append(owned[name], alias)
		return name
	}
	for _, l := range language.All() {
		if owners[l.Name] != l.Name {
			continue
		}
		for _, alias := range l.Aliases {
			give(l.Name, alias)
		}
	}
	for _, name := range names {
		for _, alias := range claims[name] {
			if owner := give(name, alias); owner != name {
				conflicts = append(conflicts, Alias{Name: alias, Owner: owner, Other: name})
			}
		}
	}
	return owned, conflicts
}
