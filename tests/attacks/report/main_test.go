package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	t.Parallel()
	const (
		began = `{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/mount"}
{"Action":"attr","Test":"TestA/mount","Key":"tried","Value":"mount(2)"}
`
		happened = `{"Action":"attr","Test":"TestA/mount","Key":"happened","Value":"EPERM"}
`
		passed = `{"Action":"pass","Test":"TestA/mount"}
{"Action":"pass","Test":"TestA"}
{"Action":"pass"}
`
		failed = `{"Action":"output","Test":"TestA/mount","Output":"    the answer is ALLOWED\n"}
{"Action":"fail","Test":"TestA/mount"}
{"Action":"fail","Test":"TestA"}
{"Action":"fail"}
`
	)
	for name, test := range map[string]struct {
		in    string
		holds bool
		words []string
	}{
		"held":             {began + happened + passed, true, []string{"TestA/mount  mount(2)  EPERM     yes\n", "1 attacks, 1 held"}},
		"did not hold":     {began + happened + failed, false, []string{"EPERM     NO\n", "the answer is ALLOWED", "1 attacks, 0 held"}},
		"says nothing":     {began + passed, false, []string{"NO\n"}},
		"skipped":          {began + happened + strings.ReplaceAll(passed, `"pass","Test":"TestA/mount"`, `"skip","Test":"TestA/mount"`), false, []string{"NO\n"}},
		"did not end":      {began + happened, false, []string{"NO\n"}},
		"does not build":   {`{"Action":"build-output","Output":"x.go:1: no\n"}` + "\n" + `{"Action":"build-fail"}` + "\n", false, []string{"x.go:1: no"}},
		"the server fails": {began + happened + strings.Replace(passed, `{"Action":"pass"}`, `{"Action":"fail"}`, 1), false, []string{"yes\n"}},
		"nothing runs":     {"", false, []string{"0 attacks"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, err := read(strings.NewReader(test.in))
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := table.write(&out); (err == nil) != test.holds {
				t.Errorf("error %v", err)
			}
			for _, word := range test.words {
				if !strings.Contains(out.String(), word) {
					t.Errorf("no %q in\n%s", word, out.String())
				}
			}
		})
	}
	if _, err := read(strings.NewReader("FAIL\n")); err == nil {
		t.Error("a line that is no JSON is taken")
	}
}
