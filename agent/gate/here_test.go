package gate

import (
	"strings"
	"testing"
	"time"
)

const (
	machineA = "0123456789abcdef0123456789abcdef"
	machineB = "fedcba9876543210fedcba9876543210"
	bootA    = "01234567-89ab-cdef-0123-456789abcdef"
	bootB    = "76543210-89ab-cdef-0123-456789abcdef"
)

// proves Z1: a window for one host, run and plan is closed for every other one, and for those who do not say.
func TestDecideBindsWhereAndWhom(t *testing.T) {
	bound := AllowFile{NotAfter: 1800000000, MachineID: machineA, Run: "r1", Plan: "sha256:ab"}
	mine := Request{Operation: OpStop, Run: "r1", Plan: "sha256:ab"}
	for name, tc := range map[string]struct {
		here Here
		file AllowFile
		req  Request
		code string
	}{
		"exactly that":        {Here{MachineID: machineA}, bound, mine, CodeOpen},
		"another machine":     {Here{MachineID: machineB}, bound, mine, CodeOtherMachine},
		"unknown machine":     {Here{}, bound, mine, CodeOtherMachine},
		"any window open?":    {Here{MachineID: machineA}, bound, Request{}, CodeOpen},
		"any, elsewhere?":     {Here{MachineID: machineB}, bound, Request{}, CodeOtherMachine},
		"another run":         {Here{MachineID: machineA}, bound, Request{Operation: OpStop, Run: "r2", Plan: "sha256:ab"}, CodeOtherRun},
		"no run":              {Here{MachineID: machineA}, bound, Request{Operation: OpStop, Plan: "sha256:ab"}, CodeOtherRun},
		"another plan":        {Here{MachineID: machineA}, bound, Request{Operation: OpStop, Run: "r1", Plan: "sha256:ac"}, CodeOtherPlan},
		"no plan":             {Here{MachineID: machineA}, bound, Request{Operation: OpStop, Run: "r1"}, CodeOtherPlan},
		"unbound takes any":   {Here{MachineID: machineB}, AllowFile{NotAfter: 1800000000}, mine, CodeOpen},
		"unreadable run":      {Here{MachineID: machineA}, bound, Request{Operation: OpStop, Run: "a b", Plan: "sha256:ab"}, CodeBadRequest},
		"end of another hour": {Here{MachineID: machineA}, AllowFile{NotAfter: 1799999999, MachineID: machineA}, mine, CodeExpired},
	} {
		t.Run(name, func(t *testing.T) {
			tc.here.Now = time.Unix(1799999999, 0)
			if v := tc.here.Decide(tc.file, nil, tc.req); v.Code != tc.code || v.Open != (tc.code == CodeOpen) || v.Reason == "" {
				t.Errorf("got %+v, want %s", v, tc.code)
			}
		})
	}
}

// proves Z4: within the boot a window was placed in, it also ends by the clock that nobody sets, one second
// before and at its end; after a reboot the time of day alone decides.
func TestDecideInBoot(t *testing.T) {
	const end = 1800000000
	f := AllowFile{NotAfter: end, BootID: bootA, BootUntil: 1000}
	for name, tc := range map[string]struct {
		boot string
		up   time.Duration
		now  int64
		code string
	}{
		"a second before":               {bootA, 999 * time.Second, end - 1, CodeOpen},
		"a nanosecond before":           {bootA, 1000*time.Second - 1, end - 1, CodeOpen},
		"at its end":                    {bootA, 1000 * time.Second, end - 1, CodeExpired},
		"a second after":                {bootA, 1001 * time.Second, end - 1, CodeExpired},
		"clock set back a day":          {bootA, 1001 * time.Second, end - 86400, CodeExpired},
		"clock set forward":             {bootA, 10 * time.Second, end, CodeExpired},
		"another boot, inside":          {bootB, 5 * time.Second, end - 1, CodeOpen},
		"another boot, longer up":       {bootB, 5000 * time.Second, end - 1, CodeOpen},
		"another boot, over":            {bootB, 5 * time.Second, end, CodeExpired},
		"which boot this is is unknown": {"", 0, end - 1, CodeUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			v := Here{Now: time.Unix(tc.now, 0), BootID: tc.boot, Up: tc.up}.Decide(f, nil, Request{Operation: OpStop})
			if v.Code != tc.code || v.Open != (tc.code == CodeOpen) {
				t.Errorf("got %+v, want %s", v, tc.code)
			}
		})
	}
}

