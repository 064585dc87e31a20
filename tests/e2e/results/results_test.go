// Package results keeps docs/results.md true: every test that it names exists,
// every row has one, and every test that is named after a row is in it.
package results

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/tests/product"
)

// folders hold the tests that the page may name.
var folders = []string{
	"tests/e2e/output", "tests/e2e/ending", "tests/e2e/inside", "tests/e2e/rich", "tests/e2e/stream",
	"tests/e2e/differential", "tests/attacks", "functions/runner",
}

// rows are those that the page must have.
func rows() []string {
	var list []string
	for _, section := range []struct {
		letter string
		last   int
	}{{"O", 11}, {"E", 14}, {"S", 15}} {
		for n := 1; n <= section.last; n++ {
			list = append(list, fmt.Sprint(section.letter, n))
		}
	}
	return append(list, "W1", "W2", "W9")
}

// tests returns the tests of all folders, as package.TestName.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join(product.Root(t), folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
					found[file.Name.Name+"."+f.Name.Name] = true
				}
			}
		}
	}
	return found
}

// page returns the tests that the page names, and those of each row.
func page(t *testing.T) (named map[string]bool, byRow map[string][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(product.Root(t), "docs", "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	named, byRow = map[string]bool{}, map[string][]string{}
	row := regexp.MustCompile(`^\| ([OESW]\d+) \| .+ \| .+ \| .+ \|$`)
	name := regexp.MustCompile("`([a-z]+\\.Test[A-Za-z0-9]+)`")
	for line := range strings.Lines(string(text)) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		for _, n := range name.FindAllStringSubmatch(line, -1) {
			named[n[1]] = true
			if m != nil {
				byRow[m[1]] = append(byRow[m[1]], n[1])
			}
		}
	}
	return named, byRow
}

func TestPageNamesTests(t *testing.T) {
	exist := tests(t)
	named, byRow := page(t)
	for name := range named {
		if !exist[name] {
			t.Errorf("the page names %s, which does not exist", name)
		}
	}
	for _, row := range rows() {
		if len(byRow[row]) == 0 {
			t.Errorf("row %s has no test", row)
		}
		for _, name := range byRow[row] {
			if !regexp.MustCompile(row + `([A-Z]|$)`).MatchString(name) {
				t.Errorf("row %s names %s, which is not named after it", row, name)
			}
		}
	}
}

func TestTestsAreOnThePage(t *testing.T) {
	named, _ := page(t)
	ofRow := regexp.MustCompile(`\.Test(I\d+)*[OESW]\d+[A-Z]`)
	for name := range tests(t) {
		if ofRow.MatchString(name) && !named[name] {
			t.Errorf("%s is named after a row, and not on the page", name)
		}
	}
}
