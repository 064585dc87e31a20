package api_test

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

func TestFiles(t *testing.T) {
	s := open(t, shared, python)
	s.run(`
import os
open('digits', 'w').write('0123456789')
open('page.html', 'w').write('<script>alert(1)</script>')
os.makedirs('a/b'); open('a/b/c', 'w').write('deep')
os.symlink('/etc/passwd', 'link'); os.mkfifo('pipe'); open('empty', 'w').close()
open(b'\xff', 'w').write('no text')
`)
	const unicode = "/Gr%C3%BC%C3%9Fe%20%2525%3F%23.txt"
	tag := do(t, shared, "HEAD", s.path+"/files/digits", "").Header.Get("ETag")
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		want                     string
		header, value            string
	}{
		{"whole", "GET", "/digits", "", nil, 200, "0123456789", "Content-Length", "10"},
		{"a range", "GET", "/digits", "", []string{"Range", "bytes=2-4"}, 206, "234", "Content-Range", "bytes 2-4/10"},
		{"its end", "GET", "/digits", "", []string{"Range", "bytes=-3"}, 206, "789", "Content-Range", "bytes 7-9/10"},
		{"a range of what it was", "GET", "/digits", "", []string{"Range", "bytes=2-4", "If-Range", `"1-1-1"`}, 200, "0123456789", "", ""},
		{"a range of what it is", "GET", "/digits", "", []string{"Range", "bytes=2-4", "If-Range", tag}, 206, "234", "ETag", tag},
		{"beyond it", "GET", "/digits", "", []string{"Range", "bytes=10-"}, 416, "", "Content-Range", "bytes */10"},
		{"not changed", "GET", "/digits", "", []string{"If-None-Match", tag}, 304, "", "ETag", tag},
		{"empty", "GET", "/empty", "", nil, 200, "", "Content-Length", "0"},
		{"deep", "GET", "/a/b/c", "", nil, 200, "deep", "", ""},
		{"a page", "GET", "/page.html", "", nil, 200, "<script>alert(1)</script>", "Content-Security-Policy", "sandbox; default-src 'none'"},
		{"a folder", "GET", "/a", "", nil, 422, "", "", ""},
		{"a link", "GET", "/link", "", nil, 422, "", "", ""},
		{"a pipe", "GET", "/pipe", "", nil, 422, "", "", ""},
		{"create", "PUT", unicode, "hello", nil, 201, "", "", ""},
		{"read it", "GET", unicode, "", nil, 200, "hello", "Content-Type", "text/plain"},
		{"into a folder that is none yet", "PUT", "/new/folder/f", "x", nil, 201, "", "", ""},
		{"below a file", "PUT", "/digits/f", "x", nil, 422, "", "", ""},
		{"over a folder", "PUT", "/a", "x", nil, 422, "", "", ""},
		{"replace what it is", "PUT", "/digits", "01", []string{"If-Match", tag}, 204, "", "", ""},
		{"replace what it was", "PUT", "/digits", "x", []string{"If-Match", tag}, 412, "", "", ""},
		{"create what is there", "PUT", "/digits", "x", []string{"If-None-Match", "*"}, 412, "", "", ""},
		{"it is as it was", "GET", "/digits", "", nil, 200, "01", "", ""},
		{"remove", "DELETE", "/digits", "", nil, 204, "", "", ""},
		{"remove again", "DELETE", "/digits", "", nil, 404, "", "", ""},
		{"remove a folder", "DELETE", "/a", "", nil, 204, "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			res := do(t, shared, test.method, s.path+"/files"+test.path, test.body, test.headers...)
			if res.StatusCode != test.status || test.status < 300 && res.body != test.want {
				t.Fatalf("%s: %s", res.Status, res.body)
			}
			if got := res.Header.Get(test.header); test.header != "" && got != test.value {
				t.Errorf("%s is %q", test.header, got)
			}
		})
	}
	s.prints(`print(open('Grüße %25?#.txt').read())`, "hello\n", execution.SessionKept)
	var list execution.SessionFileList
	if err := json.Unmarshal([]byte(do(t, shared, "GET", s.path+"/files", "").body), &list); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range list.Files {
		paths = append(paths, f.Path)
	}
	if got, want := strings.Join(paths, " "), "Grüße %25?#.txt empty new/folder/f page.html"; got != want || list.More {
		t.Errorf("the list has %q, %v, not %q", got, list.More, want)
	}
}

func TestArchive(t *testing.T) {
	s := open(t, shared, `{"language":"python","files":[{"path":"a/b/Grüße","content":"1"},{"path":"c","content":"2"}]}`)
	for path, want := range map[string]string{"/files?archive": "a/b/Grüße=1 c=2", "/files/a?archive": "b/Grüße=1"} {
		res := do(t, shared, "GET", s.path+path, "")
		var got []string
		for r := tar.NewReader(strings.NewReader(res.body)); ; {
			head, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if head.Typeflag == tar.TypeReg {
				text, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, head.Name+"="+string(text))
			}
		}
		if strings.Join(got, " ") != want || res.Header.Get("Content-Type") != execution.MediaTar {
			t.Errorf("%s has %q", path, got)
		}
	}
	if res := do(t, shared, "GET", s.path+"/files/missing?archive", ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("a folder that is none: %s", res.Status)
	}
}

// A file goes through the server and comes back without growing it by more
// than a few MiB, however large it is.
func TestLargeFilesAreStreamed(t *testing.T) {
	size := int64(fromEnvironment(t, "PREHEAT_TEST_FILE_MIB", 256)) << 20
	// A quarter of a sandbox's memory is its disk's.
	p := product.Start(t, "PREHEAT_POOL_SIZE=1", "PREHEAT_JAVASCRIPT_POOL_SIZE=0", fmt.Sprintf("PREHEAT_SANDBOX_MEMORY_MIB=%d", 5*size>>20))
	s := open(t, p, python)
	s.run("import hashlib")
	if res := do(t, p, "PUT", s.path+"/files/warm", strings.Repeat("x", 1<<20)); res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status, res.body)
	}
	before := p.Leftovers(t).RSS
	most := before
	measure := func() { most = max(most, p.Leftovers(t).RSS) }
	sum := sha256.New()
	random := rand.NewChaCha8([32]byte{})
	up := io.TeeReader(&every{r: io.LimitReader(random, size), each: size / 16, do: measure}, sum)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	if res, err := send(ctx, p, "PUT", s.path+"/files/large", up); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%+v, %v", res, err)
	}
	want := hex.EncodeToString(sum.Sum(nil))
	s.prints("print(hashlib.file_digest(open('large', 'rb'), 'sha256').hexdigest())", want+"\n", execution.SessionKept)
	req, err := http.NewRequestWithContext(ctx, "GET", p.URL+s.path+"/files/large", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	sum.Reset()
	if n, err := io.Copy(sum, &every{r: res.Body, each: size / 16, do: measure}); err != nil || n != size || hex.EncodeToString(sum.Sum(nil)) != want {
		t.Errorf("%d bytes came back, %v", n, err)
	}
	t.Logf("the server grew from %d to %d KiB", before, most)
	if most-before > 8<<10 {
		t.Errorf("the server grew by %d KiB for a file of %d MiB", most-before, size>>20)
	}
}

// every calls do after each so many bytes.
type every struct {
	r       io.Reader
	each, n int64
	do      func()
}

// Read implements io.Reader.
func (e *every) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	before := e.n / e.each
	if e.n += int64(n); e.n/e.each != before {
		e.do()
	}
	return n, err
}
