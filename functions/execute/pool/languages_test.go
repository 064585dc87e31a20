package pool_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

func describe(poolName, language string, aliases ...string) execution.Language {
	return execution.Language{Name: language, Aliases: aliases, Pools: []string{poolName}}
}

// TestMergeLanguages: whatever pools say, a name or an alias stands for one
// language, and the order of the pools does not change which.
func TestMergeLanguages(t *testing.T) {
	for name, test := range map[string]struct {
		described []execution.Language
		aliases   map[string]string // of each language
		conflicts []pool.Alias
	}{
		"none": {nil, map[string]string{}, nil},
		"a language of a template": {
			[]execution.Language{describe("a", "ruby", "rb")}, map[string]string{"ruby": "rb"}, nil,
		},
		"any case": {
			[]execution.Language{describe("a", "Ruby", "RB", "rb", "ruby")}, map[string]string{"ruby": "rb"}, nil,
		},
		"aliases of several pools": {
			[]execution.Language{describe("a", "ruby", "rb"), describe("b", "ruby", "irb", "rb")}, map[string]string{"ruby": "rb irb"}, nil,
		},
		"the image's languages keep their aliases": {
			[]execution.Language{describe("a", "javascript", "js", "ecmascript"), describe("a", "python")},
			map[string]string{"javascript": "js node nodejs ecmascript", "python": "py python3"}, nil,
		},
		"an alias that is another's name": {
			[]execution.Language{describe("a", "pypy", "python"), describe("b", "python")},
			map[string]string{"pypy": "", "python": "py python3"}, []pool.Alias{{Name: "python", Owner: "python", Other: "pypy"}},
		},
		"an alias that is another's name, case aside": {
			[]execution.Language{describe("a", "pypy", "RUBY"), describe("b", "ruby")},
			map[string]string{"pypy": "", "ruby": ""}, []pool.Alias{{Name: "ruby", Owner: "ruby", Other: "pypy"}},
		},
		"one alias of two languages": {
			[]execution.Language{describe("a", "rust", "r"), describe("b", "rlang", "r")},
			map[string]string{"rust": "", "rlang": "r"}, []pool.Alias{{Name: "r", Owner: "rlang", Other: "rust"}},
		},
		"an alias of the image's language": {
			[]execution.Language{describe("a", "deno", "js"), describe("b", "javascript")},
			map[string]string{"deno": "", "javascript": "js node nodejs"}, []pool.Alias{{Name: "js", Owner: "javascript", Other: "deno"}},
		},
		"an alias of the image's language that is not offered": {
			[]execution.Language{describe("a", "deno", "js")}, map[string]string{"deno": "js"}, nil,
		},
		"a name that is an alias of the image's language": {
			[]execution.Language{describe("a", "node"), describe("b", "javascript")},
			map[string]string{"node": "", "javascript": "js nodejs"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				merged, conflicts := pool.MergeLanguages(test.described)
				got := map[string]string{}
				for _, l := range merged {
					got[l.Name] = strings.Join(l.Aliases, " ")
				}
				if !reflect.DeepEqual(sorted(got), sorted(test.aliases)) || !slices.Equal(conflicts, test.conflicts) {
					t.Errorf("the aliases are %v and the conflicts %v", got, conflicts)
				}
				slices.Reverse(test.described)
			}
		})
	}
}

// sorted is aliases in an order of their own.
func sorted(aliases map[string]string) map[string]string {
	out := map[string]string{}
	for name, list := range aliases {
		out[name] = strings.Join(slices.Sorted(slices.Values(strings.Fields(list))), " ")
	}
	return out
}

// TestMergeLanguagesOfPools: a language is listed once, with all that the pools
// say of it.
func TestMergeLanguagesOfPools(t *testing.T) {
	merged, _ := pool.MergeLanguages([]execution.Language{
		{Name: "python", Pools: []string{"a"}},
		{Name: "ruby", Pools: []string{"a"}},
		{Name: "python", Version: "3.13", Warm: true, Pools: []string{"b"}},
		{Name: "python", Version: "3.12", Pools: []string{"b", "c"}},
	})
	want := []execution.Language{
		{Name: "python", Aliases: []string{"py", "python3"}, Version: "3.13", Warm: true, Pools: []string{"a", "b", "c"}},
		{Name: "ruby", Aliases: []string{}, Pools: []string{"a"}},
	}
	if !reflect.DeepEqual(merged, want) {
		t.Errorf("%+v", merged)
	}
}
