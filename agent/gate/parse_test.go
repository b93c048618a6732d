package gate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// end of the windows in testdata: 2100-01-01 00:00:00 UTC.
const shapeEnd = 4102444800

// proves Z2: every shape of file that leaves room for doubt is closed, also a second before its end.
func TestShapes(t *testing.T) {
	dir := filepath.Join("testdata", "json-shape")
	table, err := os.ReadFile(filepath.Join(dir, "expected.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(table)), "\n")[1:]
	if len(rows) < 25 {
		t.Fatalf("only %d rows in the table", len(rows))
	}
	for _, row := range rows {
		cols := strings.Split(row, "\t")
		t.Run(cols[0], func(t *testing.T) {
			f, err := Parse(readShape(t, filepath.Join(dir, cols[0])))
			v := Decide(time.Unix(shapeEnd-1, 0), f, err, Request{Operation: OpInstall})
			// notBefore is a key of this format, so the table's "unknown field" is known here: its own decision.
			want := strings.HasPrefix(cols[1], "open") || cols[0] == "unknown-field.json"
			if v.Open != want {
				t.Errorf("open = %v (%s: %s), want %v", v.Open, v.Code, v.Reason, want)
			}
			if v = Decide(time.Unix(shapeEnd, 0), f, err, Request{}); v.Open {
				t.Error("still open at notAfter")
			}
		})
	}
}

func readShape(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(path) != ".gz" {
		return data
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(zr); err != nil {
		t.Fatal(err)
	}
	return data
}

// proves Z2: each defect has its own code, and the message names it.
func TestParseRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ in, code, says string }{
		"empty":              {"", CodeNotJSON, "empty"},
		"byte-order mark":    {"\xef\xbb\xbf{}", CodeNotJSON, "byte-order mark"},
		"not UTF-8":          {"{\"id\":\"\xff\"}", CodeNotJSON, "UTF-8"},
		"trailing":           {`{"notAfter":1800000000}x`, CodeNotJSON, "after top-level value"},
		"too big":            {strings.Repeat(" ", MaxSize+1), CodeTooBig, "65536"},
		"list":               {`[]`, CodeNotJSON, "a list"},
		"no end":             {`{"id":"x"}`, CodeNoEnd, "notAfter"},
		"other case":         {`{"NOTAFTER":1800000000}`, CodeBadKey, `"notAfter"`},
		"unknown":            {`{"notAfter":1800000000,"until":1}`, CodeBadKey, `"until"`},
		"twice":              {`{"notAfter":1800000000,"notAfter":1800000000}`, CodeBadKey, "twice"},
		"twice by escape":    {`{"notAfter":1800000000,"not\u0041fter":1800000001}`, CodeBadKey, "twice"},
		"milliseconds":       {`{"notAfter":1800000000000}`, CodeUnit, "milliseconds"},
		"microseconds":       {`{"notAfter":1800000000000000}`, CodeUnit, "microseconds"},
		"nanoseconds":        {`{"notAfter":1800000000000000000}`, CodeUnit, "nanoseconds"},
		"float":              {`{"notAfter":1800000000.0}`, CodeBad, "fraction"},
		"string":             {`{"notAfter":"1800000000"}`, CodeBad, "a string"},
		"null":               {`{"notAfter":null}`, CodeBad, "null"},
		"overflow":           {`{"notAfter":99999999999999999999}`, CodeBad, "plausible"},
		"begins at its end":  {`{"notAfter":1800000000,"notBefore":1800000000}`, CodeBad, "notBefore"},
		"once as a number":   {`{"notAfter":1800000000,"singleUse":1}`, CodeBad, "true or false"},
		"null list":          {`{"notAfter":1800000000,"operations":null}`, CodeBad, "null"},
		"empty list":         {`{"notAfter":1800000000,"operations":[]}`, CodeBad, "empty list"},
		"unknown operation":  {`{"notAfter":1800000000,"operations":["upgrade"]}`, CodeBad, "known are"},
		"packages list":      {`{"notAfter":1800000000,"packages":["kibotos-node"]}`, CodeBad, "a list"},
		"no packages":        {`{"notAfter":1800000000,"packages":{}}`, CodeBad, "empty"},
		"package twice":      {`{"notAfter":1800000000,"packages":{"ab":"1","ab":"2"}}`, CodeBad, "twice"},
		"package name":       {`{"notAfter":1800000000,"packages":{"A b":"1"}}`, CodeBad, "no package name"},
		"package version":    {`{"notAfter":1800000000,"packages":{"ab":""}}`, CodeBad, "no version"},
		"short checksum":     {`{"notAfter":1800000000,"sha256":["abc"]}`, CodeBad, "SHA-256"},
		"terminal in reason": {`{"notAfter":1800000000,"reason":"\u001b[2J"}`, CodeBad, "printed"},
		"long reason":        {`{"notAfter":1800000000,"reason":"` + strings.Repeat("x", 1025) + `"}`, CodeBad, "longer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.in))
			var d *Denial
			if !errors.As(err, &d) || d.Code != tc.code || !strings.Contains(d.Reason, tc.says) {
				t.Errorf("got %+v, want code %s and a reason with %q", err, tc.code, tc.says)
			}
		})
	}
}

func TestParseReadsEverything(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	f, err := Parse([]byte(`{"notAfter":1800000000,"notBefore":1799999000,"id":"w1","operations":["stop","install"],
		"packages":{"kibotos-node":"0.2.0~rc.1"},"sha256":["` + sum + `"],"singleUse":true,"issuedBy":"ops","reason":"upgrade"}`))
	if err != nil {
		t.Fatal(err)
	}
	if f.NotAfter != 1800000000 || f.NotBefore != 1799999000 || f.ID != "w1" || len(f.Operations) != 2 ||
		f.Packages["kibotos-node"] != "0.2.0~rc.1" || f.SHA256[0] != sum || !f.SingleUse || f.IssuedBy != "ops" || f.Reason != "upgrade" {
		t.Errorf("got %+v", f)
	}
}

func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("testdata", "json-shape", "*.json"))
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"notAfter":1800000000,"packages":{"ab":"1"},"operations":["stop"],"singleUse":false}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		var d *Denial
		if err != nil && (!errors.As(err, &d) || d.Code == "" || d.Reason == "") {
			t.Fatalf("an error without a code: %v", err)
		}
		if err == nil && (file.NotAfter <= 0 || file.NotAfter >= 1e11) {
			t.Fatalf("accepted notAfter %d", file.NotAfter)
		}
	})
}
