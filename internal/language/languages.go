package language

import "slices"

// All returns the languages.
func All() []Language {
	loader := []string{"LD_", "GLIBC_", "MALLOC_", "LC_", "LANG", "TZ"}
	// What modules that were imported ahead have read.
	imports := []string{"MPL", "NPY_", "NUMPY_", "OMP_", "OPENBLAS_"}
	node := []string{"node", "--require", "/opt/preheat/node/warm.cjs", "main.js"}
	return []Language{
		{
			Name: "python", Aliases: []string{"py", "python3"},
			Script: "main.py", Reserved: []string{".main.py.source"}, Interpreter: "/usr/bin/python3", Rich: true,
			Cold: []string{"python3", "main.py"}, Warm: []string{"python3", "main.py"}, Session: []string{"python3", "main.py"},
			Startup: slices.Concat([]string{"PYTHON", "_PREHEAT", "HOME"}, loader, imports),
		},
		{
			Name: "javascript", Aliases: []string{"js", "node", "nodejs"},
			Script: "main.js", Interpreter: "/usr/bin/node",
			Cold: node, Warm: node, Session: node,
			Startup: slices.Concat([]string{"NODE_", "UV_", "OPENSSL_", "SSL_", "ICU_"}, loader),
		},
		{
			Name: "bash", Aliases: []string{"sh", "shell"},
			Script: "main.sh", Interpreter: "/bin/bash", Cold: []string{"bash", "main.sh"},
			Session: []string{"bash", "/opt/preheat/bash/session.sh"},
		},
	}
}
