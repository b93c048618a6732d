package gate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// CheckPackage reports what is wrong with a package name and Debian version, or nil.
func CheckPackage(name, version string) error {
	if ok, _ := regexp.MatchString(`^[a-z0-9][a-z0-9+.-]{1,127}$`, name); !ok {
		return fmt.Errorf("%q is no package name", clip(name))
	}
	if ok, _ := regexp.MatchString(`^[0-9A-Za-z][0-9A-Za-z.+~:-]{0,127}$`, version); !ok {
		return fmt.Errorf("%q is no version for %s", clip(version), name)
	}
	return nil
}

func operation(s string) error {
	if !slices.Contains(Operations(), s) {
		return fmt.Errorf("%q is no operation; known are %s", clip(s), strings.Join(Operations(), ", "))
	}
	return nil
}

func digest(s string) error {
	if ok, _ := regexp.MatchString(`^[0-9a-f]{64}$`, s); !ok {
		return fmt.Errorf("%q is no SHA-256 in lower-case hex", clip(s))
	}
	return nil
}

func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// CheckName reports what is wrong with the id of a run or the digest of a plan, or nil.
func CheckName(what, s string) error {
	if ok, _ := regexp.MatchString(`^[A-Za-z0-9._:-]{1,200}$`, s); !ok {
		return fmt.Errorf("%q is no %s: up to 200 letters, digits, dots, colons, underscores and hyphens", clip(s), what)
	}
	return nil
}

func machineID(s string) error {
	if ok, _ := regexp.MatchString(`^[0-9a-f]{32}$`, s); !ok {
		return fmt.Errorf("%q is no machine id: 32 lower-case hex digits", clip(s))
	}
	return nil
}

func bootID(s string) error {
	if ok, _ := regexp.MatchString(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, s); !ok {
		return fmt.Errorf("%q is no boot id, as in /proc/sys/kernel/random/boot_id", clip(s))
	}
	return nil
}
