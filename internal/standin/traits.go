package standin

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Release is what one version of one part can and cannot do. It is packed as
// /usr/share/kibotos/<part>/release.json; programs read it from there, so that one compiled
// binary serves every version.
type Release struct {
	Part     release.Part `json:"part"`
	Version  string       `json:"version"`  // SemVer without "v"
	Revision string       `json:"revision"` // source revision, hex

	// ctrl
	Schema    int `json:"schema,omitempty"`    // database schema it works on
	MinSchema int `json:"minSchema,omitempty"` // oldest schema that it can migrate from (K28)
	Launch    int `json:"launch,omitempty"`    // newest Launch format it reads
	Level     int `json:"level,omitempty"`     // ctrl: interface level for gateways; gateway: level it needs

	// node
	Runtime    int   `json:"runtime,omitempty"`    // VM runtime that the package carries; drives it and the one before (K43)
	ReadsMin   int   `json:"readsMin"`             // oldest node record format it reads (K64)
	Writes     int   `json:"writes"`               // format it writes and newest it reads; at most ReadsMin+1
	Guest      Range `json:"guest"`                // guest protocols it can take over
	GuestNow   int   `json:"guestNow,omitempty"`   // guest protocol of Instances it starts
	ConfigForm int   `json:"configForm,omitempty"` // form of its configuration file (K25)

	// any part
	FailsToStart bool `json:"failsToStart,omitempty"`
	FailsToAdopt bool `json:"failsToAdopt,omitempty"`
}

// Range is an inclusive range of numbers.
type Range struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Has reports whether n is in the range.
func (r Range) Has(n int) bool { return r.Min <= n && n <= r.Max }

// String shows the range as "1..3".
func (r Range) String() string { return fmt.Sprintf("%d..%d", r.Min, r.Max) }

// DebVersion is the version as Debian writes it: a pre-release sorts before its release (K7).
func (r Release) DebVersion() string { return strings.Replace(r.Version, "-", "~", 1) }

// Key names the release among all others: its version, with the revision where two builds share one.
func (r Release) Key() string {
	if r.Revision == alphaSecond {
		return r.Version + "-second"
	}
	return r.Version
}

// TraitsPath is where the traits of a part lie, given the directory of its program.
func TraitsPath(binDir string, p release.Part) string {
	return path.Join(binDir, "../share/kibotos", string(p), "release.json")
}

// ReadRelease reads the traits of the running program.
func ReadRelease(env Env, p release.Part) (Release, error) {
	file := TraitsPath(path.Dir(env.Executable()), p)
	data, err := env.ReadFile(file)
	if err != nil {
		return Release{}, fmt.Errorf("cannot read release traits: %w", err)
	}
	r, err := ParseRelease(data)
	if err != nil {
		return Release{}, fmt.Errorf("cannot read release traits %s: %w", file, err)
	}
	return r, nil
}

// ParseRelease reads release.json.
func ParseRelease(data []byte) (Release, error) {
	var r Release
	if err := json.Unmarshal(data, &r); err != nil {
		return Release{}, fmt.Errorf("cannot parse release traits: %w", err)
	}
	if !r.Part.Valid() || r.Version == "" {
		return Release{}, fmt.Errorf("cannot use release traits: part %q, version %q", r.Part, r.Version)
	}
	return r, nil
}

// JSON is the content of release.json.
func (r Release) JSON() []byte {
	data, _ := json.MarshalIndent(r, "", "  ") // numbers and strings always marshal
	return append(data, '\n')
}

const (
	alphaFirst  = "a1fa0001c0ffee00"
	alphaSecond = "a1fa0002c0ffee00"
)

// Catalogue lists every release that exists, all parts of a version together, oldest first.
func Catalogue() []Release {
	line01 := Release{Schema: 10, MinSchema: 8, Launch: 1, Level: 1, Runtime: 2, ReadsMin: 0, Writes: 1,
		Guest: Range{1, 3}, GuestNow: 2, ConfigForm: 1}
	line02 := line01
	line02.Schema, line02.MinSchema, line02.Launch, line02.Level = 20, 10, 2, 2
	line02.Runtime, line02.ReadsMin, line02.Writes, line02.Guest, line02.GuestNow = 3, 1, 2, Range{2, 4}, 3
	line03 := line02
	line03.Schema, line03.MinSchema, line03.Launch = 30, 20, 3
	line03.Runtime, line03.ReadsMin, line03.Writes = 4, 2, 3
	line00 := line01
	line00.Schema, line00.MinSchema, line00.Runtime, line00.Writes = 8, 8, 1, 0
	line00.Guest, line00.GuestNow = Range{1, 1}, 1

	newRuntime, newForm, newSchema, broken := line01, line01, line01, line01
	newRuntime.Runtime = 3
	newForm.ConfigForm = 2
	newSchema.Schema = 11
	broken.FailsToStart = true

	var all []Release
	add := func(version, revision string, traits Release) {
		for _, p := range release.Parts() {
			all = append(all, traitsOf(p, version, revision, traits))
		}
	}
	add("0.0.9", "0009000000c0ffee", line00)
	add("0.1.2", "0102000000c0ffee", line01)
	add("0.1.4", "0104000000c0ffee", line01)
	add("0.1.5", "0105000000c0ffee", newRuntime)
	add("0.1.6", "0106000000c0ffee", newForm)
	add("0.1.7", "0107000000c0ffee", newSchema)
	add("0.1.8", "0108000000c0ffee", broken)
	add("0.2.0-rc.1", "0200010000c0ffee", line02)
	add("0.2.0", "0200000000c0ffee", line02)
	add("0.3.0-alpha.1", alphaFirst, line03)
	add("0.3.0-alpha.1", alphaSecond, line03)
	return all
}

// traitsOf keeps the traits that mean something for the part.
func traitsOf(p release.Part, version, revision string, all Release) Release {
	r := Release{Part: p, Version: version, Revision: revision}
	switch p {
	case release.Ctrl:
		r.Schema, r.MinSchema, r.Launch, r.Level = all.Schema, all.MinSchema, all.Launch, all.Level
	case release.Node:
		r.Runtime, r.ReadsMin, r.Writes = all.Runtime, all.ReadsMin, all.Writes
		r.Guest, r.GuestNow, r.ConfigForm = all.Guest, all.GuestNow, all.ConfigForm
		r.FailsToStart, r.FailsToAdopt = all.FailsToStart, all.FailsToAdopt
	case release.E2B, release.GW:
		r.Level = all.Level
	}
	return r
}

// Keys lists the names of all releases, oldest first.
func Keys() []string {
	var keys []string
	for _, r := range Catalogue() {
		if !slices.Contains(keys, r.Key()) {
			keys = append(keys, r.Key())
		}
	}
	return keys
}

// Find returns the parts of the release with this key ("0.1.4", "0.3.0-alpha.1-second").
func Find(key string) ([]Release, bool) {
	var found []Release
	for _, r := range Catalogue() {
		if r.Key() == key {
			found = append(found, r)
		}
	}
	return found, len(found) > 0
}
