package local

// Config is the effective configuration: config.yaml, overridden by the environment (SNAPCLI_ with
// __ for a dot, such as SNAPCLI_CLOUD__API_KEY). A URL keeps its ${NAME} references. They are
// expanded only to use the URL, and their values are never printed.
type Config struct {
	Cloud           Cloud                     `yaml:"cloud" koanf:"cloud"`
	Targets         map[string]Target         `yaml:"targets" koanf:"targets"`
	StorageProfiles map[string]StorageProfile `yaml:"storage_profiles" koanf:"storage_profiles"`
	Identities      []string                  `yaml:"identities" koanf:"identities"`         // key files, or ${NAME}
	PostgresTools   []string                  `yaml:"postgres_tools" koanf:"postgres_tools"` // folders; if empty, PATH
	Trust           TrustSpec                 `yaml:"trust,omitempty" koanf:"trust"`
}

// TrustSpec sets whose programs, such as functions and triggers, are loaded with a snapshot.
type TrustSpec struct {
	// OwnOrganization loads the programs of snapshots pulled from the user's own organization or
	// from a storage profile. Nil means true.
	OwnOrganization *bool `yaml:"own_organization,omitempty" koanf:"own_organization"`
}

func (t TrustSpec) ownOrganization() bool { return t.OwnOrganization == nil || *t.OwnOrganization }

// Cloud configures the connection to the cloud service (SPEC 2.6).
type Cloud struct {
	URL    string `yaml:"url" koanf:"url"`
	APIKey string `yaml:"api_key" koanf:"api_key"`
	// CAFile is a file of PEM certificates of authorities to trust in addition to the system's. A
	// relative path is relative to the configuration file.
	CAFile string `yaml:"ca_file,omitempty" koanf:"ca_file"`
	// PlainStorage allows unencrypted http between this machine and the object store of a service
	// that is itself reached over https.
	PlainStorage bool `yaml:"plain_storage,omitempty" koanf:"plain_storage"`
}

// StorageProfile is a location to push snapshots to and pull them from without the cloud service.
type StorageProfile struct {
	URL string `yaml:"url" koanf:"url"`
}

// Target is a database to take snapshots of, and the database to load them into. Scratch names any
// database on the server that holds scratch copies; if it is empty, the destination's server holds
// them.
type Target struct {
	Name        string       `yaml:"-" koanf:"-"`
	Source      string       `yaml:"source,omitempty" koanf:"source"`           // URL of the database to build from
	Destination string       `yaml:"destination,omitempty" koanf:"destination"` // URL of the database to replace
	Scratch     string       `yaml:"scratch,omitempty" koanf:"scratch"`         // URL on the server for scratch copies
	Jobs        int          `yaml:"jobs,omitempty" koanf:"jobs"`               // 0 is the number of cores
	Production  bool         `yaml:"production,omitempty" koanf:"production"`   // load needs --force-production
	EncryptTo   []string     `yaml:"encrypt_to,omitempty" koanf:"encrypt_to"`   // public keys, or files of them
	Sanitize    SanitizeSpec `yaml:"sanitize,omitempty" koanf:"sanitize"`
	Subset      SubsetSpec   `yaml:"subset,omitempty" koanf:"subset"`
	// Via is the URL of an SSH server through which the source is reached. PasswordCommand is a program
	// with its arguments; it runs before each connection and prints the source's password.
	Via                        string   `yaml:"via,omitempty" koanf:"via"`
	PasswordCommand            []string `yaml:"password_command,omitempty" koanf:"password_command"`
	DestinationVia             string   `yaml:"destination_via,omitempty" koanf:"destination_via"`
	DestinationPasswordCommand []string `yaml:"destination_password_command,omitempty" koanf:"destination_password_command"`
	ScratchVia                 string   `yaml:"scratch_via,omitempty" koanf:"scratch_via"`
	ScratchPasswordCommand     []string `yaml:"scratch_password_command,omitempty" koanf:"scratch_password_command"`

	// These are lists of patterns. Include selects tables and Schemas selects PostgreSQL schemas; an
	// empty list selects all. Exclude leaves out tables and views, ExcludeExtensions leaves out
	// extensions, and ExcludeData leaves out the rows of tables. Omit lists kinds of objects to leave
	// out; see [OmitKinds].
	Include           []string `yaml:"include,omitempty" koanf:"include"`
	Schemas           []string `yaml:"schemas,omitempty" koanf:"schemas"`
	Exclude           []string `yaml:"exclude,omitempty" koanf:"exclude"`
	ExcludeData       []string `yaml:"exclude_data,omitempty" koanf:"exclude_data"`
	ExcludeExtensions []string `yaml:"exclude_extensions,omitempty" koanf:"exclude_extensions"`
	Omit              []string `yaml:"omit,omitempty" koanf:"omit"`

	// AfterLoad is a file of SQL. Each load runs the SQL before the destination is replaced.
	AfterLoad string `yaml:"after_load,omitempty" koanf:"after_load"`

	// Grants are the GRANT statements that each load ends with.
	Grants []string `yaml:"grants,omitempty" koanf:"grants"`

	Clones   ClonesSpec `yaml:"clones,omitempty" koanf:"clones"`
	Schedule string     `yaml:"schedule,omitempty" koanf:"schedule"`   // of `snapcli agent`, in the syntax of cron
	TimeZone string     `yaml:"time_zone,omitempty" koanf:"time_zone"` // of the schedule; "" is UTC
	Checks   []Check    `yaml:"checks,omitempty" koanf:"checks"`       // must hold before the agent pushes
}

// Check is a query on a masked copy and the value that it must return.
type Check struct {
	SQL    string `yaml:"sql" koanf:"sql"`
	Expect string `yaml:"expect" koanf:"expect"`
}

// ClonesSpec limits the clones of a target. The zero value means the defaults.
type ClonesSpec struct {
	Max  int    `yaml:"max,omitempty" koanf:"max"`   // how many may exist at once; 0 means 20
	TTL  string `yaml:"ttl,omitempty" koanf:"ttl"`   // default lifetime of a clone, such as 2h or 7d; "" means 24h
	Warm int    `yaml:"warm,omitempty" koanf:"warm"` // copies that are kept ready for `snapcli run`
}

// SubsetSpec limits the snapshots of a target to some rows and the rows related to them. The zero
// value includes every row. Rows and MaxSize cannot be combined with each other, nor with
// Where or Percent.
type SubsetSpec struct {
	Where   map[string]string `yaml:"where,omitempty" koanf:"where"`       // conditions of the starting rows, by table
	Percent float64           `yaml:"percent,omitempty" koanf:"percent"`   // percentage of rows in the other tables
	Rows    int64             `yaml:"rows,omitempty" koanf:"rows"`         // maximum number of rows
	MaxSize string            `yaml:"max_size,omitempty" koanf:"max_size"` // maximum size, such as 200MB
}

// SanitizeSpec names the files that define how a target is masked. Relative paths are relative to
// the configuration file.
type SanitizeSpec struct {
	Rules string `yaml:"rules,omitempty" koanf:"rules"`
	SQL   string `yaml:"sql,omitempty" koanf:"sql"`

	// Prove says whether masked copies are loaded into a scratch database. Nil means yes, if a
	// server for that database can be reached.
	Prove *bool `yaml:"prove,omitempty" koanf:"prove"`
}
