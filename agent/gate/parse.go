package gate

import (
	"encoding/json"
	"slices"
	"strings"
)

// MaxSize is the most an allow-file may hold, in bytes.
const MaxSize = 64 << 10

// maxText bounds each free text in the file.
const maxText = 1024

// Parse reads an allow-file strictly: one JSON object, known keys only, each at most once and spelt as
// documented, whole numbers of seconds. Everything else is an error of type *Denial, since a file that
// leaves room for doubt is a closed gate (Z2). The clock is not asked here; Decide does that.
func Parse(data []byte) (AllowFile, error) {
	fields, err := object("the allow-file", data)
	if err != nil {
		return AllowFile{}, err
	}
	var f AllowFile
	for _, kv := range fields {
		if err := f.set(kv.key, kv.raw); err != nil {
			return AllowFile{}, err
		}
	}
	if !slices.ContainsFunc(fields, func(kv field) bool { return kv.key == "notAfter" }) {
		return AllowFile{}, Deny(CodeNoEnd, "the allow-file has no notAfter, so it would never end")
	}
	switch {
	case f.NotBefore != 0 && f.NotBefore >= f.NotAfter:
		return AllowFile{}, Deny(CodeBad, "notBefore %d is not before notAfter %d", f.NotBefore, f.NotAfter)
	case f.RenewUntil != 0 && f.RenewUntil < f.NotAfter:
		return AllowFile{}, Deny(CodeBad, "renewUntil %d is before notAfter %d", f.RenewUntil, f.NotAfter)
	case f.RenewUntil != 0 && f.ID == "":
		return AllowFile{}, Deny(CodeBad, "a window that can be renewed needs an id")
	case (f.BootID == "") != (f.BootUntil == 0):
		return AllowFile{}, Deny(CodeBad, "bootId and bootUntil go together")
	}
	return f, nil
}

// set reads one value into its field.
func (f *AllowFile) set(key string, raw json.RawMessage) (err error) {
	switch key {
	case "notAfter":
		f.NotAfter, err = seconds(key, raw)
	case "notBefore":
		f.NotBefore, err = seconds(key, raw)
	case "id":
		f.ID, err = text(key, raw)
	case "operations":
		f.Operations, err = list(key, raw, operation)
	case "packages":
		f.Packages, err = packages(raw)
	case "sha256":
		f.SHA256, err = list(key, raw, digest)
	case "singleUse":
		f.SingleUse, err = boolean(key, raw)
	case "machineId":
		f.MachineID, err = word(key, raw, machineID)
	case "run", "plan":
		name, bad := word(key, raw, func(s string) error { return CheckName(key, s) })
		if err = bad; key == "run" {
			f.Run = name
		} else {
			f.Plan = name
		}
	case "bootId":
		f.BootID, err = word(key, raw, bootID)
	case "bootUntil":
		f.BootUntil, err = seconds(key, raw)
	case "renewUntil":
		f.RenewUntil, err = seconds(key, raw)
	case "issuedBy":
		f.IssuedBy, err = text(key, raw)
	case "reason":
		f.Reason, err = text(key, raw)
	default:
		err = unknownKey(key)
	}
	return err
}

// knownKeys in the order of the documentation.
func knownKeys() []string {
	return []string{"notAfter", "notBefore", "id", "operations", "packages", "sha256", "singleUse", "machineId", "run", "plan",
		"bootId", "bootUntil", "renewUntil", "issuedBy", "reason"}
}

func unknownKey(key string) error {
	for _, k := range knownKeys() {
		if strings.EqualFold(k, key) {
			return Deny(CodeBadKey, "key %q must be spelt %q", key, k)
		}
	}
	return Deny(CodeBadKey, "unknown key %q; known are %s", key, strings.Join(knownKeys(), ", "))
}

func packages(raw json.RawMessage) (map[string]string, error) {
	fields, err := members("packages", raw)
	if err != nil {
		return nil, Deny(CodeBad, "%v", err)
	}
	if len(fields) == 0 {
		return nil, Deny(CodeBad, "packages is empty; leave it out to permit any")
	}
	m := make(map[string]string, len(fields))
	for _, kv := range fields {
		version, err := text("the version of "+clip(kv.key), kv.raw)
		if err != nil {
			return nil, err
		}
		if err := CheckPackage(kv.key, version); err != nil {
			return nil, Deny(CodeBad, "packages is wrong: %v", err)
		}
		m[kv.key] = version
	}
	return m, nil
}
