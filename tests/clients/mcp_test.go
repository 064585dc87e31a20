package clients_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/tests/product"
)

// nodeOfPackage runs a script by the Node of this folder's packages: what
// belongs to the protocol wants a newer one than Debian's.
func nodeOfPackage(t *testing.T, env []string, script string, args ...string) string {
	t.Helper()
	found, err := filepath.Glob("node_modules/node-linux-*/bin/node")
	if err != nil || len(found) != 1 {
		t.Fatalf("node: %v, %v (make clients installs it)", found, err)
	}
	bin, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return run(t, ".", env, bin, append([]string{script}, args...)...)
}

// The protocol's own conformance suite: all that a revision requires, and what it
// has beside that.
func TestMCPConforms(t *testing.T) {
	p := product.Start(t)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			report := nodeOfPackage(t, nil, "node_modules/.bin/conformance", "server", "--url", p.URL+"/mcp",
				"--requirements", revision, "--expected-failures", "mcp/expected-"+revision+".yaml", "-o", t.TempDir())
			_, summary, ok := strings.Cut(report, "=== SUMMARY ===")
			if !ok {
				t.Fatalf("no summary: %s", report)
			}
			t.Log(summary)
		})
	}
}

func TestMCPClientsForNode(t *testing.T) {
	p := product.Start(t)
	for name, test := range map[string]struct {
		env      []string
		revision string
	}{
		"sdk":                   {[]string{"SDK=@modelcontextprotocol/sdk"}, "2025-11-25"},
		"client":                {[]string{"SDK=@modelcontextprotocol/client"}, "2025-11-25"},
		"client for 2026-07-28": {[]string{"SDK=@modelcontextprotocol/client", `OPTIONS={"versionNegotiation":{"mode":{"pin":"2026-07-28"}}}`}, "2026-07-28"},
	} {
		t.Run(name, func(t *testing.T) {
			out := nodeOfPackage(t, append(test.env, "PREHEAT_URL="+p.URL), "mcp/sdk.mjs")
			if strings.TrimSpace(out) != test.revision {
				t.Errorf("the revision is %s", out)
			}
		})
	}
}

func TestMCPInspectorOnTheCommandLine(t *testing.T) {
	p := product.Start(t)
	for name, target := range map[string][]string{
		"http":  {"--transport", "http", "--server-url", p.URL + "/mcp"},
		"stdio": {"--transport", "stdio", filepath.Join(product.Root(t), "build/bin/preheat"), "mcp", "-e", "PREHEAT_URL=" + p.URL},
	} {
		t.Run(name, func(t *testing.T) { testInspector(t, target) })
	}
}

func testInspector(t *testing.T, target []string) {
	inspect := func(args ...string) string {
		// It would keep a catalog of servers in the home folder.
		env := []string{"HOME=" + t.TempDir()}
		return nodeOfPackage(t, env, "node_modules/.bin/mcp-inspector", slices.Concat([]string{"--cli"}, target, args)...)
	}
	var list struct{ Tools []struct{ Name string } }
	// With --strict it fails for schemas that not all clients understand.
	if out := inspect("--method", "tools/list", "--strict"); json.Unmarshal([]byte(out), &list) != nil || len(list.Tools) != 1 || list.Tools[0].Name != "run_code" {
		t.Errorf("the tools are %s", out)
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	out := inspect("--method", "tools/call", "--tool-name", "run_code", "--tool-arg", "language=python", "--tool-arg", "code=print(6*7)")
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.IsError || result.Content[0].Text != "42\n" {
		t.Errorf("%v: %s", err, out)
	}
}
