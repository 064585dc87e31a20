// Package clients_test calls a running server with the clients that people have.
// It has the generators that people use read the description
// of the interface, compiles what they generate, and calls a running server
// with it.
package clients_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/tests/product"
)

const patience = 5 * time.Minute

func description(t *testing.T) string {
	return filepath.Join(product.Root(t), "api/execution/openapi.yaml")
}

// run runs a command in a folder and returns its output.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// node runs a program of the npm packages of this folder.
func node(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("node_modules/.bin", program))
	if err != nil {
		t.Fatal(err)
	}
	return run(t, dir, nil, bin, args...)
}

func TestDescriptionIsClean(t *testing.T) {
	out := node(t, filepath.Dir(description(t)), "redocly", "lint", "--format=json", "openapi.yaml")
	var report struct {
		Totals struct{ Errors, Warnings *int }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if n := report.Totals; n.Errors == nil || n.Warnings == nil || *n.Errors+*n.Warnings > 0 {
		t.Error(out)
	}
}

func TestGoClientOfOapiCodegen(t *testing.T) {
	dir := t.TempDir()
	copyFiles(t, "go", dir)
	if err := os.Mkdir(filepath.Join(dir, "preheat"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "preheat", "-o", "preheat/preheat.gen.go", description(t))
	p := product.Start(t)
	t.Log(run(t, dir, []string{"PREHEAT_URL=" + p.URL}, "go", "run", "."))
}

func TestTypeScriptClients(t *testing.T) {
	// What is generated stands here: Node looks for packages above it.
	generated, err := filepath.Abs("generated")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(generated); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(generated) })
	programs := map[string]func(to string){
		"openapi-fetch": func(to string) {
			node(t, ".", "openapi-typescript", description(t), "-o", filepath.Join(to, "schema.d.ts"))
		},
		"hey-api": func(to string) {
			node(t, ".", "openapi-ts", "-i", description(t), "-o", to, "-p", "@hey-api/client-fetch", "@hey-api/sdk", "@hey-api/typescript", "--silent")
		},
	}
	for name, generate := range programs {
		to := filepath.Join(generated, name)
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		generate(to)
		copyFile(t, filepath.Join("ts", name+".ts"), filepath.Join(to, "main.ts"))
	}
	node(t, ".", "tsc", "-p", ".")
	p := product.Start(t)
	for name := range programs {
		t.Run(name, func(t *testing.T) {
			t.Log(run(t, generated, []string{"PREHEAT_URL=" + p.URL}, "node", filepath.Join("js", name, "main.js")))
		})
	}
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		copyFile(t, filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
