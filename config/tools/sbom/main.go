// Command sbom writes the bill of materials of a sandbox image, in CycloneDX's JSON:
// each Debian package in a root file system, with its version and its licences.
//
//	sbom ROOTFS >sbom.cdx.json
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom ROOTFS")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.DirFS(os.Args[1])); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, root fs.FS) error {
	b, err := bill(root)
	if err != nil {
		return err
	}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(b)
}

// bill lists the packages that are installed in root.
func bill(root fs.FS) (*cdx.BOM, error) {
	packages, err := installed(root)
	if err != nil {
		return nil, err
	}
	components := make([]cdx.Component, 0, len(packages))
	for _, p := range packages {
		found, err := licences(root, p.name)
		if err != nil {
			return nil, err
		}
		url := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=debian-13", p.name, strings.ReplaceAll(strings.ReplaceAll(p.version, "+", "%2B"), ":", "%3A"), p.architecture)
		c := cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: p.name, Version: p.version, PackageURL: url}
		if len(found) > 0 {
			list := make(cdx.Licenses, 0, len(found))
			for _, name := range found {
				list = append(list, cdx.LicenseChoice{License: &cdx.License{Name: name}})
			}
			c.Licenses = &list
		}
		components = append(components, c)
	}
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{Component: &cdx.Component{Type: cdx.ComponentTypeContainer, Name: "preheat-sandbox"}}
	b.Components = &components
	return b, nil
}

type debianPackage struct{ name, version, architecture string }

// installed reads dpkg's status, whose paragraphs are one package each.
func installed(root fs.FS) (_ []debianPackage, err error) {
	f, err := root.Open("var/lib/dpkg/status")
	if err != nil {
		return nil, fmt.Errorf("reading the installed packages: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var packages []debianPackage
	fields := map[string]string{}
	end := func() {
		if fields["Status"] == "install ok installed" {
			packages = append(packages, debianPackage{fields["Package"], fields["Version"], fields["Architecture"]})
		}
		clear(fields)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() == "" {
			end()
		} else if name, value, found := strings.Cut(lines.Text(), ": "); found && !strings.HasPrefix(name, " ") {
			fields[name] = value
		}
	}
	end()
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the installed packages: %w", err)
	}
	slices.SortFunc(packages, func(a, b debianPackage) int { return strings.Compare(a.name, b.name) })
	return packages, nil
}

var (
	// licenceField is the name of a licence in a machine-readable copyright file
	// (https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/).
	licenceField = regexp.MustCompile(`(?m)^License: *(\S.*)$`)
	// commonLicence is the file of a licence that an older one refers to.
	commonLicence = regexp.MustCompile(`/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])`)
)

// licences are the names of a package's licences, as its copyright file has them.
func licences(root fs.FS, name string) ([]string, error) {
	text, err := fs.ReadFile(root, "usr/share/doc/"+name+"/copyright")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the licences of %s: %w", name, err)
	}
	pattern := licenceField
	if !pattern.Match(text) {
		pattern = commonLicence
	}
	var names []string
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		names = append(names, strings.TrimSpace(string(match[1])))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
