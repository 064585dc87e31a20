package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"testing/fstest"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const status = `Package: zlib1g
Status: install ok installed
Architecture: amd64
Version: 1:1.3.dfsg+really1.3.1-1
Description: compression
 Version: not this

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1

Package: fonts
Status: install ok installed
Architecture: all
Version: 2-1
`

func TestBillOfMaterials(t *testing.T) {
	root := fstest.MapFS{
		"var/lib/dpkg/status":            {Data: []byte(status)},
		"usr/share/doc/zlib1g/copyright": {Data: []byte("Format: x\n\nFiles: *\nLicense: Zlib\n\nFiles: a\nLicense: GPL-2+\n text\n\nLicense: Zlib\n text\n")},
		"usr/share/doc/fonts/copyright":  {Data: []byte("See /usr/share/common-licenses/GPL-3.\n")},
	}
	var out bytes.Buffer
	if err := write(&out, root); err != nil {
		t.Fatal(err)
	}
	var b cdx.BOM
	if err := json.Unmarshal(out.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	type row struct {
		name, url string
		licences  []string
	}
	want := []row{
		{"fonts", "pkg:deb/debian/fonts@2-1?arch=all&distro=debian-13", []string{"GPL-3"}},
		{"zlib1g", "pkg:deb/debian/zlib1g@1%3A1.3.dfsg%2Breally1.3.1-1?arch=amd64&distro=debian-13", []string{"GPL-2+", "Zlib"}},
	}
	if len(*b.Components) != len(want) {
		t.Fatalf("the components are %v", *b.Components)
	}
	for i, c := range *b.Components {
		var names []string
		for _, l := range *c.Licenses {
			names = append(names, l.License.Name)
		}
		if c.Name != want[i].name || c.PackageURL != want[i].url || !slices.Equal(names, want[i].licences) {
			t.Errorf("component %d is %s, %s, %v, not %v", i, c.Name, c.PackageURL, names, want[i])
		}
	}
}

func TestNoPackages(t *testing.T) {
	if err := write(&bytes.Buffer{}, fstest.MapFS{}); err == nil {
		t.Error("a folder without packages has a bill of materials")
	}
}
