package local

// Config is the effective configuration: config.yaml, then the environment
// (SNAPCLI_ with __ for a dot, such as SNAPCLI_CLOUD__API_KEY). URLs keep their
// ${NAME} references; they are expanded when used and never printed.
type Config struct {
	Cloud           Cloud                     `yaml:"cloud" koanf:"cloud"`
	Targets         map[string]Target         `yaml:"targets" koanf:"targets"`
	StorageProfiles map[string]StorageProfile `yaml:"storage_profiles" koanf:"storage_profiles"`
	Identities      []string                  `yaml:"identities" koanf:"identities"`         // files of private keys that open encrypted snapshots, or ${NAME} of one
	PostgresTools   []string                  `yaml:"postgres_tools" koanf:"postgres_tools"` // folders of pg_dump and pg_restore; empty: PATH and the usual places
	Trust           TrustSpec                 `yaml:"trust,omitempty" koanf:"trust"`
}

// TrustSpec says whose snapshots are more than data.
type TrustSpec struct {
	// OwnOrganization loads the programs of what was pulled from one's own
	// organization or from a storage profile; nil is true.
	OwnOrganization *bool `yaml:"own_organization,omitempty" koanf:"own_organization"`
}

func (t TrustSpec) ownOrganization() bool { return t.OwnOrganization == nil || *t.OwnOrganization }

// Cloud is how to reach the cloud service (SPEC 2.6).
type Cloud struct {
	URL    string `yaml:"url" koanf:"url"`
	APIKey string `yaml:"api_key" koanf:"api_key"`
	// CAFile names a file of certificates in PEM, of authorities that are trusted
	// besides the system's. A relative path starts at the configuration file's folder.
	CAFile string `yaml:"ca_file,omitempty" koanf:"ca_file"`
	// PlainStorage lets bytes travel over plain http between this machine and
	// the storage of a service that is itself reached over https.
	PlainStorage bool `yaml:"plain_storage,omitempty" koanf:"plain_storage"`
}

// StorageProfile is a place that snapshots are pushed to and pulled from
// without the cloud service.
type StorageProfile struct {
	URL string `yaml:"url" koanf:"url"`
}

// Target is a database that snapshots are taken of, and the one they are
// loaded into.
type Target struct {
	Name        string       `yaml:"-" koanf:"-"`
	Source      string       `yaml:"source,omitempty" koanf:"source"`           // URL of the database to build from
	Destination string       `yaml:"destination,omitempty" koanf:"destination"` // URL of the database that load replaces
	Scratch     string       `yaml:"scratch,omitempty" koanf:"scratch"`         // URL of a database on the server that scratch copies are made on; empty: the destination's
	Jobs        int          `yaml:"jobs,omitempty" koanf:"jobs"`               // 0 is the number of cores
	Production  bool         `yaml:"production,omitempty" koanf:"production"`   // load refuses this destination unless forced
	EncryptTo   []string     `yaml:"encrypt_to,omitempty" koanf:"encrypt_to"`   // public keys, or files of them, of who can read its snapshots
	Sanitize    SanitizeSpec `yaml:"sanitize,omitempty" koanf:"sanitize"`
	Subset      SubsetSpec   `yaml:"subset,omitempty" koanf:"subset"`
}

// SubsetSpec limits the snapshots of a target to some rows and what belongs to
// them. The zero value takes every row.
type SubsetSpec struct {
	Where   map[string]string `yaml:"where,omitempty" koanf:"where"`     // by table: the condition of the rows to start from
	Percent float64           `yaml:"percent,omitempty" koanf:"percent"` // of the other rows to start from
}

// SanitizeSpec names the files that say how to mask a target. Relative paths
// start at the configuration file's folder.
type SanitizeSpec struct {
	Rules string `yaml:"rules,omitempty" koanf:"rules"`
	SQL   string `yaml:"sql,omitempty" koanf:"sql"`
}
