package language_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/internal/language"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestNamesAreUnique: a name, an alias or a script is one language's.
func TestNamesAreUnique(t *testing.T) {
	names, scripts := map[string]bool{}, map[string]bool{}
	for _, l := range language.All() {
		for _, n := range append([]string{l.Name}, l.Aliases...) {
			if names[n] || n != strings.ToLower(n) {
				t.Errorf("the name %q is there twice or has capitals", n)
			}
			names[n] = true
		}
		if scripts[l.Script] || !language.IsReserved(l.Script) || !slices.Contains(l.Cold, l.Script) {
			t.Errorf("the script %q of %s", l.Script, l.Name)
		}
		scripts[l.Script] = true
	}
	if _, ok := language.Find("py"); ok || language.IsReserved("main.rb") || !language.IsReserved(".main.py.source") {
		t.Error("lookups")
	}
}

func TestTakesWarm(t *testing.T) {
	python, _ := language.Find("python")
	for name, want := range map[string]bool{"A": true, "PYTHONPATH": false, "TZ": false, "OMP_NUM_THREADS": false, "PYTHO": true} {
		if python.TakesWarm(map[string]string{"A": "", name: ""}) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// TestShippedTemplateOffersAll: the template that is shipped offers every
// language with the aliases that it has on one machine.
func TestShippedTemplateOffersAll(t *testing.T) {
	first, _, _ := bytes.Cut(read(t, "config/base/pool.yaml"), []byte("\n---\n"))
	var shipped v1alpha1.SandboxTemplate
	if err := yaml.UnmarshalStrict(first, &shipped); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, offered := range shipped.Spec.Languages {
		names = append(names, offered.Name)
		if l, _ := language.Find(offered.Name); !slices.Equal(l.Aliases, offered.Aliases) {
			t.Errorf("%s has the aliases %v, not %v", offered.Name, offered.Aliases, l.Aliases)
		}
	}
	same(t, names)
}

// TestImageTellsAllVersions: the image's list of versions has every language.
func TestImageTellsAllVersions(t *testing.T) {
	list := regexp.MustCompile(`printf '([^']*)'.*>"\$work/versions"`).FindSubmatch(read(t, "config/images/sandbox.sh"))
	if list == nil {
		t.Fatal("config/images/sandbox.sh does not write the versions")
	}
	var names []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(list[1]), `\n`), `\n`) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	same(t, names)
}

// TestPageHighlightsAll: the page colours every language.
func TestPageHighlightsAll(t *testing.T) {
	_, list, found := strings.Cut(string(read(t, "ui/src/markdown/highlight.ts")), "createLowlight({")
	list, _, ended := strings.Cut(list, "});")
	if !found || !ended {
		t.Fatal("ui/src/markdown/highlight.ts has no list of languages")
	}
	coloured := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \n", r) })
	for _, name := range language.Names() {
		if !slices.Contains(coloured, name) {
			t.Errorf("%s is not in %v", name, coloured)
		}
	}
}

func same(t *testing.T, names []string) {
	t.Helper()
	if got, want := slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(language.Names())); !slices.Equal(got, want) {
		t.Errorf("the languages are %v, not %v", got, want)
	}
}
