package inventory

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/cases/*/*", "testdata/trees/*/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			if data, err := os.ReadFile(name); err == nil {
				f.Add(data)
			}
		}
	}
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("a: &a {<<: *a}\n"))
	f.Add([]byte(fullInventory))
	f.Fuzz(func(t *testing.T, data []byte) {
		inv, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(string(data))})
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("an error that is no Problems: %v", err)
			}
			return
		}
		list, err := inv.List(true)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(string(list))})
		if err != nil {
			return // a listing has no places to tell literal braces from templates
		}
		if len(again.Hosts()) != len(inv.Hosts()) {
			t.Fatalf("%d hosts, read again %d:\n%s", len(inv.Hosts()), len(again.Hosts()), list)
		}
	})
}

func FuzzHostKey(f *testing.F) {
	for _, k := range []string{"a", "a[1:3]", "a[01:03:2]-[a:c].x:22", "[2001:db8::1]:22", "::1", "fe80::1%eth0", "[a:b]", "a[:5]"} {
		f.Add(k)
	}
	f.Fuzz(func(t *testing.T, key string) {
		names, port, err := expandHostKey(key)
		if err != nil {
			return
		}
		if len(names) == 0 || len(names) > mostHosts || port < 0 || port > 65535 {
			t.Fatalf("%d names, port %d", len(names), port)
		}
		for _, n := range names {
			if n == "" || strings.ContainsAny(n, "[]") {
				t.Fatalf("%q gives the name %q", key, n)
			}
		}
	})
}

// Anchors that expand to more than a machine holds are refused, in time.
func TestAnchorBombs(t *testing.T) {
	list, merge, nest := "x-a0: &a0 [x, x]\n", "x-m0: &m0 {k0: 1}\n", "x-n0: &n0 {k: 1}\n"
	for i := 1; i < 40; i++ {
		n, p := strconv.Itoa(i), strconv.Itoa(i-1)
		list += "x-a" + n + ": &a" + n + " [*a" + p + ", *a" + p + "]\n"
		merge += "x-m" + n + ": &m" + n + " {<<: [*m" + p + ", *m" + p + "], k" + n + ": 1}\n"
		nest += "x-n" + n + ": &n" + n + " {a: *n" + p + ", b: *n" + p + "}\n"
	}
	for _, text := range []string{
		list + "kibo_node: {hosts: {a: {v: *a39}}}\n", merge + "kibo_node: {hosts: {a: {<<: *m39}}}\n", nest + "kibo_node: {vars: *n39}\n",
	} {
		if _, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(text)}); err == nil || !strings.Contains(err.Error(), "2 million") {
			t.Errorf("%v", err)
		}
	}
}
