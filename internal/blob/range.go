package blob

import (
	"net/http"
	"strconv"
	"strings"
)

// withoutEmptySuffixes returns the request with a Range header in which every suffix of length 0
// ("-0") is replaced with a range after the object's end. Neither can be satisfied (RFC 9110
// section 14.1.2), but http.ServeContent would respond to an empty suffix with status 206.
func withoutEmptySuffixes(r *http.Request, size int64) *http.Request {
	specs, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if !ok {
		return r
	}
	all := strings.Split(specs, ",")
	for i, spec := range all {
		last, isSuffix := strings.CutPrefix(strings.TrimSpace(spec), "-")
		if n, err := strconv.ParseUint(strings.Trim(last, " \t\r\n+"), 10, 64); isSuffix && err == nil && n == 0 {
			all[i] = strconv.FormatInt(size, 10) + "-"
		}
	}
	clean := r.WithContext(r.Context())
	clean.Header = r.Header.Clone()
	clean.Header.Set("Range", "bytes="+strings.Join(all, ","))
	return clean
}
