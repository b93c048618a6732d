package standin_test

import (
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/standin"
)

// proves K56: a gateway that is newer than ctrl starts but cannot serve
func TestGateway(t *testing.T) {
	f := newFleet(t, "0.1.4")
	f.startCtrl()
	h := f.host()
	settings := standin.ParseEnvFile([]byte("# gateway\nKIBOTOS_CTRL=" + ctrlAddr + "\nKIBOTOS_LISTEN=\"127.0.1.8:7430\"\n"))
	for version, healthy := range map[string]bool{"0.1.4": true, "0.2.0": false} {
		f.install(h, "", version)
		g, err := standin.GatewayStart(f.env(h, "/usr/bin/kibotos-gw"), release.GW, settings)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Health(); (err == nil) != healthy {
			t.Errorf("gateway %s: %v", version, err)
		}
	}
	if out, code := f.run(h, "root", "/usr/bin/kibotos-gw", "--listen", "x"); code != 2 || !strings.Contains(out, "environment") {
		t.Errorf("gateway with arguments: exit %d, %s", code, out)
	}
	if _, err := standin.GatewayStart(f.env(h, "/usr/bin/kibotos-gw"), release.GW, nil); err == nil {
		t.Error("a gateway without settings started")
	}
}

// proves K6, K12: every program tells its version and that it is a stand-in
func TestVersion(t *testing.T) {
	f := newFleet(t, "0.2.0-rc.1")
	for _, program := range []string{"kibotos-ctrl", "kibotos-node", "kibotos-e2b", "kibotos-gw", "kibo"} {
		out := f.must(f.ctrl, "/usr/bin/"+program, "version", "--json")
		if want := `{"name":"` + program + `","version":"0.2.0-rc.1","revision":"0200010000c0ffee","standIn":true}` + "\n"; out != want {
			t.Errorf("got %s, want %s", out, want)
		}
		if out := f.must(f.ctrl, "/usr/bin/"+program, "--version"); !strings.Contains(out, "stand-in") {
			t.Errorf("%s --version: %s", program, out)
		}
	}
	if _, code := f.run(f.ctrl, "root", "/usr/bin/other", "version"); code != 2 {
		t.Errorf("unknown program: exit %d", code)
	}
}
