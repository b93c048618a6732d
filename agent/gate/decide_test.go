package gate

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// proves Z2: a window is closed at notAfter, open one second before; the same around notBefore and MaxWindow.
func TestDecideInTime(t *testing.T) {
	const end = 1800000000
	f := AllowFile{NotAfter: end, NotBefore: end - 3600}
	far := int64(MaxWindow / time.Second)
	for name, tc := range map[string]struct {
		now  int64
		file AllowFile
		code string
	}{
		"a second before the end":          {end - 1, f, CodeOpen},
		"at the end":                       {end, f, CodeExpired},
		"a second after the end":           {end + 1, f, CodeExpired},
		"a second before the beginning":    {end - 3601, f, CodeNotYet},
		"at the beginning":                 {end - 3600, f, CodeOpen},
		"a second after the beginning":     {end - 3599, f, CodeOpen},
		"as far ahead as permitted":        {end - far, AllowFile{NotAfter: end}, CodeOpen},
		"a second further than permitted":  {end - far - 1, AllowFile{NotAfter: end}, CodeTooFar},
		"a second less than the most":      {end - far + 1, AllowFile{NotAfter: end}, CodeOpen},
		"no end":                           {end, AllowFile{}, CodeNoEnd},
		"a negative end is no endless one": {end, AllowFile{NotAfter: -1}, CodeNoEnd},
	} {
		t.Run(name, func(t *testing.T) {
			v := Decide(time.Unix(tc.now, 0), tc.file, nil, Request{Operation: OpInstall})
			if v.Code != tc.code || v.Open != (tc.code == CodeOpen) || v.Reason == "" {
				t.Errorf("got %+v, want %s", v, tc.code)
			}
		})
	}
	if v := Decide(time.Unix(end-1, 999_999_999), f, nil, Request{}); !v.Open {
		t.Errorf("closed a nanosecond before the end: %+v", v)
	}
}

// proves Z1: a window for one change permits no other change.
func TestDecideBinds(t *testing.T) {
	sum, other := strings.Repeat("a", 64), strings.Repeat("b", 64)
	pkgs := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	bound := AllowFile{NotAfter: 1800000000, Operations: []string{OpStop, OpInstall, OpRemove},
		Packages: pkgs("kibotos-node", "0.1.4"), SHA256: []string{sum}}
	node := pkgs("kibotos-node", "0.1.4")
	for name, tc := range map[string]struct {
		file AllowFile
		req  Request
		code string
	}{
		"exactly that":             {bound, Request{Operation: OpInstall, Packages: node, SHA256: []string{sum}}, CodeOpen},
		"any window open?":         {bound, Request{}, CodeOpen},
		"other operation":          {bound, Request{Operation: OpStart}, CodeOtherOperation},
		"operation about no deb":   {bound, Request{Operation: OpStop}, CodeOpen},
		"other package":            {bound, Request{Operation: OpInstall, Packages: pkgs("kibotos-gw", "0.1.4"), SHA256: []string{sum}}, CodeOtherPackage},
		"one package too many":     {bound, Request{Operation: OpInstall, Packages: pkgs("kibotos-node", "0.1.4", "kibotos-gw", "0.1.4"), SHA256: []string{sum}}, CodeOtherPackage},
		"no package named":         {bound, Request{Operation: OpInstall, Packages: nil, SHA256: []string{sum}}, CodeOtherPackage},
		"other version":            {bound, Request{Operation: OpInstall, Packages: pkgs("kibotos-node", "0.1.5"), SHA256: []string{sum}}, CodeOtherVersion},
		"other file":               {bound, Request{Operation: OpInstall, Packages: node, SHA256: []string{other}}, CodeOtherSHA256},
		"one file too many":        {bound, Request{Operation: OpInstall, Packages: node, SHA256: []string{sum, other}}, CodeOtherSHA256},
		"no file named":            {bound, Request{Operation: OpInstall, Packages: node, SHA256: nil}, CodeOtherSHA256},
		"remove needs no checksum": {bound, Request{Operation: OpRemove, Packages: node, SHA256: nil}, CodeOpen},
		"remove another version":   {bound, Request{Operation: OpRemove, Packages: pkgs("kibotos-node", "0.1.2"), SHA256: nil}, CodeOtherVersion},
		"unbound takes anything":   {AllowFile{NotAfter: 1800000000}, Request{Operation: OpRemove, Packages: node, SHA256: []string{other}}, CodeOpen},
		"unknown operation":        {bound, Request{Operation: "dance"}, CodeBadRequest},
		"unreadable package":       {bound, Request{Operation: OpInstall, Packages: pkgs("kibotos-node", ""), SHA256: []string{sum}}, CodeBadRequest},
		"unreadable checksum":      {bound, Request{Operation: OpInstall, Packages: node, SHA256: []string{"xyz"}}, CodeBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			v := Decide(time.Unix(1799999999, 0), tc.file, nil, tc.req)
			if v.Code != tc.code || v.Open != (tc.code == CodeOpen) {
				t.Errorf("got %+v, want %s", v, tc.code)
			}
		})
	}
}

// proves Z5: any error is a closed gate, with the error as the reason, whatever the file says.
func TestErrorIsClosed(t *testing.T) {
	open := AllowFile{NotAfter: 1800000000}
	v := Decide(time.Unix(1799999999, 0), open, errors.New("disk on fire"), Request{})
	if v.Open || v.Code != CodeUnreadable || v.Reason != "disk on fire" {
		t.Errorf("got %+v", v)
	}
	v = Decide(time.Unix(1799999999, 0), open, Deny(CodeMissing, "no file"), Request{})
	if v.Open || v.Code != CodeMissing {
		t.Errorf("got %+v", v)
	}
}