// proves Z4: a lease cannot be renewed for longer than any window may last.
func TestDecideLeaseHasAnEnd(t *testing.T) {
	const now = 1800000000
	far := int64(MaxWindow / time.Second)
	for renewUntil, code := range map[int64]string{now + far - 1: CodeOpen, now + far: CodeOpen, now + far + 1: CodeTooFar} {
		f := AllowFile{NotAfter: now + 60, ID: "l", RenewUntil: renewUntil}
		if v := Decide(time.Unix(now, 0), f, nil, Request{}); v.Code != code {
			t.Errorf("%d: %+v, want %s", renewUntil-now, v, code)
		}
	}
}

// proves Z7: a hold denies whatever changes the host, with or without a window, and never what brings a
// half-done host back.
func TestDecideHeld(t *testing.T) {
	since := time.Unix(1799990000, 0).UTC()
	here := Here{Now: time.Unix(1799999999, 0), Holds: []Hold{{ID: "a", Who: "ann", Why: "disk swap", Since: since}, {ID: "b", Who: "ben", Why: "demo"}}}
	window := AllowFile{NotAfter: 1800000000}
	for _, op := range append(Operations(), "") {
		want := CodeHeld
		if op == OpStart || op == OpCancelDrain {
			want = CodeOpen
		}
		if v := here.Decide(window, nil, Request{Operation: op}); v.Code != want {
			t.Errorf("%q: %+v, want %s", op, v, want)
		}
		missing := Deny(CodeMissing, "no file")
		if want == CodeOpen {
			want = CodeMissing
		}
		v := here.Decide(AllowFile{}, missing, Request{Operation: op})
		if v.Code != want || v.Open {
			t.Errorf("%q without a window: %+v, want %s", op, v, want)
		}
	}
	v := here.Decide(window, nil, Request{Operation: OpStop})
	for _, says := range []string{"ann holds this host since 2027-01-15 05:13:20 UTC: disk swap (hold a)", "ben holds this host: demo (hold b)"} {
		if !strings.Contains(v.Reason, says) {
			t.Errorf("no %q in %q", says, v.Reason)
		}
	}
}

// proves Z2: what binds a window is read as strictly as all the rest.
func TestParseBindings(t *testing.T) {
	whole := `{"notAfter":1800000000,"id":"l","machineId":"` + machineA + `","run":"r-1","plan":"sha256:ab","bootId":"` + bootA + `","bootUntil":77,"renewUntil":1800000000}`
	f, err := Parse([]byte(whole))
	want := AllowFile{NotAfter: 1800000000, ID: "l", MachineID: machineA, Run: "r-1", Plan: "sha256:ab", BootID: bootA, BootUntil: 77, RenewUntil: 1800000000}
	if err != nil || f.MachineID != want.MachineID || f.Run != want.Run || f.Plan != want.Plan || f.BootID != want.BootID ||
		f.BootUntil != want.BootUntil || f.RenewUntil != want.RenewUntil {
		t.Errorf("got %+v %v", f, err)
	}
	for in, says := range map[string]string{
		`"machineId":"x"`:                  "32 lower-case hex",
		`"machineId":1`:                    "a string",
		`"run":""`:                         "no run",
		`"run":"a/b"`:                      "no run",
		`"plan":"a b"`:                     "no plan",
		`"bootId":"x","bootUntil":1`:       "boot id",
		`"bootId":"` + bootA + `"`:         "go together",
		`"bootUntil":1`:                    "go together",
		`"bootUntil":0`:                    "positive",
		`"renewUntil":1800000000`:          "needs an id",
		`"id":"l","renewUntil":1799999999`: "before notAfter",
		`"machineID":"x"`:                  `"machineId"`,
	} {
		_, err := Parse([]byte(`{"notAfter":1800000000,` + in + `}`))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", in, err, says)
		}
	}
}
