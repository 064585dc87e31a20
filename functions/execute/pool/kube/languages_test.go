package kube

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

func offering(name string, languages ...v1alpha1.Language) offer {
	return offer{
		pool:     &v1alpha1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: name}},
		template: &v1alpha1.SandboxTemplate{Spec: v1alpha1.SandboxTemplateSpec{Languages: languages}},
	}
}

// TestAliasesOfATemplate: a template's alias is good in a request, and the
// claim goes to a pool that has the language by its name.
func TestAliasesOfATemplate(t *testing.T) {
	ruby := offering("ruby", v1alpha1.Language{Name: "ruby", Aliases: []string{"rb"}, Version: "3.3"})
	pypy := offering("pypy", v1alpha1.Language{Name: "pypy", Aliases: []string{"python"}})
	python := offering("python", v1alpha1.Language{Name: "python"})
	offers := []offer{ruby, pypy, python}
	languages, _ := pool.MergeLanguages(describe(offers))
	for alias, want := range map[string]string{"rb": "ruby", "Rb": "ruby", "ruby": "ruby", "python": "python", "PY": "python"} {
		p, problem := (&execution.Request{Language: alias, Code: "1"}).Validate(languages, execution.DefaultLimits())
		if problem != nil {
			t.Errorf("%s: %v", alias, problem)
			continue
		}
		for _, o := range offers {
			if o.offers(p.Language) != (o.pool.Name == want) {
				t.Errorf("%s may go to the pool %s", alias, o.pool.Name)
			}
		}
	}
}

// TestAliasConflictsAreLoggedOnce: requests ask often, the log says it once.
func TestAliasConflictsAreLoggedOnce(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	js := pool.Alias{Name: "js", Owner: "javascript", Other: "deno"}
	var c conflicts
	for _, now := range [][]pool.Alias{{js}, {js}, {js, {Name: "r", Owner: "r", Other: "rust"}}, nil, {js}} {
		c.log(log, now)
	}
	if n := strings.Count(text.String(), "WARN"); n != 3 {
		t.Errorf("%d lines:\n%s", n, text.String())
	}
}
